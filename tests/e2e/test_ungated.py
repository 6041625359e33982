"""Ungated releases are noticed, stored and verified, and no pod restarts for that."""

import contextlib
import datetime
import functools
import json
import time
from collections.abc import Iterator

import pytest

from altershield.workloads.adapter import template_of
from altershield.workloads.workload import fingerprint_of
from command.app import main
from command.dev_webhooks import CONFIGURATION as WEBHOOKS
from command.status import EXIT_UNDER_WAY
from kube_base.times import unix
from tests.e2e.sleep import IGNORED_SUSPEND, SLEEP, SUSPEND, VERSION, release, sets_version, sleep, succeed
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually
from tests.support.processes import Done, call

GOVERNED = "admission-webhook-altershield"
CONFIGURATION = f"mutatingwebhookconfiguration/{WEBHOOKS}"


@contextlib.contextmanager
def no_webhook(kubectl: Kubectl) -> Iterator[None]:
    """Run the block without our mutating webhook. Releases are then ungated, as with `Ignore` and no gatekeeper."""
    configuration = kubectl.json(CONFIGURATION)
    for field in ("uid", "resourceVersion", "creationTimestamp", "generation"):
        configuration["metadata"].pop(field)
    kubectl("delete", CONFIGURATION)
    try:
        eventually(lambda: not sets_version(kubectl), "the webhook to be gone")
        yield
    finally:
        kubectl("create", "-f", "-", stdin=json.dumps(configuration))
        eventually(lambda: sets_version(kubectl), "the webhook to be back")


@contextlib.contextmanager
def not_governed(kubectl: Kubectl) -> Iterator[None]:
    kubectl("label", "namespace", kubectl.namespace, f"{GOVERNED}-")
    try:
        eventually(lambda: not sets_version(kubectl), "the namespace not to be governed")
        yield
    finally:
        kubectl("label", "namespace", kubectl.namespace, f"{GOVERNED}=enabled")
        eventually(lambda: sets_version(kubectl), "the namespace to be governed")


def wait_out_the_second(kubectl: Kubectl) -> None:
    """Wait until a release is certainly younger than the governance of its namespace.

    Times of the API are whole seconds, and the reconciler ignores releases that may be older."""
    entries = kubectl.json("namespace", kubectl.namespace, "--show-managed-fields")["metadata"]["managedFields"]
    settings = Kubectl(kubectl.kubeconfig, "altershieldoperator-system").json("opsconfiginfo", "blocking")
    latest = max([settings["metadata"]["creationTimestamp"], *(entry["time"] for entry in entries)])
    eventually(lambda: time.time() > unix(latest) + 1.1, "the next second")


def verified_version(kubectl: Kubectl, reason: str) -> str:
    """Wait until the release is stored as ungated for this reason and has succeeded, and return its version."""

    def stored() -> str:
        version = kubectl.labels("deployment", "sleep").get(VERSION, "none")
        name = f"sleep--x--{version}"
        found = kubectl.json("changeworkload", name) if kubectl.exists("changeworkload", name) else {}
        conditions = found.get("status", {}).get("conditions", [])
        ungated = [each for each in conditions if each["type"] == "Ungated"]
        return version if [(each["status"], each["reason"]) for each in ungated] == [("True", reason)] else ""

    version = eventually(stored, f"the condition Ungated, {reason}")
    succeed(kubectl, version)
    kubectl("rollout", "status", "deployment/sleep")
    eventually(lambda: versions(kubectl) == {version}, "every pod to have the version")
    return version


def versions(kubectl: Kubectl) -> set[str]:
    """The versions of the pods of `sleep` that are not being deleted."""
    found = [pod["metadata"] for pod in kubectl.json("pods")["items"]]
    return {
        metadata["labels"].get(VERSION, "")
        for metadata in found
        if metadata["name"].startswith("sleep-") and "deletionTimestamp" not in metadata
    }


def pods(kubectl: Kubectl) -> set[str]:
    return {pod["metadata"]["uid"] for pod in kubectl.json("pods")["items"]}


def template_version(kubectl: Kubectl) -> str | None:
    """The version in the Deployment's pod template."""
    own: dict[str, str] = kubectl.json("deployment", "sleep")["spec"]["template"]["metadata"]["labels"]
    return own.get(VERSION)


def events(kubectl: Kubectl) -> list[Json]:
    found: list[Json] = kubectl.json("events", "--field-selector", "reason=UngatedRelease")["items"]
    return found


def until_all_pods_are_there(kubectl: Kubectl, number: int = 5) -> None:
    kubectl("rollout", "status", "deployment/sleep")
    eventually(lambda: len(pods(kubectl)) == number, f"{number} pods")


def test_ungated_release_with_the_version_of_the_last_one_gets_its_own_version(kubectl: Kubectl) -> None:
    first = release(kubectl)
    with no_webhook(kubectl):
        kubectl("set", "image", "deployment", "sleep", "sleep=busybox:2")
        until_all_pods_are_there(kubectl)
        came_up = pods(kubectl)
        second = verified_version(kubectl, "VersionReused")
    assert second != first
    assert (template_version(kubectl), pods(kubectl)) == (first, came_up), "no pod was restarted"
    (event,) = eventually(lambda: events(kubectl), "the Event")
    assert (event["type"], event["involvedObject"]["kind"], event.get("count")) == ("Warning", "Deployment", 1)
    assert first in event["message"]
    assert second in event["message"]

    # changes outside of the template restart no pods, and new pods get the version and are verified
    kubectl("annotate", "deployment", "sleep", "team=shop")
    kubectl("label", "deployment", "sleep", "team=shop")
    kubectl("scale", "deployment", "sleep", "--replicas=6")
    eventually(
        lambda: len(kubectl.json("changepods", "-l", f"{VERSION}={second}")["items"]) == 6,
        "the verification of the new pod",
    )
    assert came_up < pods(kubectl)
    assert versions(kubectl) == {second}
    assert template_version(kubectl) == first

    kubectl("set", "image", "deployment", "sleep", "sleep=busybox:3")
    third = kubectl.labels("deployment", "sleep")[VERSION]
    assert template_version(kubectl) == third
    succeed(kubectl, third)
    conditions = kubectl.json("changeworkload", f"sleep--x--{third}")["status"]["conditions"]
    assert "Ungated" not in {each["type"] for each in conditions}
    kubectl("rollout", "undo", "deployment/sleep", "--to-revision=2")
    assert (kubectl.labels("deployment", "sleep")[VERSION], template_version(kubectl)) == (second, second)
    succeed(kubectl, second)
    assert len(events(kubectl)) == 1, "no other release is ungated"


def test_status_is_no_success_until_the_ungated_template_is_verified(
    kubectl: Kubectl, capfd: pytest.CaptureFixture[str]
) -> None:
    first = release(kubectl)
    where = ("-n", kubectl.namespace, "--kubeconfig", str(kubectl.kubeconfig))

    def altershield(*arguments: str) -> Done:
        return call(main, "altershield", *arguments, *where, capture=capfd)

    kubectl("rollout", "pause", "deployment/sleep")  # then the reconciler cannot find the template
    with no_webhook(kubectl):
        kubectl("set", "image", "deployment", "sleep", "sleep=busybox:2")
        assert kubectl.labels("deployment", "sleep")[VERSION] == first, "the label is the one of the first version"
        for arguments in (("status", "sleep"), ("status",), ("wait", "sleep", "--timeout=1s"), ("why", "sleep")):
            done = altershield(*arguments)
            assert done.returncode == EXIT_UNDER_WAY, done
            assert "the present pod template is not verified yet" in done.stdout
        kubectl("rollout", "resume", "deployment/sleep")
        shown = altershield("wait", "sleep")
    assert (shown.returncode, shown.stderr.count("error")) == (0, 0)
    second = verified_version(kubectl, "VersionReused")
    assert second != first
    assert f"{second[:12]}*" in shown.stdout
    assert f"{first[:12]}*" not in shown.stdout


def test_version_of_a_release_is_the_fingerprint_of_its_replica_set(kubectl: Kubectl) -> None:
    """The reconciler distinguishes two ReplicaSets with one version by their fingerprints."""
    version = release(kubectl)
    (made,) = kubectl.json("replicasets")["items"]
    made["spec"]["template"]["metadata"]["labels"].pop("pod-template-hash")
    assert fingerprint_of(template_of(made["spec"]["template"])) == version


def test_undo_to_the_template_of_the_version_is_not_an_ungated_release(kubectl: Kubectl) -> None:
    """Two ReplicaSets have one version. The newest one has it rightly: no reconciler saw the other one."""
    first = release(kubectl)
    with not_governed(kubectl):
        kubectl("set", "image", "deployment", "sleep", "sleep=busybox:2")
        kubectl("rollout", "status", "deployment/sleep")
        kubectl("set", "image", "deployment", "sleep", "sleep=busybox:3")
        kubectl("rollout", "status", "deployment/sleep")
        kubectl("rollout", "undo", "deployment/sleep", "--to-revision=1")
        kubectl("rollout", "status", "deployment/sleep")
    kubectl("scale", "deployment", "sleep", "--replicas=6")
    eventually(lambda: len(kubectl.json("changepods")["items"]) == 5 + 6, "the verification of all new pods")
    kubectl("set", "image", "deployment", "sleep", "sleep=busybox:4")
    succeed(kubectl, kubectl.labels("deployment", "sleep")[VERSION])
    kubectl("rollout", "undo", "deployment/sleep", "--to-revision=4")
    succeed(kubectl, first)
    assert (kubectl.labels("deployment", "sleep")[VERSION], template_version(kubectl), events(kubectl)) == (
        first,
        first,
        [],
    )


def test_release_while_the_namespace_was_not_governed_is_verified(kubectl: Kubectl) -> None:
    first = release(kubectl)
    with not_governed(kubectl):
        kubectl("set", "image", "deployment", "sleep", "sleep=busybox:2")
        until_all_pods_are_there(kubectl)
        came_up = pods(kubectl)
    assert verified_version(kubectl, "VersionReused") != first
    assert pods(kubectl) == came_up


def test_new_ungated_deployment_without_a_version_is_verified(kubectl: Kubectl) -> None:
    wait_out_the_second(kubectl)
    with no_webhook(kubectl):
        kubectl("create", "-f", "-", stdin=SLEEP)
        until_all_pods_are_there(kubectl)
        came_up = pods(kubectl)
        version = verified_version(kubectl, "NoVersion")
    assert (template_version(kubectl), pods(kubectl)) == (None, came_up)
    assert len(events(kubectl)) == 1
    kubectl("replace", "-f", "-", stdin=SLEEP)
    kubectl("delete", "pod", kubectl.json("pods")["items"][0]["metadata"]["name"])
    eventually(lambda: len(kubectl.json("changepods")["items"]) == 6, "the verification of the new pod")
    assert (template_version(kubectl), len(came_up & pods(kubectl))) == (None, 4)

    kubectl("set", "image", "deployment", "sleep", "sleep=busybox:2")
    succeed(kubectl, kubectl.labels("deployment", "sleep")[VERSION])
    kubectl("rollout", "undo", "deployment/sleep")
    assert (kubectl.labels("deployment", "sleep")[VERSION], template_version(kubectl)) == (version, version)
    succeed(kubectl, version)
    assert len(events(kubectl)) == 1


def test_ungated_kubectl_replace_without_our_labels_is_verified(kubectl: Kubectl) -> None:
    first = release(kubectl)
    wait_out_the_second(kubectl)
    with no_webhook(kubectl):
        kubectl("replace", "-f", "-", stdin=sleep(image="busybox:2"))
        assert verified_version(kubectl, "NoVersion") != first
    assert template_version(kubectl) is None


def test_ungated_undo_gets_the_version_of_its_template(kubectl: Kubectl) -> None:
    first = release(kubectl)
    kubectl("set", "image", "deployment", "sleep", "sleep=busybox:2")
    second = kubectl.labels("deployment", "sleep")[VERSION]
    succeed(kubectl, second)
    with no_webhook(kubectl):
        kubectl("rollout", "undo", "deployment/sleep")
        assert verified_version(kubectl, "VersionReused") == first
    assert template_version(kubectl) == first


def test_ungated_release_that_does_not_come_up_is_rolled_back(kubectl: Kubectl) -> None:
    first = release(kubectl)
    with no_webhook(kubectl):
        kubectl("set", "image", "deployment", "sleep", "sleep=busybo")

        def rolled_back() -> bool:
            found = kubectl.json("events", "--field-selector", "reason=RolledBack")["items"]
            return "sleep" in [event["involvedObject"]["name"] for event in found]

        eventually(rolled_back, "the rollback")
        kubectl("rollout", "status", "deployment/sleep")
    succeed(kubectl, first)
    assert (kubectl.labels("deployment", "sleep")[VERSION], template_version(kubectl)) == (first, first)
    assert len(events(kubectl)) == 1
    denied = kubectl.run("set", "image", "deployment", "sleep", "sleep=busybo")
    assert "was rolled back" in denied.stderr


def test_deployment_older_than_the_governance_is_not_changed(kubectl: Kubectl) -> None:
    with not_governed(kubectl):
        kubectl("create", "-f", "-", stdin=sleep("before"))
        kubectl("rollout", "status", "deployment/before")
    before = kubectl.json("deployment", "before")
    wait_out_the_second(kubectl)
    kubectl("delete", "replicaset", "-l", "app=before")  # its controller creates it again from the old template
    with no_webhook(kubectl):
        kubectl("create", "-f", "-", stdin=SLEEP)
        verified_version(kubectl, "NoVersion")
    kubectl("rollout", "status", "deployment/before")
    after = kubectl.json("deployment", "before")
    assert (after["metadata"]["labels"], after["spec"]) == (before["metadata"]["labels"], before["spec"])
    assert [event["involvedObject"]["name"] for event in events(kubectl)] == ["sleep"]


def test_suspended_deployment_without_a_version_is_repaired_by_one_release_with_ignored_suspend(
    kubectl: Kubectl,
) -> None:
    """As after a restored backup that has one of the two labels."""
    restored = json.loads(sleep(replicas=1))
    restored["metadata"]["labels"] = {SUSPEND: "1700000000"}
    with not_governed(kubectl):
        kubectl.apply(json.dumps(restored))
    denied = kubectl.run("set", "image", "deployment/sleep", "sleep=busybox:1.36")
    assert "is suspended" in denied.stderr
    kubectl("label", "deployment", "sleep", f"{IGNORED_SUSPEND}=true")
    kubectl("set", "image", "deployment/sleep", "sleep=busybox:1.36")
    succeed(kubectl, kubectl.labels("deployment", "sleep")[VERSION])
    eventually(lambda: SUSPEND not in kubectl.labels("deployment", "sleep"), "the end of the suspension")
    assert IGNORED_SUSPEND not in kubectl.labels("deployment", "sleep")


@pytest.mark.parametrize("replicas", [0, 1])
def test_paused_ungated_release_is_noticed_when_it_is_resumed(kubectl: Kubectl, replicas: int) -> None:
    first = release(kubectl, sleep(replicas=1))
    kubectl("rollout", "pause", "deployment/sleep")
    with no_webhook(kubectl):
        kubectl("set", "image", "deployment", "sleep", "sleep=busybox:2")
        kubectl("scale", "deployment", "sleep", f"--replicas={replicas}")
    kubectl("annotate", "deployment", "sleep", f"at={datetime.datetime.now(datetime.UTC):%H-%M-%S}")
    eventually(functools.partial(settled, kubectl), "the Deployment controller to observe the spec")
    assert (kubectl.labels("deployment", "sleep")[VERSION], events(kubectl)) == (first, [])
    kubectl("rollout", "resume", "deployment/sleep")

    def noticed() -> bool:
        return kubectl.labels("deployment", "sleep")[VERSION] != first

    eventually(noticed, "the ungated release to be noticed")
    kubectl("scale", "deployment", "sleep", "--replicas=1")  # a release without pods cannot succeed
    succeed(kubectl, kubectl.labels("deployment", "sleep")[VERSION])


def settled(kubectl: Kubectl) -> bool:
    deployment = kubectl.json("deployment", "sleep")
    return bool(deployment["status"].get("observedGeneration", 0) >= deployment["metadata"]["generation"])
