"""The values that platform teams set in every chart: where the pods run, their image, account and environment, the
webhooks, and monitoring."""

import inspect
import re
from typing import Any

import helm_python
import pytest
import yaml

import reconciler.__main__
from altershield.admission.registration import Feature
from altershield.admission.webhooks import MUTATING, VALIDATING
from altershield.api.names import SYSTEM_NAMESPACE
from certgen.settings import service_hosts
from gatekeeper import metrics
from tests.chart.arguments import parsed
from tests.chart.rendering import (
    Object,
    all_containers,
    containers,
    is_hook,
    notes,
    of_kind,
    rendered,
    the,
    user_roles,
    variables,
)
from tests.docs.pages import ROOT, blocks

CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def pod(chart: helm_python.Chart, values: Object) -> Object:
    spec: Object = the(rendered(chart, values), "Deployment")["spec"]["template"]["spec"]
    return spec


NOT_GOVERNED = [each.name for each in VALIDATING if each.feature == Feature.DELETIONS]
"""The webhooks that are called for all namespaces."""


def webhooks(chart: helm_python.Chart, values: Object) -> list[Object]:
    objects = rendered(chart, values)
    return [webhook for kind in CONFIGURATIONS for webhook in the(objects, kind)["webhooks"]]


# The image.


@pytest.mark.parametrize(
    ("values", "image"),
    [
        ({}, "registry.invalid/altershield:0.1.0"),
        ({"image": {"repository": "registry.example.com/gate"}}, "registry.example.com/gate:0.1.0"),
        ({"image": {"registry": "registry.example.com:5000"}}, "registry.example.com:5000/altershield:0.1.0"),
        ({"image": {"registry": "r.example.com/", "repository": "team/gate"}}, "r.example.com/team/gate:0.1.0"),
        ({"global": {"imageRegistry": "mirror.example.com/a"}}, "mirror.example.com/a/altershield:0.1.0"),
        (
            {"global": {"imageRegistry": "mirror"}, "image": {"registry": "other", "repository": "gate", "tag": "2"}},
            "mirror/gate:2",
        ),
        ({"image": {"registry": "r", "tag": "2", "digest": f"sha256:{'0' * 64}"}}, f"r/altershield@sha256:{'0' * 64}"),
    ],
)
def test_image_has_the_global_registry_then_its_own(chart: helm_python.Chart, values: Object, image: str) -> None:
    objects = rendered(chart, values)
    assert {each["image"] for each in all_containers(objects).values()} == {image}
    (check,) = [obj["spec"]["containers"][0] for obj in objects if obj["kind"] == "Pod"]
    assert check["image"] == image
    assert f"--image={image}" in check["args"]


def test_nobody_can_publish_an_image_under_the_default_name(chart: helm_python.Chart) -> None:
    """RFC 2606 reserves the top-level domain `invalid`."""
    (image,) = {each["image"] for each in all_containers(rendered(chart)).values()}
    assert image.partition("/")[0].endswith(".invalid")
    assert f"IMAGE: {image} can be pulled from nowhere" in notes(chart)
    assert "IMAGE:" not in notes(chart, {"image": {"registry": "registry.example.com"}})


def test_global_pull_secrets_may_be_names_or_objects_and_appear_once(chart: helm_python.Chart) -> None:
    values: Object = {
        "global": {"imagePullSecrets": ["mirror", {"name": "registry"}]},
        "imagePullSecrets": [{"name": "registry"}, {"name": "own"}],
    }
    wanted = [{"name": name} for name in ("mirror", "registry", "own")]
    assert pod(chart, values)["imagePullSecrets"] == wanted
    (check,) = [obj["spec"] for obj in rendered(chart, values) if obj["kind"] == "Pod"]
    assert check["imagePullSecrets"] == wanted


# The account and its roles.


def test_an_existing_account_is_used_and_bound(chart: helm_python.Chart) -> None:
    objects = rendered(chart, {"serviceAccount": {"create": False, "name": "mine"}})
    assert of_kind(objects, "ServiceAccount") == []
    assert the(objects, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == "mine"
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        assert [subject["name"] for subject in the(objects, kind)["subjects"]] == ["mine"]


def test_annotations_of_the_account_are_rendered(chart: helm_python.Chart) -> None:
    objects = rendered(chart, {"serviceAccount": {"annotations": {"example.com/role": "gate"}}})
    assert the(objects, "ServiceAccount")["metadata"]["annotations"] == {"example.com/role": "gate"}


def test_without_rbac_no_role_is_created_and_certgen_sets_no_owner(chart: helm_python.Chart) -> None:
    objects = rendered(chart, {"rbac": {"create": False}, "checks": {"secretNamespaces": ["shop"]}})
    kinds = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    assert [obj for kind in kinds for obj in of_kind(objects, kind)] == []
    assert user_roles(objects) == []
    assert not [arg for arg in all_containers(objects)["certgen"]["args"] if arg.startswith("--owner")]


# The pods.


def test_environment_of_all_containers_and_of_one(chart: helm_python.Chart) -> None:
    values: Object = {"extraEnv": [{"name": "ALL", "value": "1"}]}
    for key in ("gatekeeper", "reconciler", "certificates"):
        values[key] = {"extraEnv": [{"name": key.upper(), "value": "1"}]}
    for name, container in all_containers(rendered(chart, values)).items():
        key = "certificates" if name == "certgen" else name
        found = variables(container)
        assert found["ALL"] == found[key.upper()] == "1"
        assert not {"GATEKEEPER", "RECONCILER", "CERTIFICATES"} - {key.upper()} & found.keys()


PASSED: list[tuple[str, Any]] = [
    ("hostAliases", [{"ip": "10.0.0.1", "hostnames": ["proxy"]}]),
    ("dnsConfig", {"nameservers": ["10.0.0.10"]}),
    ("dnsPolicy", "None"),
    ("runtimeClassName", "gvisor"),
    ("topologySpreadConstraints", [{"topologyKey": "region", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]),
    ("initContainers", [{"name": "wait", "image": "wait:1"}]),
]


@pytest.mark.parametrize(("key", "value"), PASSED, ids=lambda part: part if isinstance(part, str) else "")
def test_fields_of_pods_are_passed_on_to_both_deployments(chart: helm_python.Chart, key: str, value: object) -> None:
    objects = rendered(chart, {key: value, "reconciler": {"separate": True}})
    for deployment in of_kind(objects, "Deployment"):
        assert deployment["spec"]["template"]["spec"][key] == value
        assert key not in pod(chart, {}) or key == "topologySpreadConstraints"


def test_volumes_are_mounted_in_all_containers(chart: helm_python.Chart) -> None:
    volume = {"name": "trust", "configMap": {"name": "ca"}}
    mount = {"name": "trust", "mountPath": "/etc/ca", "readOnly": True}
    values = {"extraVolumes": [volume], "extraVolumeMounts": [mount], "reconciler": {"separate": True}}
    objects = rendered(chart, values)
    for deployment in of_kind(objects, "Deployment"):
        assert volume in deployment["spec"]["template"]["spec"]["volumes"]
        for container in containers(deployment).values():
            assert mount in container["volumeMounts"]


def test_strategy_history_probes_and_security_context_replace_the_defaults(chart: helm_python.Chart) -> None:
    values: Object = {
        "strategy": {"type": "Recreate"},
        "revisionHistoryLimit": 0,
        "probes": {
            "startup": {"failureThreshold": 8},
            "liveness": {"failureThreshold": 9},
            "readiness": {"timeoutSeconds": 1},
        },
        "containerSecurityContext": {"runAsUser": 1000},
    }
    deployment = the(rendered(chart, values), "Deployment")
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    assert deployment["spec"]["revisionHistoryLimit"] == 0
    gatekeeper, certgen = containers(deployment)["gatekeeper"], containers(deployment)["certgen"]
    assert gatekeeper["livenessProbe"]["failureThreshold"] == 9
    assert gatekeeper["livenessProbe"]["timeoutSeconds"] == 5
    assert gatekeeper["readinessProbe"]["timeoutSeconds"] == 1
    assert certgen["startupProbe"]["failureThreshold"] == 8
    for container in containers(deployment).values():
        assert container["securityContext"]["runAsUser"] == 1000
        assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_extra_objects_are_templates(chart: helm_python.Chart) -> None:
    head = {"apiVersion": "v1", "kind": "ConfigMap"}
    text = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "{{ .Release.Namespace }}"}\n'
    objects = rendered(chart, {"extraObjects": [{**head, "metadata": {"name": "{{ .Release.Name }}-a"}}, text]})
    assert [obj["metadata"]["name"] for obj in of_kind(objects, "ConfigMap")] == ["altershield-a", SYSTEM_NAMESPACE]


def test_services_have_the_ip_families(chart: helm_python.Chart) -> None:
    service = {"ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv6", "IPv4"]}
    values = {"service": service, "reconciler": {"separate": True}, "server": {"callbacks": {"enabled": True}}}
    found = of_kind(rendered(chart, values), "Service")
    assert len(found) == 3
    for each in found:
        assert {key: each["spec"][key] for key in service} == service
    assert "ipFamilyPolicy" not in the(rendered(chart), "Service")["spec"]


def test_autoscaling_uses_the_requests_in_flight_instead_of_a_number_of_replicas(chart: helm_python.Chart) -> None:
    values = {"autoscaling": {"enabled": True, "minReplicas": 2, "maxReplicas": 99, "inFlightRequests": 7}}
    objects = rendered(chart, values)
    assert "replicas" not in the(objects, "Deployment")["spec"]
    spec = the(objects, "HorizontalPodAutoscaler")["spec"]
    assert spec["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "altershield"}
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 99)
    (metric,) = spec["metrics"]
    assert metric["pods"]["target"] == {"type": "AverageValue", "averageValue": "7"}
    assert f'"{metric["pods"]["metric"]["name"]}"' in inspect.getsource(metrics)
    assert int(the(objects, "ResourceQuota")["spec"]["hard"]["pods"]) > 99


def test_autoscaling_between_reversed_limits_is_rejected(chart: helm_python.Chart) -> None:
    with pytest.raises(
        helm_python.HelmError, match=r"maxReplicas \(2\) must be at least autoscaling.minReplicas \(3\)"
    ):
        rendered(chart, {"autoscaling": {"enabled": True, "maxReplicas": 2}})


def test_values_in_the_docs_are_accepted(chart: helm_python.Chart) -> None:
    pages = [(ROOT / "docs" / name).read_text() for name in ("install.md", "callers.md")]
    shown = [yaml.safe_load(block.text) for page in pages for block in blocks(page) if block.language == "yaml"]
    values = [each for each in shown if "kind" not in each]
    assert {"hostNetwork", "reconciler", "networkPolicy"} <= {key for each in values for key in each}
    for each in values:
        rendered(chart, each)


# The network.


def test_host_network_has_its_own_ports_and_one_pod_per_node(chart: helm_python.Chart) -> None:
    values: Object = {
        "hostNetwork": True,
        "gatekeeper": {"port": 10260},
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}},
    }
    spec = pod(chart, values)
    assert (spec["hostNetwork"], spec["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    own = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": the(rendered(chart, values), "Deployment")["spec"]["selector"],
    }
    terms = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert terms == [{"topologyKey": "zone"}, own]
    assert pod(chart, {**values, "dnsPolicy": "Default"})["dnsPolicy"] == "Default"
    assert "hostNetwork" not in pod(chart, {})
    policy = {"networkPolicy": {"enabled": True}}
    assert "NetworkPolicies have no effect" in notes(chart, {**values, **policy})
    assert "NetworkPolicies have no effect" not in notes(chart, policy)


def test_only_the_pods_with_gatekeepers_use_the_host_network(chart: helm_python.Chart) -> None:
    values = {"hostNetwork": True, "gatekeeper": {"port": 10260}, "reconciler": {"separate": True}}
    uses = {
        obj["metadata"]["name"]: obj["spec"]["template"]["spec"].get("hostNetwork", False)
        for obj in of_kind(rendered(chart, values), "Deployment")
    }
    assert uses == {"altershield": True, "altershield-reconciler": False}


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"hostNetwork": True}, "gatekeeper.port must not be 10250 with hostNetwork: the kubelet"),
        ({"gatekeeper": {"port": 8080}}, "gatekeeper.metricsPort must not be 8080: another container"),
        ({"reconciler": {"metricsPort": 8082}}, "reconciler.metricsPort must not be 8082"),
        ({"webhooks": {"url": "https://a b"}}, None),
        ({"webhooks": {"url": "http://gate"}}, None),
        ({"webhooks": {"url": "https://user@gate"}}, "webhooks.url must look like"),
        ({"webhooks": {"url": "https://gate?a=b"}}, "webhooks.url must look like"),
    ],
)
def test_ports_and_urls_that_cannot_work_are_rejected(
    chart: helm_python.Chart, values: Object, sentence: str | None
) -> None:
    with pytest.raises(helm_python.HelmError, match=re.escape(sentence) if sentence else "does not match pattern"):
        rendered(chart, values)


def test_separate_pods_may_use_the_same_ports(chart: helm_python.Chart) -> None:
    rendered(chart, {"reconciler": {"separate": True, "metricsPort": 8080}})


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://gate.example.com", "gate.example.com"),
        ("https://gate.example.com:8443/path/", "gate.example.com"),
        ("https://10.0.0.1:443", "10.0.0.1"),
        ("https://[fd00::1]:443", "fd00::1"),
        ("https://[fd00::1]", "fd00::1"),
    ],
)
def test_webhooks_have_the_url_and_the_certificate_its_host(chart: helm_python.Chart, url: str, host: str) -> None:
    values: Object = {"webhooks": {"url": url}}
    found = {webhook["clientConfig"]["url"] for webhook in webhooks(chart, values)}
    assert found == {url.rstrip("/") + webhook.path for webhook in (*MUTATING, *VALIDATING)}
    certgen = all_containers(rendered(chart, values))["certgen"]
    names = service_hosts("altershield", SYSTEM_NAMESPACE)
    assert tuple(variables(certgen)["ALTERSHIELD_SAN"].split()) == (*names, host)
    issued = of_kind(rendered(chart, {**values, "certificates": {"mode": "cert-manager"}}), "Certificate")
    (leaf,) = [obj["spec"] for obj in issued if not obj["spec"].get("isCA")]
    assert [*leaf["dnsNames"], *leaf.get("ipAddresses", [])] == [*names, host]
    assert (leaf.get("ipAddresses") == [host]) is (not host.startswith("gate"))


def peers_of_pages() -> list[list[Object]]:
    """The examples of `networkPolicy.webhookFrom` in the documents."""
    texts = [block.text for block in blocks((ROOT / "docs" / "callers.md").read_text()) if block.language == "yaml"]
    found = [yaml.safe_load(text).get("networkPolicy", {}).get("webhookFrom") for text in texts]
    return [peers for peers in found if peers]


@pytest.mark.parametrize("peers", peers_of_pages(), ids=["own addresses", "all but pods", "EKS", "GKE", "AKS"])
def test_network_policy_limits_who_may_send_reviews_and_adds_rules(
    chart: helm_python.Chart, peers: list[Object]
) -> None:
    more: Any = [{"ports": [{"port": 9999, "protocol": "TCP"}]}]
    policy = {"enabled": True, "webhookFrom": peers, "extraIngress": more, "extraEgress": more}
    plain = the(rendered(chart, {"networkPolicy": {"enabled": True}}), "NetworkPolicy")["spec"]
    spec = the(rendered(chart, {"networkPolicy": policy}), "NetworkPolicy")["spec"]
    assert "from" not in plain["ingress"][0], "the addresses of API servers are not known"
    assert spec["ingress"] == [{"from": peers, **plain["ingress"][0]}, *plain["ingress"][1:], *more]
    assert spec["egress"] == [*plain["egress"], *more]


# The webhooks.


def test_webhook_names_rules_and_dashboards_get_the_suffix(chart: helm_python.Chart) -> None:
    values: Object = {
        "webhooks": {"nameSuffix": "altershield.example.com"},
        "prometheusRule": {"enabled": True},
        "dashboards": {"enabled": True},
    }
    names = [webhook["name"] for webhook in webhooks(chart, values)]
    assert names == [each.name.replace("kb.io", "altershield.example.com") for each in (*MUTATING, *VALIDATING)]
    objects = rendered(chart, values)
    text = str([the(objects, "PrometheusRule"), *of_kind(objects, "ConfigMap")])
    assert "[.]altershield[.]example[.]com" in text
    assert "kb[.]io" not in text
    patterns = set(re.findall(r'\bname=~"([^"]+)"', str(the(objects, "PrometheusRule"))))
    assert {name for name in names for pattern in patterns if re.fullmatch(pattern, name)} == set(names)
    assert not any(re.fullmatch(pattern, "mdeployment.kb.io") for pattern in patterns), "the webhook of another product"


def test_exempt_namespaces_and_selector_hold_for_webhooks_and_reconciler(chart: helm_python.Chart) -> None:
    values: Object = {
        "webhooks": {
            "exemptNamespaces": ["a", "b"],
            "namespaceSelector": {
                "matchLabels": {"stage": "production"},
                "matchExpressions": [
                    {"key": "team", "operator": "In", "values": ["x", "y"]},
                    {"key": "managed", "operator": "Exists"},
                    {"key": "paused", "operator": "DoesNotExist"},
                ],
            },
        }
    }
    for webhook in webhooks(chart, values):
        if webhook["name"] in NOT_GOVERNED:
            assert "namespaceSelector" not in webhook
            continue
        selector = webhook["namespaceSelector"]
        assert selector["matchLabels"] == {"admission-webhook-altershield": "enabled"}
        always, *more = selector["matchExpressions"]
        assert always["values"] == ["kube-system", SYSTEM_NAMESPACE]
        assert [(each["key"], each["operator"], each.get("values")) for each in more] == [
            ("stage", "In", ["production"]),
            ("team", "In", ["x", "y"]),
            ("managed", "Exists", None),
            ("paused", "DoesNotExist", None),
            ("kubernetes.io/metadata.name", "NotIn", ["a", "b"]),
        ]
    arguments = all_containers(rendered(chart, values))["reconciler"]["args"]
    selector = parsed(reconciler.__main__.app, list(arguments)).params["namespace_selector"]
    assert selector == ("stage in (production),team in (x,y),managed,!paused,kubernetes.io/metadata.name notin (a,b)")
    plain = all_containers(rendered(chart))["reconciler"]["args"]
    assert not [each for each in plain if each.startswith("--namespace-selector")]


def test_object_selector_and_conditions_are_added_to_the_webhooks_of_releases(chart: helm_python.Chart) -> None:
    condition = {"name": "not-the-backup", "expression": "request.userInfo.username != 'backup'"}
    selector = {"matchLabels": {"gate": "on"}}
    plain = webhooks(chart, {})
    found = webhooks(chart, {"webhooks": {"objectSelector": selector, "matchConditions": [condition]}})
    of_releases = {each.name for each in (*MUTATING, *VALIDATING) if each.feature == Feature.RELEASES}
    for before, after in zip(plain, found, strict=True):
        if before["name"] not in of_releases:
            assert after == before
            continue
        assert after["objectSelector"] == selector
        assert after["matchConditions"] == [*before["matchConditions"], condition]
        assert "objectSelector" not in before


# Monitoring.


def test_monitors_are_in_their_namespace_and_select_the_release(chart: helm_python.Chart) -> None:
    relabeling = {"sourceLabels": ["a"], "targetLabel": "b"}
    own: Object = {
        "enabled": True,
        "namespace": "monitoring",
        "scrapeTimeout": "5s",
        "relabelings": [relabeling],
        "metricRelabelings": [relabeling],
        "labels": {"release": "prometheus"},
    }
    values = {"serviceMonitor": own, "podMonitor": own, "prometheusRule": {"enabled": True, "namespace": "monitoring"}}
    objects = rendered(chart, values)
    for kind in ("ServiceMonitor", "PodMonitor", "PrometheusRule"):
        assert the(objects, kind)["metadata"]["namespace"] == "monitoring"
    for kind, endpoints in (("ServiceMonitor", "endpoints"), ("PodMonitor", "podMetricsEndpoints")):
        monitor = the(objects, kind)
        assert monitor["metadata"]["labels"]["release"] == "prometheus"
        assert monitor["spec"]["namespaceSelector"] == {"matchNames": [SYSTEM_NAMESPACE]}
        for endpoint in monitor["spec"][endpoints]:
            assert endpoint["relabelings"] == endpoint["metricRelabelings"] == [relabeling]
            assert endpoint["scrapeTimeout"] == "5s"


def test_notes_say_where_runbooks_must_be(chart: helm_python.Chart) -> None:
    enabled = {"enabled": True}
    assert "RUNBOOKS:" not in notes(chart)
    assert "set prometheusRule.runbookUrl" in notes(chart, {"prometheusRule": enabled})
    mine = {**enabled, "runbookUrl": "https://wiki.example.com/runbooks/"}
    assert "RUNBOOKS:" not in notes(chart, {"prometheusRule": mine})


def test_everything_is_rendered_together(chart: helm_python.Chart, values: Object) -> None:
    """Each file of values also works with a separate reconciler."""
    separate = {**values, "reconciler": {**values.get("reconciler", {}), "separate": True}}
    found = of_kind(rendered(chart, separate), "Deployment")
    assert [list(containers(each)) for each in found] == [["gatekeeper", "certgen"], ["reconciler"]]
    assert not [obj for obj in found if is_hook(obj)]
