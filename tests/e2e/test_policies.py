"""DefensePolicies, from `kubectl apply` to what a release does under them."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from altershield.api.annotations import PAUSED, ROLLOUT, START_TIMEOUT
from altershield.api.labels import IGNORED_SUSPEND, SUSPEND, VERSION
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.resources import API_VERSION
from tests.e2e.sleep import sleep
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually
from tests.support.processes import command

WRONG_QUERY = {
    "name": "errors",
    "prometheus": {"url": "http://prometheus.monitoring.svc", "query": "{{no}}", "max": "1"},
}


def policy(kubectl: Kubectl, name: str, **spec: Any) -> None:
    made = {"apiVersion": API_VERSION, "kind": "DefensePolicy", "metadata": {"name": name}, "spec": spec}
    kubectl.apply(json.dumps(made))


def condition(obj: Json, type_: str) -> Json:
    found = [each for each in obj.get("status", {}).get("conditions", []) if each["type"] == type_]
    return dict(found[0]) if found else {}


def until_accepted(kubectl: Kubectl, name: str, status: str = "True") -> Json:
    """The policy, after the reconciler has written its status for the present spec."""

    def accepted() -> Json | None:
        found = kubectl.json("defensepolicy", name)
        of_spec = found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"]
        return found if of_spec and condition(found, "Accepted").get("status") == status else None

    return dict(eventually(accepted, f"the policy {name} to have Accepted={status}") or {})


def events(kubectl: Kubectl, reason: str) -> list[str]:
    return [each["message"] for each in kubectl.json("events")["items"] if each["reason"] == reason]


def until_event(kubectl: Kubectl, reason: str) -> str:
    return str(eventually(lambda: events(kubectl, reason), f"the Event {reason}")[0])


def release(kubectl: Kubectl, image: str = "busybox") -> None:
    """Apply the Deployment sleep, with another image if it is named."""
    kubectl.apply(sleep(image=image))


def newest(kubectl: Kubectl) -> Json:
    """The newest ChangeWorkload; empty if there is none."""
    found = kubectl.json("changeworkloads")["items"]
    return max(found, key=lambda each: each["spec"].get("workloadGeneration", 0), default={})


def until_release(kubectl: Kubectl, state: str) -> Json:
    def met() -> Json | None:
        found = newest(kubectl)
        return found if found.get("status", {}).get("status") == state else None

    return dict(eventually(met, f"the release to be a {state}") or {})


@pytest.fixture
def system(kubectl: Kubectl) -> Iterator[Kubectl]:
    """kubectl in the system namespace. Policies are removed at the end."""
    own = Kubectl(kubectl.kubeconfig, SYSTEM_NAMESPACE)
    yield own
    own("delete", "defensepolicies", "--all")


# acceptance


def test_wrong_edit_of_a_policy_is_reported_and_leaves_the_last_accepted_spec_in_force(kubectl: Kubectl) -> None:
    policy(kubectl, "shop", observeSeconds=2, selector={"matchLabels": {"a": "1"}})
    found = until_accepted(kubectl, "shop")
    assert found["status"]["accepted"]["observeSeconds"] == 2
    policy(kubectl, "shop", checks=[WRONG_QUERY])
    found = until_accepted(kubectl, "shop", "False")
    assert condition(found, "Accepted")["reason"] == "UnknownPlaceholder"
    assert "{{no}}" in condition(found, "Accepted")["message"]
    assert found["status"]["accepted"]["observeSeconds"] == 2
    assert found["status"]["acceptedGeneration"] == 1
    assert "stays in force" in until_event(kubectl, "PolicyRejected")
    release(kubectl)
    found = until_release(kubectl, "Success")
    assert found["spec"].get("policy", {}) == {}  # the accepted spec selects other workloads
    policy(kubectl, "shop", observeSeconds=1, selector={"matchLabels": {"b": "2"}})
    found = until_accepted(kubectl, "shop")
    assert found["status"]["accepted"]["selector"] == {"matchLabels": {"b": "2"}}


def test_policy_that_can_never_apply_is_shadowed(kubectl: Kubectl) -> None:
    policy(kubectl, "all", priority=1)
    policy(kubectl, "web", selector={"matchLabels": {"app": "web"}})
    found = until_accepted(kubectl, "web")
    eventually(
        lambda: condition(kubectl.json("defensepolicy", "web"), "Shadowed").get("status") == "True",
        "the policy web to be shadowed",
    )
    assert condition(until_accepted(kubectl, "all"), "Shadowed")["status"] == "False"
    kubectl("delete", "defensepolicy", "all")
    eventually(
        lambda: condition(kubectl.json("defensepolicy", "web"), "Shadowed").get("status") == "False",
        "the policy web to be selectable",
    )
    assert found["metadata"]["generation"] == 1


# selection


def test_release_has_a_copy_of_the_policy_that_applies_when_it_begins(kubectl: Kubectl, system: Kubectl) -> None:
    kubectl.run("delete", "defensepolicies", "--all")
    policy(system, "default", observeSeconds=1, mode="observe", selector={"matchLabels": {"app": "sleep"}})
    until_accepted(system, "default")
    release(kubectl)
    first = until_release(kubectl, "Success")
    assert first["spec"]["policy"] == {
        "namespace": SYSTEM_NAMESPACE, "name": "default", "generation": 1, "observeSeconds": 1, "mode": "observe",
    }  # fmt: skip
    policy(kubectl, "own", batch="50%")
    until_accepted(kubectl, "own")
    assert newest(kubectl)["spec"]["policy"]["name"] == "default"  # the edit changes later releases only
    release(kubectl, "busybox:1.36")
    eventually(lambda: newest(kubectl)["spec"]["reversion"] != first["spec"]["reversion"], "the second release")
    second = newest(kubectl)["spec"]["policy"]
    assert (second["namespace"], second["name"], second["batch"]) == (kubectl.namespace, "own", "50%")


def test_annotation_sets_the_start_timeout_and_an_invalid_one_is_ignored_with_an_event(kubectl: Kubectl) -> None:
    release(kubectl)
    first = until_release(kubectl, "Success")
    kubectl("annotate", "deployment", "sleep", f"{START_TIMEOUT}=77")
    release(kubectl, "busybox:1.36")
    eventually(lambda: newest(kubectl)["spec"]["reversion"] != first["spec"]["reversion"], "the second release")
    assert newest(kubectl)["spec"]["policy"] == {"startTimeoutSeconds": 77}
    second = until_release(kubectl, "Success")
    kubectl("annotate", "--overwrite", "deployment", "sleep", f"{START_TIMEOUT}=soon")
    release(kubectl, "busybox:1.37")
    assert "'soon'" in until_event(kubectl, "AnnotationIgnored")
    eventually(lambda: newest(kubectl)["spec"]["reversion"] != second["spec"]["reversion"], "the third release")
    assert newest(kubectl)["spec"].get("policy", {}) == {}


# effects


def fail_a_pod(kubectl: Kubectl) -> None:
    """A person fails a pod of the newest release."""
    own = newest(kubectl)["metadata"]["name"]

    def change_pod() -> Json | None:
        found = kubectl.json("changepods")["items"]
        return next((each for each in found if each["spec"]["changeWorkloadId"] == own), None)

    batch = eventually(change_pod, "a ChangePod") or {}
    result = {**batch["spec"]["podInfos"][0], "verdict": "unpass", "message": "find error"}
    patch = json.dumps({"status": {"podResults": [result]}})
    name = batch["metadata"]["name"]
    kubectl("patch", "changepod", name, "--subresource=status", "--type=merge", "-p", patch)


def fail_second_release(kubectl: Kubectl, **rules: Any) -> tuple[str, str]:
    """Release a version that passes, and one whose pod a person fails, under a policy. Their versions."""
    policy(kubectl, "own", **rules)
    until_accepted(kubectl, "own")
    release(kubectl)
    first = until_release(kubectl, "Success")["spec"]["reversion"]
    release(kubectl, "busybox:1.36")
    eventually(lambda: newest(kubectl)["spec"]["reversion"] != first, "the second release")
    second = until_release(kubectl, "Success")["spec"]["reversion"]
    fail_a_pod(kubectl)
    return str(first), str(second)


def version_of(kubectl: Kubectl) -> str:
    return str(kubectl.labels("deployment", "sleep")[VERSION])


def of_version(kubectl: Kubectl, version: str) -> Json:
    return kubectl.json("changeworkload", f"sleep--x--{version}")


def request(kubectl: Kubectl, verb: str) -> None:
    """A person's request about the newest release."""
    user = kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
    patch = json.dumps({"status": {"request": {"verb": verb, "by": user, "reason": "seen"}}})
    name = newest(kubectl)["metadata"]["name"]
    kubectl("patch", "changeworkload", name, "--subresource=status", "--type=merge", "-p", patch)


def state_of(kubectl: Kubectl, version: str) -> str:
    return str(of_version(kubectl, version).get("status", {}).get("status", ""))


@pytest.mark.parametrize("on_failure", ["suspend", "pause", "rollback"])
def test_observe_records_a_failure_and_touches_no_workload(kubectl: Kubectl, on_failure: str) -> None:
    _, second = fail_second_release(kubectl, mode="observe", onFailure=on_failure)
    until_release(kubectl, "Suspend")
    assert f"the DefensePolicy {kubectl.namespace}/own only observes" in until_event(kubectl, "ReleaseSuspended")
    workload = kubectl.json("deployment", "sleep")
    assert SUSPEND not in workload["metadata"]["labels"]
    assert "paused" not in workload["spec"]
    assert version_of(kubectl) == second
    release(kubectl, "busybox:1.37")  # it is admitted
    assert version_of(kubectl) != second


def test_warn_admits_the_next_release_with_a_warning(kubectl: Kubectl) -> None:
    _, second = fail_second_release(kubectl, mode="warn", onFailure="rollback")
    until_release(kubectl, "Suspend")

    def warned() -> str:
        done = kubectl.run("apply", "--dry-run=server", "-f", "-", stdin=sleep(image="busybox:1.37"))
        assert done.returncode == 0, done.stderr
        return done.stderr if "mode warn" in done.stderr else ""

    text = eventually(warned, "the gatekeeper to warn")
    assert f"version {second} (busybox:1.36) of deployment sleep failed verification" in text
    assert "with mode enforce, it would have been rolled back" in text
    assert "failed: find error" in text
    assert SUSPEND not in kubectl.labels("deployment", "sleep")
    release(kubectl, "busybox:1.37")
    assert version_of(kubectl) != second


def test_url_that_checks_may_not_request_is_rejected(kubectl: Kubectl) -> None:
    policy(kubectl, "own", checks=[{"name": "gate", "http": {"url": "http://169.254.169.254/latest"}}])
    found = until_accepted(kubectl, "own", "False")
    assert condition(found, "Accepted")["reason"] == "UrlNotAllowed"
    assert "accepted" not in found["status"]


def test_report_counts_what_enforce_would_have_done(kubectl: Kubectl, tmp_path: Path) -> None:
    fail_second_release(kubectl, mode="observe", onFailure="rollback")
    until_release(kubectl, "Suspend")
    log = tmp_path / "report.log"
    arguments = ("--kubeconfig", str(kubectl.kubeconfig), "-n", kubectl.namespace)
    with command("report", *arguments, "-ojson", log=log) as process:
        assert process.wait() == 0
    (line,) = json.loads(log.read_text())["namespaces"]
    assert line == {
        "namespace": kubectl.namespace, "releases": 2, "observed": 2, "wouldSuspend": 0, "wouldRollBack": 1,
        "suspended": 0, "rolledBack": 0,
    }  # fmt: skip
    with command("report", *arguments, log=log) as process:
        assert process.wait() == 0
    assert "WOULD-ROLL-BACK" in log.read_text()
    assert "an entry in the history" in log.read_text()


def test_failed_release_is_suspended_under_enforce(kubectl: Kubectl) -> None:
    fail_second_release(kubectl, mode="enforce", onFailure="suspend")
    eventually(lambda: SUSPEND in kubectl.labels("deployment", "sleep"), "the suspend label")
    denied = kubectl.run("apply", "-f", "-", stdin=sleep(image="busybox:1.37"))
    assert "deployment sleep is suspended" in denied.stderr


def test_failed_release_is_paused_and_continues_when_a_person_resumes_it(kubectl: Kubectl) -> None:
    _, second = fail_second_release(kubectl, onFailure="pause")
    eventually(lambda: kubectl.json("deployment", "sleep")["spec"].get("paused"), "the rollout to be paused")
    assert ROLLOUT in kubectl.json("deployment", "sleep")["metadata"]["annotations"]
    assert f"the rollout of version {second} is paused: 1 of" in until_event(kubectl, "RolloutPaused")
    assert SUSPEND in kubectl.labels("deployment", "sleep")
    request(kubectl, "Resume")
    eventually(lambda: "paused" not in kubectl.json("deployment", "sleep")["spec"], "the rollout to continue")
    workload = kubectl.json("deployment", "sleep")
    assert ROLLOUT not in workload["metadata"].get("annotations", {})
    assert SUSPEND not in workload["metadata"]["labels"]


def test_pause_ends_with_a_rollback_and_the_version_that_passed_is_rolled_out(kubectl: Kubectl) -> None:
    first, second = fail_second_release(kubectl, onFailure="pause", pauseSeconds=6)
    eventually(lambda: kubectl.json("deployment", "sleep")["spec"].get("paused"), "the rollout to be paused")
    end = of_version(kubectl, second)["status"]["pause"]
    assert end["endTimeUnix"] > time.time()
    until = json.loads(kubectl.json("deployment", "sleep")["metadata"]["annotations"][ROLLOUT])["causes"][0]["until"]
    assert f"is paused until {until}, when the last version that passed" in until_event(kubectl, "RolloutPaused")
    assert end["endTime"].replace(" ", "T") in until
    arguments = ("--kubeconfig", str(kubectl.kubeconfig), "-n", kubectl.namespace)
    log = kubectl.kubeconfig.parent / f"why-{kubectl.namespace}.log"
    with command("why", "deployment/sleep", *arguments, log=log) as process:
        assert process.wait() == 3
    assert f"Rollout:   paused by AlterShield until {until} (" in log.read_text()
    eventually(lambda: state_of(kubectl, second) == "Failed", "the rollback to end")
    assert version_of(kubectl) == first
    found = condition(of_version(kubectl, second), "RolledBack")
    assert (found["status"], found["reason"]) == ("True", "VerificationFailed")
    assert "the pause has ended after 6 s" in found["message"]
    assert f"version {second} is rolled back" in until_event(kubectl, "RolloutPauseEnded")
    eventually(lambda: SUSPEND not in kubectl.labels("deployment", "sleep"), "the suspension to end")
    workload = kubectl.json("deployment", "sleep")
    assert "paused" not in workload["spec"]
    assert ROLLOUT not in workload["metadata"]["annotations"]
    assert state_of(kubectl, second) == "Failed", "it stays refused"


@pytest.mark.parametrize(
    ("kind", "strategy"),
    [
        ("StatefulSet", {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}),
        ("DaemonSet", {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}),
    ],
)
def test_other_kinds_are_rolled_back_at_the_end_of_a_pause_and_get_their_strategy_back(
    kubectl: Kubectl, kind: str, strategy: Json
) -> None:
    policy(kubectl, "own", onFailure="pause", pauseSeconds=3)
    until_accepted(kubectl, "own")
    kubectl.apply(sleep(kind=kind, replicas=3, updateStrategy=strategy))
    first = until_release(kubectl, "Success")["spec"]["reversion"]
    before = kubectl.json(kind.lower(), "sleep")["spec"]["updateStrategy"]
    kubectl.apply(sleep(kind=kind, replicas=3, image="busybox:1.36", updateStrategy=strategy))
    eventually(lambda: newest(kubectl)["spec"]["reversion"] != first, "the second release")
    second = until_release(kubectl, "Success")["spec"]["reversion"]
    fail_a_pod(kubectl)
    until_event(kubectl, "RolloutPauseEnded")

    def restored() -> bool:
        found = kubectl.json(kind.lower(), "sleep")
        same = found["spec"]["updateStrategy"] == before and ROLLOUT not in found["metadata"].get("annotations", {})
        return same and found["metadata"]["labels"][VERSION] == first

    eventually(restored, "the first version and its strategy")
    name = f"{kind.lower()}.sleep--x--{second}"
    assert condition(kubectl.json("changeworkload", name), "RolledBack")["reason"] == "VerificationFailed"
    eventually(lambda: SUSPEND not in kubectl.labels(kind.lower(), "sleep"), "the suspension to end")
    pods = kubectl.json("pods", "-l", "app=sleep")["items"]
    assert {pod["metadata"]["labels"][VERSION] for pod in pods} == {first}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
def test_pause_that_ends_with_continue_takes_back_what_it_set_and_the_version_stays_failed(
    kubectl: Kubectl, kind: str
) -> None:
    policy(kubectl, "own", onFailure="pause", pauseSeconds=3, onPauseEnd="continue")
    until_accepted(kubectl, "own")
    partition = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}
    kubectl.apply(sleep(kind=kind, replicas=2, **(partition if kind == "StatefulSet" else {})))
    until_release(kubectl, "Success")

    def rollout() -> Json:
        found: Json = kubectl.json(kind.lower(), "sleep")
        spec = found["spec"]
        return {key: spec.get(key) for key in ("paused", "updateStrategy")}

    before = rollout()
    fail_a_pod(kubectl)
    eventually(lambda: rollout() != before, "the rollout to be paused")
    assert "continues although the version failed" in until_event(kubectl, "RolloutPauseEnded")
    eventually(lambda: rollout() == before, "the rollout to continue as before")
    assert newest(kubectl)["status"]["pause"]["ended"]
    time.sleep(2)
    assert rollout() == before
    assert newest(kubectl)["status"]["status"] == "Suspend"
    assert SUSPEND in kubectl.labels(kind.lower(), "sleep")


@pytest.mark.parametrize("on_pause_end", ["rollback", "continue"])
def test_rollout_that_a_person_paused_again_stays_paused_at_the_end(kubectl: Kubectl, on_pause_end: str) -> None:
    _, second = fail_second_release(kubectl, onFailure="pause", pauseSeconds=6, onPauseEnd=on_pause_end)
    eventually(lambda: kubectl.json("deployment", "sleep")["spec"].get("paused"), "the rollout to be paused")
    kubectl("rollout", "resume", "deployment/sleep")
    kubectl("rollout", "pause", "deployment/sleep")
    until_event(kubectl, "RolloutPauseEnded")
    eventually(lambda: newest(kubectl)["status"]["pause"].get("ended"), "the end of the pause")
    time.sleep(2)
    workload = kubectl.json("deployment", "sleep")
    assert workload["spec"]["paused"]
    assert (version_of(kubectl), state_of(kubectl, second)) == (second, "Suspend")
    assert SUSPEND in workload["metadata"]["labels"]


def test_deleted_policy_does_not_keep_a_pause_from_ending(kubectl: Kubectl) -> None:
    first, second = fail_second_release(kubectl, onFailure="pause", pauseSeconds=4)
    eventually(lambda: kubectl.json("deployment", "sleep")["spec"].get("paused"), "the rollout to be paused")
    kubectl("delete", "defensepolicy", "own")
    eventually(lambda: state_of(kubectl, second) == "Failed", "the rollback to end")
    assert version_of(kubectl) == first
    eventually(lambda: "paused" not in kubectl.json("deployment", "sleep")["spec"], "the rollout to continue")


def test_repair_of_a_paused_rollout_is_rolled_out_and_ends_the_suspension(kubectl: Kubectl) -> None:
    _, second = fail_second_release(kubectl, onFailure="pause")
    eventually(lambda: kubectl.json("deployment", "sleep")["spec"].get("paused"), "the rollout to be paused")
    kubectl("label", "deployment", "sleep", f"{IGNORED_SUSPEND}=true")
    release(kubectl, "busybox:1.37")
    eventually(lambda: newest(kubectl)["spec"]["reversion"] != second, "the repair")
    until_release(kubectl, "Success")
    eventually(lambda: SUSPEND not in kubectl.labels("deployment", "sleep"), "the suspension to end")
    assert "paused" not in kubectl.json("deployment", "sleep")["spec"]


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_other_kinds_are_paused_and_get_their_strategy_back(kubectl: Kubectl, kind: str) -> None:
    policy(kubectl, "own", onFailure="pause")
    until_accepted(kubectl, "own")
    kubectl.apply(sleep(kind=kind, replicas=2))
    until_release(kubectl, "Success")
    before = kubectl.json(kind.lower(), "sleep")["spec"]["updateStrategy"]
    fail_a_pod(kubectl)

    def strategy() -> Json:
        found: Json = kubectl.json(kind.lower(), "sleep")["spec"]["updateStrategy"]
        return found

    eventually(lambda: strategy() != before, "the rollout to be paused")
    request(kubectl, "Approve")
    eventually(lambda: strategy() == before, "the rollout to continue as before")


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_pause_by_an_older_release_of_altershield_is_taken_back(kubectl: Kubectl, kind: str) -> None:
    policy(kubectl, "own", onFailure="pause")
    until_accepted(kubectl, "own")
    kubectl.apply(sleep(kind=kind, replicas=2))
    until_release(kubectl, "Success")

    def annotations() -> Json:
        found: Json = kubectl.json(kind.lower(), "sleep")["metadata"].get("annotations", {})
        return found

    before = kubectl.json(kind.lower(), "sleep")["spec"]
    fail_a_pod(kubectl)
    eventually(lambda: ROLLOUT in annotations(), "the rollout to be paused")
    hold = json.loads(annotations()[ROLLOUT])
    ((path, value),) = hold["fields"].items()
    (cause,) = hold["causes"]
    old = {
        "time": cause["time"],
        "version": hold["version"],
        "reason": cause["reason"],
        "changes": [{"path": path, "value": None, "before": value}],
        "until": "",
    }
    own = ("--field-manager", "altershield")  # the annotation belongs to the manager of the field
    kubectl("annotate", kind.lower(), "sleep", *own, f"{PAUSED}={json.dumps(old)}", f"{ROLLOUT}-")
    request(kubectl, "Approve")
    eventually(lambda: PAUSED not in annotations(), "the end of the pause")
    after = kubectl.json(kind.lower(), "sleep")["spec"]
    assert {name: after.get(name) for name in ("paused", "updateStrategy")} == {
        name: before.get(name) for name in ("paused", "updateStrategy")
    }


@pytest.mark.parametrize("strategy", ["RollingUpdate", "Recreate"])
def test_failed_release_is_rolled_back_to_the_version_that_passed(kubectl: Kubectl, strategy: str) -> None:
    policy(kubectl, "own", onFailure="rollback")
    until_accepted(kubectl, "own")
    chosen = {"strategy": {"type": strategy}}
    kubectl.apply(sleep(**chosen))
    first = until_release(kubectl, "Success")["spec"]["reversion"]
    kubectl.apply(sleep(image="busybox:1.36", **chosen))
    eventually(lambda: newest(kubectl)["spec"]["reversion"] != first, "the second release")
    second = until_release(kubectl, "Success")["spec"]["reversion"]
    fail_a_pod(kubectl)
    eventually(lambda: version_of(kubectl) == first, "the first version to be released again")
    eventually(lambda: state_of(kubectl, second) == "Failed", "the rollback to end")
    found = condition(of_version(kubectl, second), "RolledBack")
    assert (found["status"], found["reason"]) == ("True", "VerificationFailed")
    assert "find error" in found["message"]
    assert SUSPEND not in kubectl.labels("deployment", "sleep")
    eventually(lambda: state_of(kubectl, first) == "Success", "the first version to succeed")
    assert len(events(kubectl, "RolledBack")) == 1


def test_first_release_that_fails_has_no_target_and_is_suspended_with_the_reason(kubectl: Kubectl) -> None:
    policy(kubectl, "own", onFailure="rollback")
    until_accepted(kubectl, "own")
    release(kubectl)
    until_release(kubectl, "Success")
    fail_a_pod(kubectl)
    eventually(lambda: SUSPEND in kubectl.labels("deployment", "sleep"), "the suspend label")
    assert "not rolled back: no older version has passed" in until_event(kubectl, "ReleaseSuspended")


def test_release_that_never_comes_up_is_suspended_with_on_start_failure_suspend(kubectl: Kubectl) -> None:
    policy(kubectl, "own", onStartFailure="suspend", startTimeoutSeconds=4, rollbackShare=1)
    until_accepted(kubectl, "own")
    release(kubectl)
    until_release(kubectl, "Success")
    kubectl.apply(sleep(image="registry.invalid/missing:1"))
    broken = version_of(kubectl)
    eventually(lambda: SUSPEND in kubectl.labels("deployment", "sleep"), "the suspend label")
    assert version_of(kubectl) == broken
    assert "has onStartFailure: suspend" in condition(of_version(kubectl, broken), "RolledBack")["message"]


def test_batch_of_the_policy_is_the_size_of_the_change_pods(kubectl: Kubectl) -> None:
    policy(kubectl, "own", batch="60%")
    until_accepted(kubectl, "own")
    release(kubectl)
    found = until_release(kubectl, "Success")
    assert found["spec"]["countThreshold"] == 3
    sizes = [len(each["spec"]["podInfos"]) for each in kubectl.json("changepods")["items"]]
    assert max(sizes) == 3


def test_version_that_restarts_again_and_again_after_its_success_is_suspended(kubectl: Kubectl) -> None:
    """Its pod comes up after each restart, so it is never overdue."""
    policy(kubectl, "settle", settleSeconds=600, startTimeoutSeconds=5, observeSeconds=1)
    until_accepted(kubectl, "settle")
    release(kubectl, image="exits-after-6s:1")
    until_release(kubectl, "Success")
    settling = eventually(
        lambda: newest(kubectl)["status"].get("settling", {}).get("restarting"), "a restart to be counted"
    )
    assert settling[0]["message"].startswith("container sleep restarted 1 time in")
    failed = until_release(kubectl, "Suspend")["status"]["defenseCheckFailPods"]
    assert "restarted 3 times in" in failed[0]["message"]
    assert failed[0]["message"].endswith("Error (exit code 1)")
