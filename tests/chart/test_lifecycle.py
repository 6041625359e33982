"""Install, upgrade, roll back and uninstall the chart with the real Helm engine on a live API."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import helm_python
import pytest

from altershield.admission.registration import Feature
from altershield.admission.webhooks import MUTATING, VALIDATING
from altershield.api.names import SYSTEM_NAMESPACE
from certgen.garbage_collection import set_owner
from command.install.crds import crds
from kube_base.access.client import Client
from kube_base.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from tests.chart.release import CHANGE_WORKLOAD, Release, changed_chart, listed
from tests.chart.rendering import CHART, OPERATORS, RELEASE, VALUES, Object, is_hook, loaded, rendered, the
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually

OF_RELEASES = {each.name for each in VALIDATING if each.feature == Feature.RELEASES}

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chart")]

POLICIES = "validatingadmissionpolicies,validatingadmissionpolicybindings"
WEBHOOKS = "mutatingwebhookconfigurations,validatingwebhookconfigurations"


def left(system: Kubectl, kinds: str) -> list[str]:
    """The names of the release's objects that exist."""
    labels = f"app.kubernetes.io/instance={RELEASE}"
    return system("get", kinds, "-A", "-l", labels, "-o", "name").split()


def test_release_is_installed_upgraded_rolled_back_and_uninstalled(
    release: Release, system: Kubectl, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    on_own_nodes = not request.config.getoption("--kubeconfig")  # simulated nodes run any image
    assert release.install(wait=on_own_nodes)["status"] == "deployed"
    assert len(left(system, WEBHOOKS)) == 2
    assert left(system, POLICIES)
    if on_own_nodes:
        system.wait(f"deployment/{RELEASE}", "condition=Available")
        pods = system.json("pods", "-l", "app.kubernetes.io/component=gate")["items"]
        assert len({pod["spec"]["nodeName"] for pod in pods}) == 3
    system.wait("crd/changeworkloads.app.ops.cloud.alipay.com", "condition=Established")
    system("create", "-f", "-", stdin=json.dumps(CHANGE_WORKLOAD))
    publish(system, "Q0E=")

    upgraded = release.upgrade({"replicas": 2, "webhooks": {"validating": {"failurePolicy": "Ignore"}}},
                               changed_chart(tmp_path))  # fmt: skip
    assert upgraded["revision"] == 2
    assert system.json("deployment", RELEASE)["spec"]["replicas"] == 2
    for webhook in system.json("validatingwebhookconfiguration", RELEASE)["webhooks"]:
        assert webhook["name"] not in OF_RELEASES or webhook["failurePolicy"] == "Ignore"
        assert webhook["clientConfig"]["caBundle"] == "Q0E=", "an upgrade must not change caBundle"
    assert system.json("changeworkload", "kept")["spec"] == CHANGE_WORKLOAD["spec"]

    def takes_ticket() -> bool:
        system("patch", "changeworkload", "kept", "--type=merge", "-p", '{"spec":{"ticket":"CHG-1"}}')
        return "ticket" in system.json("changeworkload", "kept")["spec"]

    eventually(takes_ticket, "the new schema to be served")

    release.rollback(1)
    assert system.json("deployment", RELEASE)["spec"]["replicas"] == 3
    for webhook in system.json("validatingwebhookconfiguration", RELEASE)["webhooks"]:
        assert webhook["name"] not in OF_RELEASES or webhook["failurePolicy"] == "Fail"
        assert webhook["clientConfig"]["caBundle"] == "Q0E="

    release.uninstall()
    assert (
        left(system, f"{WEBHOOKS},{POLICIES},clusterroles,clusterrolebindings,deployments,services,serviceaccounts")
        == []
    )
    assert len(left(system, "customresourcedefinitions")) == len(crds()), "the CustomResourceDefinitions must stay"
    assert system.json("changeworkload", "kept")["metadata"]["name"] == "kept"
    system("delete", "changeworkload", "kept")
    release.install()  # adopts the CRDs that were kept
    assert len(left(system, "customresourcedefinitions")) == len(crds())


def publish(system: Kubectl, bundle: str) -> None:
    """Set caBundle as certgen does."""
    for kind, webhooks in (("MutatingWebhookConfiguration", MUTATING), ("ValidatingWebhookConfiguration", VALIDATING)):
        applied = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": RELEASE},
            "webhooks": [{"name": each.name, "clientConfig": {"caBundle": bundle}} for each in webhooks],
        }
        flags = ["--server-side", "--force-conflicts", "--field-manager=altershield-certgen"]
        system("apply", *flags, "-f", "-", stdin=json.dumps(applied))


def test_applying_the_rendered_objects_again_changes_nothing(
    release: Release, system: Kubectl, chart: helm_python.Chart
) -> None:
    """Argo CD and Flux apply the rendered objects again and again."""
    release.install()
    release.uninstall()
    objects = [obj for obj in rendered(chart) if not is_hook(obj)]
    manifest = listed(objects)
    pruned = listed([obj for obj in objects if obj["kind"] != "CustomResourceDefinition"])  # CRDs stay
    for flags in (["--server-side", "--field-manager=kustomize-controller"], []):

        def no_diff(flags: list[str] = flags) -> bool:  # a first diff may show a status that is changing
            return system.run("diff", *flags, "-f", "-", stdin=manifest).returncode == 0

        try:
            system("apply", *flags, "-f", "-", stdin=manifest)
            publish(system, "Q0E=")
            asyncio.run(own(system))
            before = generations(system)
            eventually(no_diff, f"kubectl diff {' '.join(flags)} to find nothing")
            system("apply", *flags, "-f", "-", stdin=manifest)
            assert generations(system) == before
            for webhook in system.json("mutatingwebhookconfiguration", RELEASE)["webhooks"]:
                assert webhook["clientConfig"]["caBundle"] == "Q0E="
            for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
                (owner,) = system.json(kind, RELEASE)["metadata"]["ownerReferences"]
                assert owner["kind"] == "ClusterRole"
        finally:
            system("delete", "-f", "-", "--ignore-not-found", stdin=pruned)
        assert left(system, f"{WEBHOOKS},{POLICIES}") == [], "these tools run no delete hooks"


async def own(system: Kubectl) -> None:
    """Set the owner as certgen does."""
    async with await Client.connect(str(system.kubeconfig)) as client:
        await set_owner(
            client, [(resource, "", RELEASE) for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)], RELEASE
        )


def generations(system: Kubectl) -> dict[str, int]:
    found = system.json(f"deployments,{WEBHOOKS}", "-l", f"app.kubernetes.io/instance={RELEASE}")["items"]
    return {f"{each['kind']}/{each['metadata']['name']}": each["metadata"]["generation"] for each in found}


def test_objects_of_a_release_can_be_renamed(release: Release, system: Kubectl) -> None:
    release.install()
    release.upgrade({"fullnameOverride": "renamed"})
    kinds = f"{WEBHOOKS},deployments,services,clusterroles,clusterrolebindings"
    names = {
        "renamed",
        "renamed-view",
        "renamed-verdicts",
        "renamed-approvals",
        "renamed-policies",
        "renamed-breaker",
        "renamed-breakglass",
        "renamed-release-manager",
        "renamed-budgets",
        "renamed-break-glass",
    }
    assert {name.partition("/")[2] for name in left(system, kinds)} == names


def test_pods_are_admitted_in_a_namespace_that_enforces_the_restricted_standard(
    system: Kubectl, chart: helm_python.Chart
) -> None:
    enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "restricted", "labels": enforced}}
    system("create", "-f", "-", stdin=json.dumps(namespace))
    inside = Kubectl(system.kubeconfig, "restricted")
    try:
        inside("create", "serviceaccount", RELEASE)
        inside("create", "serviceaccount", "altershield-check")
        template = the(rendered(chart), "Deployment")["spec"]["template"]
        (check,) = [obj for obj in rendered(chart) if obj["kind"] == "Pod"]
        template["spec"].pop("priorityClassName")  # needs a ResourceQuota in the namespace
        for pod in (template, check):
            made = {"apiVersion": "v1", "kind": "Pod", "spec": pod["spec"], "metadata": {"name": "pod"}}
            done = inside.run("create", "--dry-run=server", "-f", "-", stdin=json.dumps(made))
            assert (done.returncode, done.stderr) == (0, "")
    finally:
        system.run("delete", "namespace", "restricted", "--wait=false")


def test_a_second_installation_in_the_cluster_is_refused(release: Release, cluster: Path) -> None:
    release.install()
    other = helm_python.Config(kubeconfig_path=cluster, namespace="default")
    with pytest.raises(helm_python.HelmError, match="AlterShield is already installed in this cluster"):
        other.install(str(CHART), "another", {}, dry_run="server")


def test_notes_name_other_products_whose_webhooks_have_the_same_names(release: Release, system: Kubectl) -> None:
    theirs = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "kueue"},
        "webhooks": [
            {
                "name": "vdeployment.kb.io",
                "clientConfig": {"url": "https://127.0.0.1:1/validate"},
                "rules": [
                    {"apiGroups": ["none"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["none"]}
                ],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }
    system("create", "-f", "-", stdin=json.dumps(theirs))
    try:
        release.install()
        assert "WARNING: kueue has webhooks with the same names as AlterShield's" in release.notes()
        release.uninstall()
        release.install({"webhooks": {"nameSuffix": "altershield.example.com"}})
        assert "WARNING" not in release.notes()
        names = {webhook["name"] for webhook in system.json("validatingwebhookconfiguration", RELEASE)["webhooks"]}
        assert "vdeployment.altershield.example.com" in names
    finally:
        system("delete", "validatingwebhookconfiguration", "kueue")


def test_helm_test_can_be_repeated_and_leaves_no_objects(
    release: Release, system: Kubectl, request: pytest.FixtureRequest
) -> None:
    """Only the hooks: test_image runs the check itself. A pod on a simulated node never ends, so the test sets its
    phase."""
    if request.config.getoption("--kubeconfig"):
        pytest.skip("needs simulated nodes: real nodes cannot pull the image")
    release.install()
    for _ in range(2):
        with ThreadPoolExecutor() as pool:
            tested = pool.submit(release.test)
            system.wait("pod/altershield-check", "create")
            system.wait("pod/altershield-check", "condition=Ready")
            end = ["--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Succeeded"}}']
            system("patch", "pod", "altershield-check", *end)
            assert tested.result()["release"]["status"] == "deployed"
        hooks = "namespaces,pods,serviceaccounts,roles,rolebindings"
        assert system("get", hooks, "-A", "-l", "app.kubernetes.io/component=check", "-o", "name") == ""


def test_api_server_accepts_every_object_and_changes_no_field(system: Kubectl, chart: helm_python.Chart) -> None:
    """A value that the API server stores in another notation, such as a quantity, is a permanent difference for GitOps
    tools. Most objects are the same for most values."""
    system.run("create", "namespace", SYSTEM_NAMESPACE)
    distinct = {json.dumps(obj): obj for path in VALUES for obj in rendered(chart, loaded(path))}
    known = [obj for obj in distinct.values() if obj["apiVersion"] not in OPERATORS and not is_hook(obj)]
    # without objects in other namespaces, which may not exist
    known = [obj for obj in known if obj["metadata"].get("namespace", SYSTEM_NAMESPACE) == SYSTEM_NAMESPACE]
    strict = ["--validate=strict", "--server-side", "--force-conflicts", "--field-manager=test"]
    kept = json.loads(system("apply", "--dry-run=server", *strict, "-o", "json", "-f", "-", stdin=listed(known)))
    found = [differences(obj, there, name(obj)) for obj, there in zip(known, kept["items"], strict=True)]
    assert [each for each in found if each] == []


def name(obj: Object) -> str:
    return f"{obj['kind']} {obj['metadata']['name']}: "


def differences(wanted: object, there: object, where: str) -> list[str]:
    """Fields of `wanted` that differ in `there`. Additional fields in `there` do not count."""
    if isinstance(wanted, dict) and isinstance(there, dict):
        pairs = [(wanted[key], there.get(key), f"{where}.{key}") for key in wanted]
    elif isinstance(wanted, list) and isinstance(there, list) and len(wanted) == len(there):
        pairs = [(*pair, f"{where}[{number}]") for number, pair in enumerate(zip(wanted, there, strict=True))]
    else:
        return [] if wanted == there else [f"{where}: {wanted!r} is {there!r}"]
    return [difference for pair in pairs for difference in differences(*pair)]
