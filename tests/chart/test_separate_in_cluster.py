"""Gatekeeper and reconciler from the rendered Deployments of `reconciler.separate`, each under its own account."""

import base64
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.resources import GROUP
from tests.chart.governed import govern, namespace
from tests.chart.pod import pod_of, point_webhooks_here, wait_until_ready
from tests.chart.recorder import Recorder
from tests.chart.release import Release
from tests.chart.rendering import RELEASE, flat
from tests.e2e.sleep import release as released
from tests.e2e.sleep import sleep
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chart")]

NAMESPACE = "altershield-separate-test"
OWN = f"{RELEASE}-reconciler"
VALUES = {
    "reconciler": {"separate": True, "startTimeoutSeconds": 8, "batchWaitSeconds": 2, "observeSeconds": 1},
    "server": {"callbacks": {"enabled": True}},
}
WRITES_OF_CERTGEN = {"secrets", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"}

BUDGET = f"""\
apiVersion: {GROUP}/v1alpha1
kind: PodUnavailableBudget
metadata:
  name: other
spec:
  selector:
    matchLabels: {{app: other}}
  maxUnavailable: 1
"""


@pytest.fixture
def shop(system: Kubectl) -> Iterator[Kubectl]:
    """kubectl in a namespace that is not governed yet."""
    with namespace(Kubectl(system.kubeconfig, NAMESPACE)) as kubectl:
        yield kubectl


@pytest.fixture
def recorders(release: Release, system: Kubectl, tmp_path: Path) -> Iterator[dict[str, Recorder]]:
    """Install the release and run its processes; the requests of each account."""
    for left in ("opsconfiginfoes", "leases"):  # of an earlier release
        system.run("delete", left, "--all")
    release.install(VALUES)
    deployments = {name: system.json("deployment", name) for name in (RELEASE, OWN)}
    system("delete", "deployment", *deployments)  # simulated nodes run no processes
    with contextlib.ExitStack() as running:
        pods = {}
        for name, deployment in deployments.items():
            directory = tmp_path / f"{name}-pod"  # Python would import from a directory `altershield`
            directory.mkdir()
            pods[name] = running.enter_context(pod_of(system, deployment, directory))
        point_webhooks_here(system, pods[RELEASE].ports["webhook"])
        wait_until_ready(pods[RELEASE].ports, "gatekeeper")
        wait_until_ready(pods[OWN].ports, "reconciler")
        # the reconciler started without the certificate of its callback port; the kubelet mounts it later
        eventually(lambda: mount(system, tmp_path / f"{OWN}-pod"), "certgen to create the Secret")
        yield {name: pod.recorder for name, pod in pods.items()}


def mount(system: Kubectl, directory: Path) -> bool:
    """Write the certificate to the directory, as the kubelet mounts the Secret."""
    found = system.run("get", "secret", f"{RELEASE}-tls", "-o", "json")
    if found.returncode:
        return False
    data = json.loads(found.stdout)["data"]
    for key in ("tls.crt", "tls.key"):
        (directory / key).write_bytes(base64.b64decode(data[key]))
    return True


def test_separate_gatekeeper_only_reads_and_admits_the_rollback_of_the_reconciler(
    recorders: dict[str, Recorder], system: Kubectl, shop: Kubectl, tmp_path: Path
) -> None:
    govern(shop)
    shop("apply", "-f", "-", stdin=BUDGET)  # from the first one on, the processes watch what budgets count
    released(shop, sleep(replicas=1))
    before = shop.json("deployment", "sleep")["spec"]["template"]
    shop("set", "image", "deployment/sleep", "sleep=busybo")
    listed = ("events", "--field-selector", "reason=RolledBack")
    eventually(lambda: shop.json(*listed)["items"], "the release to be rolled back")
    after = shop.json("deployment", "sleep")["spec"]["template"]
    assert after["spec"]["containers"][0]["image"] == before["spec"]["containers"][0]["image"]
    eventually(
        lambda: "serving certificate loaded" in (tmp_path / f"{OWN}-pod" / "reconciler.log").read_text(),
        "the reconciler to load the certificate of its callback port",
    )

    gate, reconciler = recorders[RELEASE], recorders[OWN]
    assert gate.forbidden == []
    assert reconciler.forbidden == []
    written = {each.resource for each in gate.asked if each.verb not in ("get", "list", "watch")}
    assert written <= WRITES_OF_CERTGEN
    assert {("watch", "changeworkloads"), ("watch", "opsconfiginfoes")} <= {
        (each.verb, each.resource) for each in gate.asked
    }
    eventually(lambda: any(each.resource == "daemonsets" for each in gate.asked), "the gatekeeper to watch workloads")
    granted = [system.json("clusterrole", RELEASE), system.json("role", RELEASE)]
    for verb, group, resource in {each for role in granted for rule in role["rules"] for each in flat(rule)}:
        verbs = {verb, "watch"} if verb == "list" else {verb}  # streamed lists are watches
        asked = any(each.verb in verbs and (each.group, each.resource) == (group, resource) for each in gate.asked)
        # one object is read only if no cache has it, or after a conflict; no budget or flow control is written here,
        # and no protected Namespace or CustomResourceDefinition is deleted
        others = verb in ("delete", "get", "update") or (verb == "list" and group in ("", GROUP))
        assert asked or others, f"{verb} {resource} is granted, but not needed"
    for what in ("deployments.apps", "replicasets.apps", "pods", "changeworkloads", "leases", "secrets"):
        user = f"--as=system:serviceaccount:{SYSTEM_NAMESPACE}:{RELEASE}"
        assert shop.run("auth", "can-i", "patch", what, user).stdout.strip() == "no"
        assert shop.run("auth", "can-i", "delete", what, user).stdout.strip() == "no"
