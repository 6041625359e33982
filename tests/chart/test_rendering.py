"""The rendered objects, for each file of values: valid, labelled, restricted, consistent."""

import functools
import json
import re
import shutil
from pathlib import Path

import helm_python
import kubernetes_validate  # type: ignore[import-untyped]
import msgspec
import pytest
import yaml

from altershield.api.names import SYSTEM_NAMESPACE
from altershield.workloads import ADAPTERS
from command.install import policies
from gatekeeper import process, server
from gatekeeper.intake import body as intake
from tests.chart import operators
from tests.chart.rendering import (
    CHART,
    HOOK,
    OPERATORS,
    RELEASE,
    Object,
    all_containers,
    callback_services,
    component,
    containers,
    is_hook,
    manifests,
    notes,
    of_kind,
    rendered,
    the,
    variables,
)


def test_helm_lint_reports_no_problem(values: Object) -> None:
    report = helm_python.lint(str(CHART), values, strict=True, namespace=SYSTEM_NAMESPACE)
    assert report["errors"] == []
    assert [message for message in report["messages"] if message["severity"] > 1] == []


@pytest.mark.parametrize("version", ["1.30", "1.36"])
def test_objects_match_the_schemas_of_the_oldest_and_newest_kubernetes(objects: list[Object], version: str) -> None:
    for obj in objects:
        if obj["apiVersion"] in OPERATORS:
            operators.validate(obj)
        else:
            _validate(json.dumps(obj), version)


# without this, it reads the definitions of a version, which have a megabyte, for each object
kubernetes_validate.utils.schema_contents = functools.cache(kubernetes_validate.utils.schema_contents)


@functools.cache  # most objects are the same for all values
def _validate(obj: str, version: str) -> None:
    kubernetes_validate.validate(json.loads(obj), version, strict=True)


@pytest.mark.parametrize(
    ("kind", "misspelt"),
    [
        ("ServiceMonitor", ("honorLabels", "honourLabels")),
        ("PrometheusRule", ("annotations", "anotations")),
        ("GrafanaDashboard", ("configMapRef", "configMap")),
        ("Certificate", ("secretTemplate", "secretTemplates")),
        ("Issuer", ("secretName", "secret")),
    ],
)
def test_a_misspelt_field_of_an_operator_kind_is_rejected(
    chart: helm_python.Chart, kind: str, misspelt: tuple[str, str]
) -> None:
    values = {name: {"enabled": True} for name in ("serviceMonitor", "prometheusRule")}
    values["dashboards"] = {"grafanaOperator": {"enabled": True}}
    objects = of_kind(rendered(chart, {**values, "certificates": {"mode": "cert-manager"}}), kind)
    assert objects
    wrong = json.loads(json.dumps(objects[-1]).replace(*(f'"{name}"' for name in misspelt)))
    with pytest.raises(msgspec.ValidationError, match=r"unknown field|missing required field"):
        operators.validate(wrong)


def test_objects_have_unique_names_namespaces_and_recommended_labels(objects: list[Object]) -> None:
    cluster_scoped = {
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "FlowSchema",
        "MutatingWebhookConfiguration",
        "Namespace",
        "PriorityLevelConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    }
    identities = set()
    for obj in objects:
        metadata = obj["metadata"]
        if metadata["name"] in ("altershield-notes", "altershield-more"):
            continue  # `extraObjects`
        assert ("namespace" in metadata) == (obj["kind"] not in cluster_scoped), metadata
        suffixes = {"name", "instance", "version", "component", "part-of", "managed-by"}
        assert suffixes <= {key.removeprefix("app.kubernetes.io/") for key in metadata["labels"]}, metadata
        identities.add((obj["kind"], metadata.get("namespace"), metadata["name"]))
    assert len(identities) in (len(objects), len(objects) - 2)


def test_pods_meet_the_restricted_pod_security_standard(objects: list[Object]) -> None:
    pods = [obj["spec"] for obj in objects if obj["kind"] == "Pod"]
    pods += [obj["spec"]["template"]["spec"] for obj in of_kind(objects, "Deployment")]
    assert len(pods) in (2, 3)
    for pod in pods:
        if pod.get("hostNetwork"):
            continue
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"].get("runAsUser") != 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not pod.keys() & {"hostNetwork", "hostPID", "hostIPC"}
        allowed = {"name", "emptyDir", "configMap", "projected", "secret"}
        assert all(volume.keys() <= allowed for volume in pod.get("volumes", ()))
        for container in (*pod["containers"], *pod.get("initContainers", ())):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}


def test_pods_have_gatekeeper_reconciler_and_certgen_of_one_image(objects: list[Object], values: Object) -> None:
    separate = values.get("reconciler", {}).get("separate", False)
    wanted = [["gatekeeper", "certgen"], ["reconciler"]] if separate else [["gatekeeper", "reconciler", "certgen"]]
    assert [list(containers(deployment)) for deployment in of_kind(objects, "Deployment")] == wanted
    assert len({container["image"] for container in all_containers(objects).values()}) == 1


def test_only_the_gatekeeper_gets_the_client_ca(chart: helm_python.Chart) -> None:
    deployment = the(rendered(chart), "Deployment")
    assert "client" not in yaml.safe_dump(deployment)

    clients = {"configMap": "api-servers", "commonName": "kube-apiserver: yes"}
    deployment = the(rendered(chart, {"webhooks": {"clientAuthentication": clients}}), "Deployment")
    gatekeeper, pod = containers(deployment)["gatekeeper"], deployment["spec"]["template"]["spec"]
    assert {"--client-ca-file=/clients/ca.crt", "--client-name=kube-apiserver: yes"} <= set(gatekeeper["args"])
    (mount,) = [mount for mount in gatekeeper["volumeMounts"] if mount["name"] == "clients"]
    assert (mount["mountPath"], mount["readOnly"]) == ("/clients", True)
    assert {"name": "clients", "configMap": {"name": "api-servers"}} in pod["volumes"]


def test_empty_metrics_from_removes_the_rule_for_metrics(chart: helm_python.Chart) -> None:
    policy = {"networkPolicy": {"enabled": True}}
    assert len(the(rendered(chart, policy), "NetworkPolicy")["spec"]["ingress"]) == 2
    policy["networkPolicy"]["metricsFrom"] = []  # type: ignore[assignment]
    (rule,) = the(rendered(chart, policy), "NetworkPolicy")["spec"]["ingress"]
    assert rule == {"ports": [{"port": "webhook", "protocol": "TCP"}]}


def test_rollout_deletes_a_pod_only_after_its_successor_is_ready(objects: list[Object], values: Object) -> None:
    for deployment in of_kind(objects, "Deployment"):
        spec = deployment["spec"]
        if values.get("strategy"):
            assert spec["strategy"] == values["strategy"]
        elif spec["template"]["spec"].get("hostNetwork"):  # two pods on one node would use the same ports
            assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
        else:
            assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
        assert spec["minReadySeconds"] > 0
        for container in spec["template"]["spec"]["containers"]:
            probe = container.get("readinessProbe") or container["startupProbe"]
            assert probe["httpGet"]["path"] == "/readyz"


def test_termination_grace_period_covers_the_shutdown_of_the_gatekeeper(objects: list[Object]) -> None:
    last = process._LAST_SECONDS + server._FINISH_SECONDS + intake._BODY_SECONDS + intake._TURN_SECONDS
    assert last < 45, "the chart allows 45 seconds for the last responses"
    pod = the(objects, "Deployment")["spec"]["template"]["spec"]
    gatekeeper = containers(the(objects, "Deployment"))["gatekeeper"]
    (delay,) = [float(arg.partition("=")[2]) for arg in gatekeeper["args"] if arg.startswith("--shutdown-delay=")]
    before = gatekeeper.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    assert pod["terminationGracePeriodSeconds"] == before + delay + 45


def test_selectors_match_the_pods_of_one_deployment_and_no_others(objects: list[Object], values: Object) -> None:
    templates = {component(obj): obj["spec"]["template"] for obj in of_kind(objects, "Deployment")}
    selectors = [(component(obj), obj["spec"]["selector"]["matchLabels"]) for obj in of_kind(objects, "Deployment")]
    selectors += [(component(obj), obj["spec"]["selector"]) for obj in of_kind(objects, "Service")]
    selectors += [
        (component(obj), obj["spec"]["selector"]["matchLabels"]) for obj in of_kind(objects, "PodDisruptionBudget")
    ]
    selectors += [
        (component(obj), obj["spec"]["podSelector"]["matchLabels"]) for obj in of_kind(objects, "NetworkPolicy")
    ]
    if "topologySpreadConstraints" not in values:
        selectors += [
            (name, each["labelSelector"]["matchLabels"])
            for name, template in templates.items()
            for each in template["spec"]["topologySpreadConstraints"]
        ]
    (check,) = [obj for obj in objects if obj["kind"] == "Pod"]
    for owner, selector in selectors:
        for name, template in templates.items():
            assert (selector.items() <= template["metadata"]["labels"].items()) is (name == owner)
        assert not selector.items() <= check["metadata"]["labels"].items()
    services = [obj for obj in of_kind(objects, "Service") if obj not in callback_services(objects)]
    for kind, watched in (("ServiceMonitor", services), ("PodMonitor", list(templates.values()))):
        for monitor in of_kind(objects, kind):
            chosen = monitor["spec"]["selector"]
            assert all(selected(chosen, obj["metadata"]["labels"]) for obj in watched)
            assert not selected(chosen, check["metadata"]["labels"])
            elsewhere = monitor["metadata"]["namespace"] != SYSTEM_NAMESPACE
            wanted = {"matchNames": [SYSTEM_NAMESPACE]} if elsewhere else None
            assert monitor["spec"].get("namespaceSelector") == wanted


def selected(selector: Object, labels: dict[str, str]) -> bool:
    """Whether a label selector with the operator `In` selects these labels."""
    return selector["matchLabels"].items() <= labels.items() and all(
        labels.get(each["key"]) in each["values"] for each in selector.get("matchExpressions", ())
    )


def test_each_service_port_has_a_container_port(objects: list[Object], values: Object) -> None:
    exposed: dict[str, dict[str, int]] = {
        component(deployment): {
            port["name"]: port["containerPort"]
            for container in containers(deployment).values()
            for port in container["ports"]
        }
        for deployment in of_kind(objects, "Deployment")
    }
    for owner, named in exposed.items():
        assert len(set(named.values())) == len(named), "all containers of a pod share one network"
        assert all(len(name) <= 15 for name in named)
        services = [obj for obj in of_kind(objects, "Service") if component(obj) == owner]
        ports = [port for service in services for port in service["spec"]["ports"]]
        assert sorted(port["targetPort"] for port in ports) == sorted(named)
        assert all(port["port"] == named[port["targetPort"]] for port in ports if port["name"] != "webhook")
        for policy in of_kind(objects, "NetworkPolicy"):
            if component(policy) == owner:
                extra = values["networkPolicy"].get("extraIngress", [])
                rules = [rule for rule in policy["spec"]["ingress"] if rule not in extra]
                assert sorted(port["port"] for rule in rules for port in rule["ports"]) == sorted(named)
    monitored = [name for named in exposed.values() for name in named if name.startswith("metrics-")]
    for kind, endpoints in (("ServiceMonitor", "endpoints"), ("PodMonitor", "podMetricsEndpoints")):
        for monitor in of_kind(objects, kind):
            assert sorted(each["port"] for each in monitor["spec"][endpoints]) == sorted(monitored)


def test_webhooks_call_the_service_of_their_release_whatever_its_name(chart: helm_python.Chart) -> None:
    for release, name in {"altershield": "altershield", "gate": "gate-altershield", "x" * 53: "x" * 48}.items():
        objects = rendered(chart, release=release)
        assert the(objects, "Service")["metadata"]["name"] == name
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
            assert {webhook["clientConfig"]["service"]["name"] for webhook in the(objects, kind)["webhooks"]} == {name}


@pytest.mark.parametrize(
    ("release", "namespace", "values"),
    [
        ("r" * 53, "n" * 63, {"certificates": {"mode": "cert-manager"}, "dashboards": {"enabled": True}}),
        ("gate", "gatekeeping", {"nameOverride": "n" * 48}),
        ("gate", "gatekeeping", {"fullnameOverride": "f" * 48, "networkPolicy": {"enabled": True}}),
        ("r" * 53, "n" * 63, {"server": {"url": "http://a", "callbacks": {"enabled": True}}}),
    ],
    ids=["long", "nameOverride", "fullnameOverride", "callbacks"],
)
def test_objects_refer_to_each_other_under_any_name_and_namespace(
    chart: helm_python.Chart, release: str, namespace: str, values: Object
) -> None:
    objects = rendered(chart, values, release=release, namespace=namespace)
    for obj in objects:
        metadata = obj["metadata"]
        assert len(metadata["name"]) <= 63 or obj["kind"] in (
            "CustomResourceDefinition",
            "ClusterRole",
            *policies.RESOURCES,
        )
        assert all(
            re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", v) for v in metadata["labels"].values()
        )
        assert metadata.get("namespace", namespace) in (namespace, f"{metadata['name']}")
    assert SYSTEM_NAMESPACE not in json.dumps([obj for obj in objects if obj["kind"] != "CustomResourceDefinition"])
    name = the(objects, "Deployment")["metadata"]["name"]
    pod = containers(the(objects, "Deployment"))
    environment = variables(pod["certgen"])
    assert f"--owner={name}" in pod["certgen"]["args"]
    assert environment["ALTERSHIELD_WEBHOOK_CONFIGURATION"] == environment["ALTERSHIELD_SERVICE"] == name
    assert environment["ALTERSHIELD_SYSTEM_NAMESPACE"] == namespace
    for container in (pod["gatekeeper"], pod["reconciler"]):
        assert f"--system-namespace={namespace}" in container["args"]
    assert f"--service-account=system:serviceaccount:{namespace}:{name}" in pod["gatekeeper"]["args"]
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ClusterRole", "Service"):
        assert the(objects, kind)["metadata"]["name"] == name
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        for webhook in the(objects, kind)["webhooks"]:
            assert webhook["clientConfig"]["service"]["namespace"] == namespace
            for left_alone in webhook.get("namespaceSelector", {}).get("matchExpressions", ()):
                assert left_alone["values"] == ["kube-system", namespace]
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        binding = the(objects, kind)
        assert binding["roleRef"]["name"] == name
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]
    named = [rule.get("resourceNames") for kind in ("ClusterRole", "Role") for rule in the(objects, kind)["rules"]]
    kinds = [adapter.crd for adapter in ADAPTERS if adapter.crd]
    assert [names for names in named if names] == [kinds, [name], [name], [environment["ALTERSHIELD_SECRET"]]]


def test_rendering_is_deterministic(chart: helm_python.Chart, values: Object) -> None:
    """Otherwise a GitOps tool finds a difference, and rolls out pods, in every sync."""
    assert chart.render(values, name=RELEASE, namespace=SYSTEM_NAMESPACE) == manifests(chart, values)


@pytest.mark.parametrize(
    ("values", "rolls"),
    [
        ({"logLevel": "debug"}, True),
        ({"image": {"tag": "2.0.0"}}, True),
        ({"gatekeeper": {"shutdownDelaySeconds": 20}}, True),
        ({"reconciler": {"startTimeoutSeconds": 300}}, True),
        ({"certificates": {"leafLifetimeSeconds": 3600}}, True),
        ({"podAnnotations": {"example.com/a": "b"}}, True),
        ({"server": {"url": "http://a"}}, True),
        ({"replicas": 5}, False),
        ({"webhooks": {"validating": {"failurePolicy": "Ignore", "timeoutSeconds": 1}}}, False),
        ({"podDisruptionBudget": {"maxUnavailable": 2}, "networkPolicy": {"enabled": True}}, False),
        ({"serviceMonitor": {"enabled": True}, "dashboards": {"enabled": True}, "commonLabels": {"a": "b"}}, False),
    ],
    ids=lambda part: "-".join(part) if isinstance(part, dict) else "",
)
def test_only_values_that_concern_pods_change_the_pod_template(
    chart: helm_python.Chart, values: Object, rolls: bool
) -> None:
    before, after = (the(rendered(chart, each), "Deployment")["spec"]["template"] for each in ({}, values))
    assert (before != after) is rolls


def test_user_labels_are_added_and_do_not_replace_labels_of_the_chart(chart: helm_python.Chart) -> None:
    mine = {"app.kubernetes.io/name": "mine", "app.kubernetes.io/part-of": "mine", "team": "platform"}
    values = {
        "commonLabels": mine,
        "podLabels": mine,
        "podAnnotations": {"kubectl.kubernetes.io/default-container": "reconciler"},
        "serviceMonitor": {"enabled": True, "labels": mine},
        "prometheusRule": {"enabled": True, "labels": mine},
        "dashboards": {"enabled": True, "labels": mine},
        "webhooks": {"annotations": {"argocd.argoproj.io/sync-wave": "5"}},
    }
    objects = rendered(chart, values)
    template = the(objects, "Deployment")["spec"]["template"]
    for metadata in (*(obj["metadata"] for obj in objects), template["metadata"]):
        assert metadata["labels"]["app.kubernetes.io/name"] == "altershield"
        assert metadata["labels"]["app.kubernetes.io/part-of"] == "altershield"
        assert metadata["labels"]["team"] == "platform"
    assert template["metadata"]["annotations"] == values["podAnnotations"], "users may override annotations of the pod"
    annotations = the(objects, "ValidatingWebhookConfiguration")["metadata"]["annotations"]
    assert annotations == values["webhooks"]["annotations"] | {"admissions.enforcer/disabled": "true"}


def test_resource_quota_is_large_enough_for_a_rollout(chart: helm_python.Chart) -> None:
    for replicas in (1, 100):
        quota = the(rendered(chart, {"replicas": replicas}), "ResourceQuota")
        assert int(quota["spec"]["hard"]["pods"]) > replicas


def test_memory_limits_exceed_the_measured_use(chart: helm_python.Chart) -> None:
    figures = (CHART.parents[1] / "docs" / "figures.md").read_text()
    rows = re.findall(r"^\| (gatekeeper|reconciler) \| [\d to]+ MiB \| (?:\d+ to )?(\d+) MiB \|", figures, re.M)
    most = {name: int(mebibytes) for name, mebibytes in rows}
    assert most.keys() == {"gatekeeper", "reconciler"}
    units = {"Mi": 1, "Gi": 1024}
    for name, container in containers(the(rendered(chart), "Deployment")).items():
        limit = container["resources"]["limits"]["memory"]
        assert int(limit[:-2]) * units[limit[-2:]] > 1.5 * most.get(name, 0)
        assert "cpu" not in container["resources"]["limits"], "throttled gatekeepers time out"


def test_chart_requires_kubernetes_1_30() -> None:
    metadata = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert metadata["kubeVersion"] == ">=1.30.0-0", "the sleep action of preStop, and matchConditions"


def test_check_consists_of_test_hooks_that_are_deleted(objects: list[Object]) -> None:
    hooks = [obj for obj in objects if is_hook(obj) and obj["metadata"]["annotations"][HOOK] == "test"]
    assert {obj["kind"] for obj in hooks} == {"Namespace", "ServiceAccount", "Role", "RoleBinding", "Pod"}
    (namespace,) = [obj["metadata"]["name"] for obj in hooks if obj["kind"] == "Namespace"]
    for hook in hooks:
        annotations = hook["metadata"]["annotations"]
        assert annotations[HOOK] == "test"
        inside = hook["metadata"].get("namespace") == namespace
        assert inside or "hook-succeeded" in annotations["helm.sh/hook-delete-policy"]


def test_check_pod_and_its_deployment_get_the_user_and_nodes_of_the_release(objects: list[Object]) -> None:
    deployed = the(objects, "Deployment")["spec"]["template"]["spec"]
    (pod,) = [obj["spec"] for obj in objects if obj["kind"] == "Pod"]
    (argument,) = [arg.partition("=")[2] for arg in pod["containers"][0]["args"] if arg.startswith("--pod-spec=")]
    fields = ("securityContext", "nodeSelector", "tolerations", "affinity")
    wanted = {field: deployed[field] for field in fields if field in deployed}
    if deployed.get("hostNetwork"):
        del wanted["affinity"]  # the chart's own, because two of these pods on a node would use the same ports
    assert {field: pod[field] for field in fields if field in pod} == wanted
    assert json.loads(argument) == wanted


def test_check_gets_registry_credentials_without_permission_to_read_secrets(objects: list[Object]) -> None:
    secrets = the(objects, "Deployment")["spec"]["template"]["spec"].get("imagePullSecrets", [])
    (pod,) = [obj["spec"] for obj in objects if obj["kind"] == "Pod"]
    sources = [source for each in pod["volumes"] for source in each["projected"]["sources"]]
    mounted = [source["secret"] for source in sources if "secret" in source]
    assert [{"name": secret["name"]} for secret in mounted] == secrets == pod.get("imagePullSecrets", [])
    assert all(secret["items"][0]["path"] == secret["name"] for secret in mounted)
    verbs = [rule["verbs"] for hook in objects if is_hook(hook) for rule in hook.get("rules", ())
             if "secrets" in rule["resources"]]  # fmt: skip
    assert verbs == ([["create", "delete"]] if secrets else [])


def test_rule_and_dashboard_files_are_installed_unchanged(tmp_path: Path) -> None:
    rule = {"alert": "Down", "expr": "up == 0", "annotations": {"summary": "{{ $labels.pod }} is down"}}
    groups = [{"name": "gate", "rules": [rule]}]
    dashboard = json.dumps({"title": "Health", "panels": [{"legendFormat": "{{pod}}"}]})
    copy = Path(shutil.copytree(CHART, tmp_path / CHART.name))
    for folder, file, content in (
        ("rules", "one.yaml", yaml.safe_dump({"groups": groups})),
        ("dashboards", "Health.json", dashboard),
    ):
        shutil.rmtree(copy / "files" / folder, ignore_errors=True)
        (copy / "files" / folder).mkdir()
        (copy / "files" / folder / file).write_text(content)
    values = {"prometheusRule": {"enabled": True}, "dashboards": {"enabled": True, "namespace": "monitoring"}}
    with helm_python.Chart.load(copy) as chart:
        objects = rendered(chart, values)
    assert the(objects, "PrometheusRule")["spec"]["groups"] == groups
    config_map = the(objects, "ConfigMap")
    assert config_map["metadata"]["namespace"] == "monitoring"
    assert config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert config_map["data"] == {"Health.json": dashboard}


def test_notes_warn_about_one_replica_and_show_the_next_command(chart: helm_python.Chart) -> None:
    assert "WARNING" not in notes(chart)
    assert "WARNING: replicas is 1" in notes(chart, {"replicas": 1})
    assert "kubectl label namespace NAME admission-webhook-altershield=enabled" in notes(chart)
    emergency = notes(chart).partition("EMERGENCY")[2]
    assert "delete validatingwebhookconfiguration,mutatingwebhookconfiguration altershield" in emergency
    assert "--replicas=0" in emergency, "the reconciler suspends and rolls back without webhooks, too"
    assert "Secret altershield-tls" in notes(chart, {"certificates": {"mode": "secret"}})


def test_artifact_hub_annotations_match_the_chart(chart: helm_python.Chart) -> None:
    metadata = chart.metadata
    annotations = metadata["annotations"]
    (image,) = yaml.safe_load(annotations["artifacthub.io/images"])
    assert image["image"] == containers(the(rendered(chart), "Deployment"))["gatekeeper"]["image"]
    crds = {
        crd["metadata"]["name"]: crd["spec"]["names"]["kind"]
        for crd in of_kind(rendered(chart), "CustomResourceDefinition")
    }
    assert {crd["name"]: crd["kind"] for crd in yaml.safe_load(annotations["artifacthub.io/crds"])} == crds
    for change in yaml.safe_load(annotations["artifacthub.io/changes"]):
        assert change["kind"] in {"added", "changed", "deprecated", "removed", "fixed", "security"}
        assert change["description"]
