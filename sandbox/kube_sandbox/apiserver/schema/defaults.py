"""Defaults of the built-in kinds, as kube-apiserver 1.36 sets them when it decodes an object.

The rules are those of k8s.io/kubernetes, pkg/apis/*/v1/defaults.go and conversion.go. The objects come from
`fields.check`: their members have the right types, and required structs exist.
"""

import base64
import ipaddress
import zlib
from collections.abc import Callable
from typing import Any

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.schema.pod_defaults import default_pod, default_template

_RBAC = "rbac.authorization.k8s.io"
_SERVICE_NETWORK = ipaddress.IPv4Network("10.96.0.0/16")
_NODE_PORTS = range(30000, 32768)
_AFFINITY_SECONDS = 10800


def apply(obj: Object) -> None:
    """Set the defaults, in place. An object that has all of them does not change."""
    group = obj["apiVersion"].rpartition("/")[0]
    if default := _DEFAULTS.get((group, obj["kind"])):
        default(obj)


def _deployment(obj: Object) -> None:
    spec = obj["spec"]
    spec.setdefault("replicas", 1)
    strategy = spec["strategy"]
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    default_template(spec["template"])


def _replica_set(obj: Object) -> None:
    obj["spec"].setdefault("replicas", 1)
    default_template(obj["spec"]["template"])


def _stateful_set(obj: Object) -> None:
    spec = obj["spec"]
    spec.setdefault("replicas", 1)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    strategy = spec["updateStrategy"]
    if "type" not in strategy:
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("partition", 0)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    spec.setdefault("revisionHistoryLimit", 10)
    default_template(spec["template"])
    for claim in spec.get("volumeClaimTemplates") or ():
        claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        _claim(claim)


def _daemon_set(obj: Object) -> None:
    spec = obj["spec"]
    strategy = spec["updateStrategy"]
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)
    default_template(spec["template"])


def _replication_controller(obj: Object) -> None:
    spec = obj["spec"]
    spec.setdefault("replicas", 1)
    if template := spec.get("template"):
        if labels := template["metadata"].get("labels"):
            spec.setdefault("selector", dict(labels))
            obj["metadata"].setdefault("labels", dict(labels))
        default_template(template)


def _job(obj: Object) -> None:
    if labels := obj["spec"]["template"]["metadata"].get("labels"):
        obj["metadata"].setdefault("labels", dict(labels))
    _job_spec(obj["spec"])


def _job_spec(spec: Object) -> None:
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            pattern["status"] = pattern.get("status") or "True"
    default_template(spec["template"])


def _cron_job(obj: Object) -> None:
    spec = obj["spec"]
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    default_template(spec["jobTemplate"]["spec"]["template"])


def _service(obj: Object) -> None:
    spec, metadata = obj["spec"], obj["metadata"]
    seed = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    kind = spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif not ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds"):
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}}
    outside = kind in ("NodePort", "LoadBalancer")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port["targetPort"] = port["targetPort"] or port["port"]
        if outside:
            port.setdefault(
                "nodePort", _NODE_PORTS[_hash(f"{seed}:{port['port']}/{port['protocol']}", len(_NODE_PORTS))]
            )
    if outside or (kind == "ClusterIP" and spec.get("externalIPs")):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if kind != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
        _set_addresses(spec, seed)


def _set_addresses(spec: Object, seed: str) -> None:
    """Set the addresses of a Service. A missing address is computed from the hash of the name, so that no allocator is
    needed. Two Services may get the same address, which is unlikely in a sandbox."""
    address = spec.get("clusterIP") or (spec.get("clusterIPs") or [""])[0]
    if not address:
        address = str(_SERVICE_NETWORK[1 + _hash(seed, _SERVICE_NETWORK.num_addresses - 2)])
    spec["clusterIP"] = address
    spec.setdefault("clusterIPs", [address])
    spec.setdefault("ipFamilies", ["IPv6" if ":" in address else "IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def _hash(seed: str, below: int) -> int:
    return zlib.crc32(seed.encode()) % below


def _secret(obj: Object) -> None:
    obj.setdefault("type", "Opaque")
    if text := obj.pop("stringData", None):
        obj["data"] = obj.get("data", {}) | {
            name: base64.b64encode(value.encode()).decode() for name, value in text.items()
        }


def _namespace(obj: Object) -> None:
    if name := obj["metadata"].get("name"):
        obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name
    obj["status"].setdefault("phase", "Active")


def _node(obj: Object) -> None:
    spec, status = obj["spec"], obj["status"]
    if "podCIDR" in spec:
        spec.setdefault("podCIDRs", [spec["podCIDR"]])
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))


def _endpoints(obj: Object) -> None:
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _endpoint_slice(obj: Object) -> None:
    for port in obj.get("ports") or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def _claim(obj: Object) -> None:
    obj["spec"].setdefault("volumeMode", "Filesystem")
    obj["status"].setdefault("phase", "Pending")


def _volume(obj: Object) -> None:
    obj["spec"].setdefault("persistentVolumeReclaimPolicy", "Retain")
    obj["spec"].setdefault("volumeMode", "Filesystem")
    obj["status"].setdefault("phase", "Pending")


def _limit_range(obj: Object) -> None:
    for item in obj["spec"].get("limits") or ():
        if item.get("type") == "Container":
            default = {**item.get("max", {}), **item.get("default", {})}
            requests = {**item.get("min", {}), **default, **item.get("defaultRequest", {})}
            item |= {name: value for name, value in (("default", default), ("defaultRequest", requests)) if value}


def _webhooks(obj: Object) -> None:
    for webhook in obj.get("webhooks") or ():
        webhook.setdefault("failurePolicy", "Fail")
        webhook.setdefault("matchPolicy", "Equivalent")
        webhook.setdefault("namespaceSelector", {})
        webhook.setdefault("objectSelector", {})
        webhook.setdefault("timeoutSeconds", 10)
        if obj["kind"] == "MutatingWebhookConfiguration":
            webhook.setdefault("reinvocationPolicy", "Never")
        for rule in webhook.get("rules") or ():
            rule.setdefault("scope", "*")
        _service_reference(webhook["clientConfig"])


def _admission_policy(obj: Object) -> None:
    spec = obj["spec"]
    spec.setdefault("failurePolicy", "Fail")
    if (resources := spec.get("matchConstraints")) is not None:
        _match_resources(resources)


def _admission_policy_binding(obj: Object) -> None:
    if (resources := obj["spec"].get("matchResources")) is not None:
        _match_resources(resources)


def _match_resources(resources: Object) -> None:
    resources.setdefault("matchPolicy", "Equivalent")
    resources.setdefault("namespaceSelector", {})
    resources.setdefault("objectSelector", {})
    for rule in (*(resources.get("resourceRules") or ()), *(resources.get("excludeResourceRules") or ())):
        rule.setdefault("scope", "*")


def _service_reference(client_config: Object) -> None:
    if (service := client_config.get("service")) is not None:
        service.setdefault("port", 443)


def _crd(obj: Object) -> None:
    spec = obj["spec"]
    names = spec["names"]
    if kind := names.get("kind"):
        names.setdefault("singular", kind.lower())
        names.setdefault("listKind", f"{kind}List")
    conversion = spec.setdefault("conversion", {"strategy": "None"})
    _service_reference((conversion.get("webhook") or {}).get("clientConfig") or {})
    if not obj["status"].get("storedVersions"):
        obj["status"]["storedVersions"] = [
            version["name"] for version in spec.get("versions") or () if version.get("storage")
        ][:1] or None


def _role_binding(obj: Object) -> None:
    obj["roleRef"]["apiGroup"] = obj["roleRef"].get("apiGroup") or _RBAC
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", _RBAC)


_SCALE_UP = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def _autoscaler(obj: Object) -> None:
    spec = obj["spec"]
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target: Any = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    if (behavior := spec.get("behavior")) is not None:
        behavior["scaleUp"] = _SCALE_UP | behavior.get("scaleUp", {})
        behavior["scaleDown"] = _SCALE_DOWN | behavior.get("scaleDown", {})


def _network_policy(obj: Object) -> None:
    spec = obj["spec"]
    spec.setdefault("policyTypes", ["Ingress", *(["Egress"] if spec.get("egress") else [])])
    for rule in (*(spec.get("ingress") or ()), *(spec.get("egress") or ())):
        for port in rule.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _priority_class(obj: Object) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _flow_schema(obj: Object) -> None:
    if not obj["spec"].get("matchingPrecedence"):
        obj["spec"]["matchingPrecedence"] = 1000


def _priority_level(obj: Object) -> None:
    spec = obj["spec"]
    if (exempt := spec.get("exempt")) is not None:
        exempt.setdefault("nominalConcurrencyShares", 0)
        exempt.setdefault("lendablePercent", 0)
    if (limited := spec.get("limited")) is not None:
        if limited.get("nominalConcurrencyShares") is None:
            limited["nominalConcurrencyShares"] = 30
        limited.setdefault("lendablePercent", 0)
        if (queuing := (limited.get("limitResponse") or {}).get("queuing")) is not None:
            for name, default in (("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)):
                queuing[name] = queuing.get(name) or default


def _storage_class(obj: Object) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def _pod_template(obj: Object) -> None:
    default_template(obj["template"])


_DEFAULTS: dict[tuple[str, str], Callable[[Object], None]] = {
    ("", "Endpoints"): _endpoints,
    ("", "LimitRange"): _limit_range,
    ("", "Namespace"): _namespace,
    ("", "Node"): _node,
    ("", "PersistentVolume"): _volume,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Pod"): default_pod,
    ("", "PodTemplate"): _pod_template,
    ("", "ReplicationController"): _replication_controller,
    ("", "Secret"): _secret,
    ("", "Service"): _service,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _webhooks,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): _admission_policy,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): _admission_policy_binding,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _webhooks,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _crd,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("autoscaling", "HorizontalPodAutoscaler"): _autoscaler,
    ("batch", "CronJob"): _cron_job,
    ("batch", "Job"): _job,
    ("discovery.k8s.io", "EndpointSlice"): _endpoint_slice,
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): _flow_schema,
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): _priority_level,
    ("networking.k8s.io", "NetworkPolicy"): _network_policy,
    (_RBAC, "ClusterRoleBinding"): _role_binding,
    (_RBAC, "RoleBinding"): _role_binding,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
    ("storage.k8s.io", "StorageClass"): _storage_class,
}
