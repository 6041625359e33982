"""Every object, over the matrix of values: known to Kubernetes, restricted, labelled."""

import json
import shutil
from pathlib import Path

import helm_python
import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from altershield.api.names import SYSTEM_NAMESPACE
from tests.chart.rendering import CHART, HOOK, OPERATORS, Object, containers, is_hook, notes, of_kind, rendered, the


def test_lint_finds_nothing(values: Object) -> None:
    report = helm_python.lint(str(CHART), values, strict=True, namespace=SYSTEM_NAMESPACE)
    assert report["errors"] == []
    assert [message for message in report["messages"] if message["severity"] > 1] == []


@pytest.mark.parametrize("version", ["1.30", "1.36"])
def test_objects_fit_the_schemas_of_the_oldest_and_the_newest_kubernetes(objects: list[Object], version: str) -> None:
    for obj in objects:
        if obj["apiVersion"] not in OPERATORS:
            kubernetes_validate.validate(obj, version, strict=True)


def test_objects_have_names_namespaces_and_the_recommended_labels(objects: list[Object]) -> None:
    cluster_scoped = {
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "MutatingWebhookConfiguration",
        "Namespace",
        "ValidatingWebhookConfiguration",
    }
    identities = set()
    for obj in objects:
        metadata = obj["metadata"]
        assert ("namespace" in metadata) == (obj["kind"] not in cluster_scoped), metadata
        suffixes = {"name", "instance", "version", "component", "part-of", "managed-by"}
        assert suffixes <= {key.removeprefix("app.kubernetes.io/") for key in metadata["labels"]}, metadata
        identities.add((obj["kind"], metadata.get("namespace"), metadata["name"]))
    assert len(identities) == len(objects)


def test_pods_keep_to_the_restricted_pod_security_standard(objects: list[Object]) -> None:
    pods = [obj["spec"] for obj in objects if obj["kind"] == "Pod"]
    pods += [obj["spec"]["template"]["spec"] for obj in of_kind(objects, "Deployment")]
    assert len(pods) == 2
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"].get("runAsUser") != 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not pod.keys() & {"hostNetwork", "hostPID", "hostIPC"}
        assert all(volume.keys() <= {"name", "emptyDir"} for volume in pod.get("volumes", ()))
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}


def test_one_pod_has_gatekeeper_reconciler_and_the_keeper_of_the_certificate(objects: list[Object]) -> None:
    deployment = the(objects, "Deployment")
    assert list(containers(deployment)) == ["gatekeeper", "reconciler", "certgen"]
    assert len({container["image"] for container in containers(deployment).values()}) == 1


def test_no_pod_goes_before_its_successor_serves(objects: list[Object]) -> None:
    spec = the(objects, "Deployment")["spec"]
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert spec["minReadySeconds"] > 0
    for container in spec["template"]["spec"]["containers"]:
        assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
        assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"


def test_a_pod_has_time_to_drain(objects: list[Object]) -> None:
    pod = the(objects, "Deployment")["spec"]["template"]["spec"]
    gatekeeper = containers(the(objects, "Deployment"))["gatekeeper"]
    (delay,) = [float(arg.partition("=")[2]) for arg in gatekeeper["args"] if arg.startswith("--shutdown-delay=")]
    before = gatekeeper.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    longest_answers = 1 + 30 + 10  # gatekeeper.app: late requests, those in flight, the last bytes
    assert pod["terminationGracePeriodSeconds"] > before + delay + longest_answers


def test_selectors_find_the_pods_of_the_gate_and_no_others(objects: list[Object]) -> None:
    template = the(objects, "Deployment")["spec"]["template"]
    selectors = [
        the(objects, "Deployment")["spec"]["selector"]["matchLabels"],
        the(objects, "Service")["spec"]["selector"],
        *(obj["spec"]["selector"]["matchLabels"] for obj in of_kind(objects, "PodDisruptionBudget")),
        *(obj["spec"]["podSelector"]["matchLabels"] for obj in of_kind(objects, "NetworkPolicy")),
        *(each["labelSelector"]["matchLabels"] for each in template["spec"]["topologySpreadConstraints"]),
    ]
    (check,) = [obj for obj in objects if obj["kind"] == "Pod"]
    for selector in selectors:
        assert selector.items() <= template["metadata"]["labels"].items()
        assert not selector.items() <= check["metadata"]["labels"].items()
    for monitor in of_kind(objects, "ServiceMonitor"):
        chosen = monitor["spec"]["selector"]["matchLabels"]
        assert chosen.items() <= the(objects, "Service")["metadata"]["labels"].items()


def test_a_service_port_leads_to_a_container_port(objects: list[Object]) -> None:
    named = {
        port["name"]: port["containerPort"]
        for container in containers(the(objects, "Deployment")).values()
        for port in container["ports"]
    }
    ports = the(objects, "Service")["spec"]["ports"]
    assert [port["targetPort"] for port in ports] == list(named)
    assert all(port["port"] == named[port["targetPort"]] for port in ports if port["name"] != "webhook")
    for policy in of_kind(objects, "NetworkPolicy"):
        assert [port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]] == list(named)
    for monitor in of_kind(objects, "ServiceMonitor"):
        assert [each["port"] for each in monitor["spec"]["endpoints"]] == [name for name in named if name != "webhook"]


def test_a_release_of_any_name_calls_its_own_service(chart: helm_python.Chart) -> None:
    for release, name in {"altershield": "altershield", "gate": "gate-altershield", "x" * 53: "x" * 48}.items():
        objects = rendered(chart, release=release)
        assert the(objects, "Service")["metadata"]["name"] == name
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
            (webhook,) = the(objects, kind)["webhooks"]
            assert webhook["clientConfig"]["service"]["name"] == name


def test_the_check_is_a_hook_and_leaves_nothing(objects: list[Object]) -> None:
    hooks = [obj for obj in objects if is_hook(obj)]
    assert {obj["kind"] for obj in hooks} == {"Namespace", "ServiceAccount", "Role", "RoleBinding", "Pod"}
    (namespace,) = [obj["metadata"]["name"] for obj in hooks if obj["kind"] == "Namespace"]
    for hook in hooks:
        annotations = hook["metadata"]["annotations"]
        assert annotations[HOOK] == "test"
        inside = hook["metadata"].get("namespace") == namespace
        assert inside or "hook-succeeded" in annotations["helm.sh/hook-delete-policy"]


def test_rules_and_dashboards_among_the_files_are_installed_as_they_are(tmp_path: Path) -> None:
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


def test_notes_warn_below_two_replicas_and_tell_the_next_command(chart: helm_python.Chart) -> None:
    assert "WARNING" not in notes(chart)
    assert "WARNING: with 1 replica(s)" in notes(chart, {"replicas": 1})
    assert "kubectl label namespace NAME admission-webhook-altershield=enabled" in notes(chart)
    assert "Secret altershield-tls" in notes(chart, {"certificates": {"mode": "secret"}})


def test_annotations_for_artifact_hub_are_right(chart: helm_python.Chart) -> None:
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
