"""ReleaseLimits: how many releases may begin and be under way, the quiet period, and the fuse."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from altershield.api.labels import GOVERNED, GOVERNED_VALUE
from altershield.api.names import SYSTEM_NAMESPACE, service_account_user
from altershield.api.resources import API_VERSION
from command.gates.command import EXIT_CLOSED
from tests.e2e.gates import USER, known
from tests.e2e.held_releases import policy
from tests.e2e.sleep import IGNORED_SUSPEND, VERSION, release, sleep
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually
from tests.support.processes import Run


def limit(name: str = "fleet", **spec: Any) -> str:
    return json.dumps({"apiVersion": API_VERSION, "kind": "ReleaseLimit", "metadata": {"name": name}, "spec": spec})


def status(kubectl: Kubectl, name: str = "fleet") -> dict[str, Any]:
    found: dict[str, Any] = kubectl.json("releaselimit", name).get("status", {})
    return found


def fail(kubectl: Kubectl, name: str = "sleep") -> None:
    """Release a first version whose pods do not come up, and wait until it is suspended."""
    kubectl.apply(broken(name))
    version = kubectl.labels("deployment", name)[VERSION]
    release = f"{name}--x--{version}"
    eventually(lambda: kubectl.exists("changeworkload", release), release)
    kubectl.wait(f"changeworkload/{release}", "jsonpath={.status.status}=Suspend")


def broken(name: str = "sleep") -> str:
    return sleep(name, replicas=1, image="never-ready:1")


@pytest.fixture
def fleet(installed: Any, kubectl: Kubectl, admin: Kubectl) -> Iterator[list[Kubectl]]:
    """Three governed namespaces with a label of their own."""
    label = f"fleet-{uuid.uuid4().hex[:8]}"
    made = [Kubectl(installed, f"{label}-{number}") for number in range(3)]
    for each in made:
        each("create", "namespace", each.namespace)
        each("label", "namespace", each.namespace, f"{GOVERNED}={GOVERNED_VALUE}", f"fleet={label}")
    yield made
    for each in made:
        admin("delete", "namespace", each.namespace, "--wait=false")


def test_a_limit_says_what_is_closed_until_when_and_going_back_is_always_possible(
    kubectl: Kubectl, altershield: Run
) -> None:
    first = release(kubectl, sleep(replicas=1))
    kubectl.apply(limit(rate={"releases": 1, "periodSeconds": 3600}))
    kubectl.wait("releaselimit/fleet", "condition=Accepted")
    release(kubectl, sleep(replicas=1, image="second"))
    eventually(lambda: len(status(kubectl).get("releases", ())) == 1, "the release to count")
    text = known(kubectl, sleep(replicas=1, image="third"))
    assert f"ReleaseLimit {kubectl.namespace}/fleet: 1 release began within 3600 seconds (at most 1); since 2" in text
    assert "; it opens at 2" in text
    shown = altershield("gates", code=EXIT_CLOSED).stdout
    assert "1 of 1 releases in 3600 s" in shown
    kubectl("rollout", "undo", "deployment/sleep")
    assert kubectl.labels("deployment", "sleep")[VERSION] == first
    kubectl.apply(limit(rate={"releases": 100, "periodSeconds": 3600}))
    known(kubectl, sleep(replicas=1, image="third"), closed=False)


def test_a_workload_rests_after_a_success(kubectl: Kubectl) -> None:
    kubectl.apply(limit(quietSeconds=3600))
    kubectl.wait("releaselimit/fleet", "condition=Accepted")
    release(kubectl, sleep(replicas=1))
    text = known(kubectl, sleep(replicas=1, image="second"))
    assert "the last release of the workload succeeded less than 3600 seconds ago; since" in text
    kubectl.apply(sleep("other", replicas=1))


def test_releases_that_are_under_way_take_places(kubectl: Kubectl) -> None:
    kubectl.apply(sleep("one", replicas=1))
    kubectl.apply(sleep("two", replicas=1))
    for name in ("one", "two"):
        succeed(kubectl, name)
    kubectl.apply(limit(concurrent=1))
    kubectl.wait("releaselimit/fleet", "condition=Accepted")
    kubectl("set", "image", "deployment/one", "sleep=second")
    denied = kubectl.run("set", "image", "deployment/two", "sleep=second").stderr
    assert f"1 release is under way (at most 1): deployment {kubectl.namespace}/one" in denied
    assert kubectl.run("set", "image", "deployment/one", "sleep=third").returncode == 0, "it takes its own place"
    succeed(kubectl, "one")
    known(kubectl, sleep("two", replicas=1, image="second"), closed=False)


def test_five_releases_in_steps_finish_under_a_limit_of_five_and_a_sixth_waits(kubectl: Kubectl) -> None:
    names = [f"web-{number}" for number in range(6)]
    for name in names:
        kubectl.apply(sleep(name, replicas=2))
    for name in names:
        succeed(kubectl, name)
    policy(kubectl, {"pods": [1], "soakSeconds": 5}, probe=sleep(names[0], image="probe", replicas=2))
    kubectl.apply(limit(concurrent=5))
    kubectl.wait("releaselimit/fleet", "condition=Accepted")
    for name in names[:5]:
        kubectl("set", "image", f"deployment/{name}", "sleep=second")
    denied = kubectl.run("set", "image", f"deployment/{names[5]}", "sleep=second").stderr
    assert "5 releases are under way (at most 5): deployment" in denied
    assert " and 2 more" in denied
    eventually(lambda: len(status(kubectl).get("underWay", ())) == 5, "the releases to count")
    for name in names[:5]:
        succeed(kubectl, name)
    known(kubectl, sleep(names[5], replicas=2, image="second"), closed=False)


def test_a_limit_that_holds_lets_releases_begin_one_after_the_other_the_oldest_first(
    kubectl: Kubectl, altershield: Run
) -> None:
    names = ["three", "one", "two"]  # not in the order of their names
    for name in names:
        kubectl.apply(sleep(name, replicas=2))
    for name in names:
        succeed(kubectl, name)
    policy(kubectl, {"pods": [1], "soakSeconds": 600}, probe=sleep(names[0], image="probe", replicas=2))
    kubectl.apply(limit(concurrent=1, rate={"releases": 100, "periodSeconds": 3600}, whenClosed="Hold"))
    kubectl.wait("releaselimit/fleet", "condition=Accepted")
    for name in names:
        kubectl("set", "image", f"deployment/{name}", "sleep=second")
    first, *others = names
    assert rollout(kubectl, first, "Soaking")["step"] == 1, "it begins at once, because there is room"
    for name in others:
        held = rollout(kubectl, name, "Held")
        assert (held["waitingFor"], held["gates"]) == (["limit"], [f"ReleaseLimit {kubectl.namespace}/fleet"])
        assert not [each for each in kubectl.json("pods", "-l", f"app={name}")["items"] if is_new(each)]
    assert [each["name"] for each in status(kubectl)["underWay"]] == [first]
    for name in others:
        altershield("promote", f"deploy/{first}", "--full")
        rollout(kubectl, name, "Soaking")
        succeed(kubectl, first)
        assert [rollout(kubectl, each, "Held")["waitingFor"] for each in others[others.index(name) + 1 :]] in (
            [],
            [["limit"]],
        )
        first = name
    eventually(lambda: len(status(kubectl)["releases"]) == len(names), "all releases to count")
    assert [each["name"] for each in status(kubectl)["releases"]] == names
    kubectl("delete", "releaselimit", "fleet")


def test_a_release_that_another_limit_keeps_back_takes_no_place_and_begins_by_itself(kubectl: Kubectl) -> None:
    for name in ("core", "other"):
        kubectl.apply(sleep(name, replicas=1))
    for name in ("core", "other"):
        succeed(kubectl, name)
    kubectl("label", "deployment/core", "tier=core")
    kubectl.apply(limit(concurrent=1, whenClosed="Hold"))
    own = {"matchLabels": {"tier": "core"}}
    kubectl.apply(limit("quiet", quietSeconds=3600, concurrent=1, whenClosed="Hold", selector=own))
    for name in ("fleet", "quiet"):
        kubectl.wait(f"releaselimit/{name}", "condition=Accepted")
    kubectl("set", "image", "deployment/core", "sleep=second")
    held = rollout(kubectl, "core", "Held")
    assert (held["waitingFor"], held["gates"]) == (["limit"], [f"ReleaseLimit {kubectl.namespace}/quiet"])
    kubectl("set", "image", "deployment/other", "sleep=second")
    succeed(kubectl, "other")
    assert rollout(kubectl, "core", "Held")["waitingFor"] == ["limit"]
    kubectl.apply(limit("quiet", quietSeconds=1, concurrent=1, whenClosed="Hold", selector=own))
    succeed(kubectl, "core")


def test_a_release_that_cannot_be_held_is_denied_while_there_is_no_room(kubectl: Kubectl) -> None:
    kubectl.apply(sleep("one", replicas=1))
    kubectl.apply(sleep("two", replicas=1, strategy={"type": "Recreate"}))
    for name in ("one", "two"):
        succeed(kubectl, name)
    kubectl.apply(limit(rate={"releases": 1, "periodSeconds": 3600}, whenClosed="Hold"))
    kubectl.wait("releaselimit/fleet", "condition=Accepted")
    kubectl("set", "image", "deployment/one", "sleep=second")
    succeed(kubectl, "one")
    text = known(kubectl, sleep("two", replicas=1, image="second", strategy={"type": "Recreate"}))
    assert "1 release began within 3600 seconds (at most 1)" in text


def rollout(kubectl: Kubectl, name: str, phase: str) -> dict[str, Any]:
    """The steps of the present release of a Deployment, once it is in this phase."""
    release = f"{name}--x--{kubectl.labels('deployment', name)[VERSION]}"
    kubectl.wait(f"changeworkload/{release}", "create")

    def there() -> dict[str, Any] | None:
        found: dict[str, Any] = kubectl.json("changeworkload", release).get("status", {}).get("rollout", {})
        return found if found.get("phase") == phase and (phase != "Held" or found.get("waitingFor")) else None

    found = eventually(there, f"{name} to be {phase}")
    assert found is not None
    return found


def is_new(pod: dict[str, Any]) -> bool:
    return any(each["image"] == "second" for each in pod["spec"]["containers"])


def succeed(kubectl: Kubectl, name: str) -> None:
    """Wait until the present release of a Deployment succeeds."""
    release = f"changeworkload/{name}--x--{kubectl.labels('deployment', name)[VERSION]}"
    kubectl.wait(release, "create")
    kubectl.wait(release, "jsonpath={.status.status}=Success")


def test_what_the_api_server_refuses(kubectl: Kubectl) -> None:
    for spec, text in (
        ({}, "at least one of fuse, rate, concurrent and quietSeconds"),
        ({"concurrent": 0}, "spec.concurrent"),
        ({"concurrent": None}, "at least one of"),
        ({"rate": {"releases": 201, "periodSeconds": 60}}, "spec.rate.releases"),
        ({"fuse": {"failures": 51, "periodSeconds": 60}}, "spec.fuse.failures"),
        ({"fuse": {"failures": 1, "periodSeconds": 604801}}, "spec.fuse.periodSeconds"),
        ({"fuse": {"failures": 1}}, "periodSeconds"),
        ({"quietSeconds": 604801}, "spec.quietSeconds"),
    ):
        assert text in kubectl.run("apply", "-f", "-", stdin=limit(**spec)).stderr
    kubectl.apply(limit(concurrent=1))
    patch = json.dumps({"status": {"countedSince": "2026-01-01T00:00:00Z"}})
    refused = kubectl.run("patch", "releaselimit", "fleet", "--subresource=status", "--type=merge", "-p", patch)
    assert "only AlterShield writes the status of releaselimits" in refused.stderr
    spec = {"reason": "x", "requestedBy": USER, "fuse": {"limit": "fleet"}}
    freeze = {"apiVersion": API_VERSION, "kind": "ReleaseFreeze", "metadata": {"name": "forged"}, "spec": spec}
    assert "only AlterShield sets spec.fuse" in kubectl.run("apply", "-f", "-", stdin=json.dumps(freeze)).stderr


def test_three_failures_across_namespaces_make_one_freeze_until_a_person_ends_it(
    fleet: list[Kubectl], admin: Kubectl
) -> None:
    label = fleet[0].namespace.rpartition("-")[0]
    system = Kubectl(admin.kubeconfig, SYSTEM_NAMESPACE)
    selector = {"matchLabels": {"fleet": label}}
    system.apply(limit(label, fuse={"failures": 3, "periodSeconds": 3600}, namespaceSelector=selector))

    def freezes() -> list[dict[str, Any]]:
        found = system.json("releasefreezes")["items"]
        return [each for each in found if each["spec"].get("fuse", {}).get("limit") == label]

    try:
        for number, each in enumerate(fleet):
            assert not freezes(), number
            fail(each)
        eventually(lambda: len(freezes()) == 1, "the freeze")
        (freeze,) = freezes()
        assert freeze["spec"]["requestedBy"] == service_account_user()
        listed = [f"{each['namespace']}/{each['name']}" for each in freeze["spec"]["fuse"]["workloads"]]
        assert sorted(listed) == [f"{each.namespace}/sleep" for each in fleet]
        assert all(f"deployment {each}" in freeze["spec"]["reason"] for each in listed)
        name = freeze["metadata"]["name"]
        assert name.startswith(f"fuse-{label}-20")
        eventually(lambda: status(system, label).get("trip", {}).get("made"), "the trip to be stored")
        of_limit = ("--field-selector", f"involvedObject.name={label}")
        eventually(lambda: system.json("events", *of_limit)["items"], "the Event")
        assert [each["reason"] for each in system.json("events", *of_limit)["items"]] == ["FuseTripped"]

        other = sleep("other", replicas=1)
        fleet[0].apply(other)  # a creation
        text = known(fleet[0], sleep("other", replicas=1, image="second"))
        assert f"ReleaseFreeze {SYSTEM_NAMESPACE}/{name}: no release may begin: the fuse of the ReleaseLimit" in text
        fleet[1]("label", "deployment", "sleep", f"{IGNORED_SUSPEND}=true")
        fleet[1]("set", "image", "deployment/sleep", "sleep=repaired")

        end = {"until": "2026-01-01T00:00:00Z", "endedBy": USER}
        system("patch", "releasefreeze", name, "--type=merge", "-p", json.dumps({"spec": end}))
        eventually(lambda: "trip" not in status(system, label), "the end of the freeze")
        assert status(system, label)["countedSince"]
        known(fleet[0], sleep("other", replicas=1, image="second"), closed=False)
        fail(fleet[0], "fourth")
        eventually(lambda: "fourth" in str(status(system, label)["failures"]), "the fourth failure to count")
        assert len(freezes()) == 1
    finally:
        system("delete", "releaselimit", label)
        for each in freezes():
            system("delete", "releasefreeze", each["metadata"]["name"])


def test_a_repair_in_steps_passes_the_freeze_of_the_fuse(kubectl: Kubectl) -> None:
    release(kubectl, sleep(replicas=2))
    policy(kubectl, {"pods": [1], "soakSeconds": 1}, probe=sleep(image="probe", replicas=2))
    kubectl.apply(limit(fuse={"failures": 1, "periodSeconds": 3600}))
    kubectl.wait("releaselimit/fleet", "condition=Accepted")
    kubectl("set", "image", "deployment/sleep", "sleep=never-ready:1")
    eventually(lambda: kubectl.json("releasefreezes")["items"], "the freeze")
    repair = ("set", "image", "deployment/sleep", "sleep=repaired")
    eventually(lambda: "deployment sleep" in kubectl.run(*repair, "--dry-run=server").stderr, "the denial")
    kubectl("label", "deployment", "sleep", f"{IGNORED_SUSPEND}=true")
    eventually(lambda: kubectl.run(*repair).returncode == 0, "the repair to be admitted")
    succeed(kubectl, "sleep")
    found = kubectl.json("changeworkload", f"sleep--x--{kubectl.labels('deployment', 'sleep')[VERSION]}")
    assert [each["step"] for each in found["status"]["rollout"]["passedSteps"]] == [1, 2]
    assert status(kubectl)["trip"]["made"], "the freeze is still in force"


def test_a_fleet_on_trial_trips_no_fuse(kubectl: Kubectl) -> None:
    kubectl.apply(limit(fuse={"failures": 1, "periodSeconds": 3600}))
    policy = {"apiVersion": API_VERSION, "kind": "DefensePolicy", "metadata": {"name": "trial"}}
    kubectl.apply(json.dumps({**policy, "spec": {"mode": "observe"}}))
    kubectl.wait("defensepolicy/trial", "condition=Accepted")
    fail(kubectl)
    kubectl("delete", "defensepolicy", "trial")
    fail(kubectl, "enforced")
    eventually(lambda: kubectl.json("releasefreezes")["items"], "the freeze")
    (freeze,) = kubectl.json("releasefreezes")["items"]
    assert [each["name"] for each in freeze["spec"]["fuse"]["workloads"]] == ["enforced"]
