"""Releases in steps while quotas, budgets and the user's own strategy limit what may be replaced, and with pods that do
not come up or do not stay up."""

import json
import time
from typing import Any

import pytest

from altershield.api.annotations import GENERATE
from tests.e2e import held_kinds, ready_pods
from tests.e2e.held_releases import (
    RESTS,
    apply,
    pods_by_version,
    policy,
    reach,
    request,
    rolling,
    rollout,
    without_template,
)
from tests.e2e.kinds import DAEMON_SET
from tests.e2e.sleep import IGNORED_SUSPEND, VERSION, release, sleep, succeed, suspend
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually


def quota(kubectl: Kubectl, pods: int) -> None:
    spec = {"hard": {"pods": str(pods)}}
    made = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "pods"}, "spec": spec}
    kubectl("apply", "-f", "-", stdin=json.dumps(made))

    def is_refused() -> bool:
        done = kubectl.run("run", "probe", "--image=busybox", "--dry-run=server")
        return ("exceeded quota" in done.stderr) is (len(kubectl.json("pods")["items"]) >= pods)

    eventually(is_refused, "the quota to be in force")


@pytest.mark.parametrize("unavailable", [0, 1])
def test_full_quota_is_met_by_the_own_strategy_or_waited_for(kubectl: Kubectl, unavailable: int) -> None:
    own = rolling(unavailable, 1)
    base = release(kubectl, sleep(replicas=4, strategy=own))
    before = kubectl.json("deployment", "sleep")
    quota(kubectl, 4)
    policy(kubectl, {"pods": [1], "soakSeconds": 2})
    version = apply(kubectl, sleep(image="other", replicas=4, strategy=own))
    if not unavailable:
        kubectl.wait(f"changeworkload/sleep--x--{version}", "create")
        eventually(lambda: rollout(kubectl, version).get("waitingFor") == ["quota"], "the wait")
        found = rollout(kubectl, version)
        assert (found["phase"], found["waitingSinceUnix"] > 0) == ("Rolling", True)
        assert pods_by_version(kubectl) == {base: 4}
        quota(kubectl, 5)
    succeed(kubectl, version)
    found = rollout(kubectl, version)
    assert [each["pods"] for each in found["passedSteps"]] == [1, 4]
    assert "waitingFor" not in found
    assert without_template(kubectl.json("deployment", "sleep")) == without_template(before)


@pytest.mark.parametrize(
    ("image", "ready"), [("never-ready", 0), ("crash:1", 0), ("exits-after-4s", 6)], ids=["unready", "crash", "late"]
)
def test_canary_that_does_not_stay_up_takes_no_more_than_the_own_strategy(
    kubectl: Kubectl, image: str, ready: int
) -> None:
    """The old pods alone are available by the user's own `minReadySeconds`."""
    own: dict[str, Any] = {"strategy": rolling(1, 1), "minReadySeconds": ready}
    base = release(kubectl, sleep(replicas=4, **own))
    before = kubectl.json("deployment", "sleep")
    policy(kubectl, {"pods": ["75%"], "soakSeconds": 600})
    with ready_pods.watching(kubectl, 4, "-l", f"{VERSION}={base}") as old:
        version = apply(kubectl, sleep(image=image, replicas=4, **own))
        eventually(lambda: kubectl.labels("deployment", "sleep")[VERSION] == base, "the rollback")
        eventually(lambda: len(old.names) == 4 and len(pods_by_version(kubectl)) == 1, "the base everywhere")
        assert old.fewest == 3
    eventually(lambda: rollout(kubectl, version)["phase"] == "Aborted", "the end of its steps")
    assert without_template(kubectl.json("deployment", "sleep")) == without_template(before)


@pytest.mark.parametrize("replicas", [3, 7, 50])
def test_one_pod_without_surge_is_one_pod_of_many(kubectl: Kubectl, replicas: int) -> None:
    own = rolling("25%", 0)
    base = release(kubectl, sleep(replicas=replicas, strategy=own))
    policy(kubectl, {"pods": [1], "soakSeconds": 600})
    with ready_pods.watching(kubectl, replicas) as ready:
        version = apply(kubectl, sleep(image="other", replicas=replicas, strategy=own))
        reach(kubectl, version, 1, "Soaking")
        assert pods_by_version(kubectl) == {base: replicas - 1, version: 1}
        assert ready.fewest == replicas - 1
    kubectl("scale", "deployment/sleep", "--replicas=2")
    eventually(lambda: pods_by_version(kubectl) == {base: 1, version: 1}, "an old pod and a new one")


def test_repair_after_a_failure_on_all_pods_replaces_the_failed_version_first(kubectl: Kubectl) -> None:
    release(kubectl, sleep(replicas=4))
    before = kubectl.json("deployment", "sleep")
    policy(kubectl, {"steps": [{"pods": 1, "soakSeconds": 0}, {"pods": "50%", "soakSeconds": 3}]})
    failed = apply(kubectl, sleep(image="other", replicas=4))
    kubectl.wait(f"changeworkload/sleep--x--{failed}", "create")
    eventually(lambda: rollout(kubectl, failed).get("phase") == "Done", "the last step")
    suspend(kubectl, failed)
    kubectl("label", "deployment", "sleep", f"{IGNORED_SUSPEND}=true")
    with ready_pods.watching(kubectl, 4) as ready:
        repair = apply(kubectl, sleep(image="repair", replicas=4))
        reach(kubectl, repair, 2, "Soaking")
        # the controller deletes the last pod of the failed version when the fourth one of the repair is available
        eventually(lambda: pods_by_version(kubectl) == {repair: 4}, "the end of the failed version's pods")
        assert ready.fewest >= 3
    succeed(kubectl, repair)
    assert [each["pods"] for each in rollout(kubectl, repair)["passedSteps"]] == [4, 4]
    assert without_template(kubectl.json("deployment", "sleep")) == without_template(before)


def test_refused_eviction_is_waited_for(kubectl: Kubectl) -> None:
    held_kinds.succeed(kubectl, DAEMON_SET, held_kinds.apply(kubectl, DAEMON_SET, "busybox"))
    before = kubectl.json("daemonset", "app")
    number = len(kubectl.json("pods")["items"])
    kubectl("create", "pdb", "app", "--selector=app=app", f"--min-available={number}")
    eventually(lambda: kubectl.json("pdb", "app")["status"].get("currentHealthy") == number, "the budget's status")
    held_kinds.steps(kubectl, DAEMON_SET, 1)
    version = held_kinds.apply(kubectl, DAEMON_SET, "busybox:2")
    name = DAEMON_SET.change_workload_name("app", version)
    kubectl.wait(f"changeworkload/{name}", "create")

    def status() -> Json:
        found: Json = kubectl.json("changeworkload", name)["status"]
        return found

    eventually(lambda: status().get("rollout", {}).get("waitingFor") == ["eviction"], "the wait")
    assert status()["rollout"]["waitingSinceUnix"] > 0
    (condition,) = (each for each in status()["conditions"] if each["type"] == "Progressing")
    assert condition["reason"] == "WriteRefused"
    assert "the API server refuses to evict an old pod: " in condition["message"]
    assert f"The disruption budget app needs {number} healthy pods and has {number} currently" in condition["message"]
    before_rests = kubectl.json("changeworkload", name)["metadata"]["resourceVersion"]
    time.sleep(RESTS)
    assert kubectl.json("changeworkload", name)["metadata"]["resourceVersion"] == before_rests, "nothing is stored"
    assert not held_kinds.of_version(kubectl, version)
    kubectl("patch", "pdb", "app", "--type=merge", "-p", json.dumps({"spec": {"minAvailable": number - 1}}))
    found = held_kinds.succeed(kubectl, DAEMON_SET, version)
    assert [each["pods"] for each in found["passedSteps"]] == [1, number]
    assert without_template(kubectl.json("daemonset", "app")) == without_template(before)


def test_generated_budget_stays_that_of_the_own_strategy(kubectl: Kubectl) -> None:
    asked: Json = {"metadata": {"name": "sleep", "annotations": {f"{GENERATE}pdb": "true"}}}

    def manifest(image: str) -> str:
        return sleep(image=image, replicas=10, strategy=rolling("30%", 1), **asked)

    release(kubectl, manifest("busybox"))
    policy(kubectl, {"pods": [1, 3], "soakSeconds": 600})
    version = apply(kubectl, manifest("other"))
    reach(kubectl, version, 1, "Soaking")

    def amounts() -> list[Json]:
        found = kubectl.json("poddisruptionbudgets.policy")["items"]
        return [{key: value for key, value in each["spec"].items() if key != "selector"} for each in found]

    eventually(amounts, "the budget")
    assert amounts() == [{"maxUnavailable": "30%"}]
    request(kubectl, version, "Promote")
    reach(kubectl, version, 2, "Soaking")
    assert amounts() == [{"maxUnavailable": "30%"}]
    (budget,) = kubectl.json("poddisruptionbudgets.policy")["items"]
    assert budget["metadata"]["generation"] == 1, "it was not changed in between"
