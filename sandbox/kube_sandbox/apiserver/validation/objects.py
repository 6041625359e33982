"""Validation of created and updated objects of built-in kinds.

The objects are decoded and defaulted (`fields`, `defaults`). Rules and texts are those of kube-apiserver 1.36
(k8s.io/kubernetes, pkg/apis/*/validation and pkg/registry).
"""

from collections.abc import Callable

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.storage.registry import BUILT_IN
from kube_sandbox.apiserver.validation import texts
from kube_sandbox.apiserver.validation.admission_policy import admission_policy, admission_policy_binding
from kube_sandbox.apiserver.validation.batch import cron_job, job
from kube_sandbox.apiserver.validation.causes import Cause, Causes
from kube_sandbox.apiserver.validation.core import config_map, event, lease, namespace, secret, service
from kube_sandbox.apiserver.validation.crd import crd, name_rule
from kube_sandbox.apiserver.validation.meta import NameRule, changed_metadata, new_metadata, standard_finalizers
from kube_sandbox.apiserver.validation.pod import pod
from kube_sandbox.apiserver.validation.policy import autoscaler, disruption_budget
from kube_sandbox.apiserver.validation.rbac import role, role_binding
from kube_sandbox.apiserver.validation.resize import pod_resize
from kube_sandbox.apiserver.validation.volume import claim
from kube_sandbox.apiserver.validation.webhook import webhook_configuration
from kube_sandbox.apiserver.validation.workload import (
    controller_revision,
    daemon_set,
    deployment,
    pod_template,
    replica_set,
    replication_controller,
    stateful_set,
)

Rule = Callable[[Object, Object | None], Causes]

_CLUSTER_SCOPED = frozenset(resource.kind for resource in BUILT_IN if not resource.namespaced)
_PATH_SEGMENT_NAMES = frozenset({"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"})
_CHECKED_BY_REGISTRY = frozenset({"Event", "PodDisruptionBudget", "HorizontalPodAutoscaler"})
"""Kinds whose validation does not check names. After the validation has succeeded, the registry checks the name with a
less strict rule."""
_FREE_FINALIZERS = frozenset({
    "CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
})  # fmt: skip
_LABEL_NAMES = frozenset({"Namespace", "Service", "StatefulSet"})
_RULES: dict[str, Rule] = {
    "ClusterRole": role,
    "ClusterRoleBinding": role_binding,
    "ConfigMap": config_map,
    "ControllerRevision": controller_revision,
    "CronJob": cron_job,
    "CustomResourceDefinition": crd,
    "DaemonSet": daemon_set,
    "Deployment": deployment,
    "Event": event,
    "HorizontalPodAutoscaler": autoscaler,
    "Job": job,
    "Lease": lease,
    "MutatingWebhookConfiguration": webhook_configuration,
    "Namespace": namespace,
    "PersistentVolumeClaim": claim,
    "Pod": pod,
    "PodDisruptionBudget": disruption_budget,
    "PodTemplate": pod_template,
    "ReplicaSet": replica_set,
    "ReplicationController": replication_controller,
    "Role": role,
    "RoleBinding": role_binding,
    "Secret": secret,
    "Service": service,
    "StatefulSet": stateful_set,
    "ValidatingAdmissionPolicy": admission_policy,
    "ValidatingAdmissionPolicyBinding": admission_policy_binding,
    "ValidatingWebhookConfiguration": webhook_configuration,
}


def validate(obj: Object, old: Object | None, subresource: str = "") -> list[Cause]:
    """The causes that make a built-in object invalid, in the order of the real server. `old` is the object that it
    replaces, None for a create."""
    kind = obj["kind"]
    if old is not None and subresource == "resize":
        specific = list(pod_resize(obj, old))
    else:
        specific = list(_RULES.get(kind, _no_rule)(obj, old))
    metadata = list(_metadata(obj, old))
    if old is not None:
        # In the real server, first the registry and then the validation of the type check metadata.
        return [*metadata, *metadata, *specific]
    if kind in _CHECKED_BY_REGISTRY:
        return specific or metadata
    return [*metadata, *specific]


def validate_metadata(obj: Object, old: Object | None) -> list[Cause]:
    """The causes that make the metadata of a custom resource invalid."""
    metadata = obj["metadata"]
    if old is not None:
        return list(changed_metadata(metadata, old["metadata"])) * 2
    return list(new_metadata(metadata, namespaced="namespace" in metadata, name_rule=texts.subdomain))


def _metadata(obj: Object, old: Object | None) -> Causes:
    kind, metadata = obj["kind"], obj["metadata"]
    if old is not None:
        yield from changed_metadata(metadata, old["metadata"])
    else:
        yield from new_metadata(metadata, namespaced=kind not in _CLUSTER_SCOPED, name_rule=_name_rule(obj))
    if kind not in _FREE_FINALIZERS:
        yield from standard_finalizers(metadata.get("finalizers") or ())


def _name_rule(obj: Object) -> NameRule:
    kind = obj["kind"]
    if kind == "CustomResourceDefinition":
        rule: NameRule = name_rule(obj["spec"])
        return rule
    if kind in _PATH_SEGMENT_NAMES or kind in _CHECKED_BY_REGISTRY:
        return texts.path_segment
    return texts.label_1123 if kind in _LABEL_NAMES else texts.subdomain


def _no_rule(_: Object, __: Object | None) -> Causes:
    yield from ()
