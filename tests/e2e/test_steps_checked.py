"""Releases in steps that wait for checks before a step, and releases that a check judges at their end."""

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from altershield.api.resources import API_VERSION
from tests.e2e import held_kinds, held_releases
from tests.e2e.conftest import govern
from tests.e2e.held_releases import RESTS, apply, pods_by_version, reach, request, rollout, state
from tests.e2e.kinds import DAEMON_SET, ORDERED, PARALLEL, Kind
from tests.e2e.own_installation import Answer, installation, serving
from tests.e2e.sleep import release, sleep, succeed
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually

pytestmark = pytest.mark.xdist_group("server")

BAD = (500, {"message": "the schema has no column `price`"})
GOOD = (200, {"message": "all good"})


class Judge:
    """Answers the requests of checks, by the phase of the check."""

    def __init__(self) -> None:
        self.url = ""
        self.answers: dict[str, tuple[int, Any]] = {}
        self.asked: list[Json] = []

    def __call__(self, headers: dict[str, str], body: bytes) -> Answer:
        asked = json.loads(body)["altershield"]
        self.asked.append(asked)
        status, content = self.answers.get(asked["phase"], GOOD)
        return status, {}, content

    def check(self, phase: str, **more: Any) -> Json:
        return {"name": phase.lower(), "phase": phase, "timeoutSeconds": 20, "http": {"url": self.url}, **more}


@pytest.fixture(scope="module")
def served() -> Iterator[Judge]:
    found = Judge()
    with serving(found) as url:
        found.url = f"{url}/verify"
        yield found


@pytest.fixture(scope="module")
def kubeconfig(
    has_kubectl: None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    if request.config.getoption("--kubeconfig"):
        pytest.skip("needs a cluster without AlterShield: the one of --kubeconfig has an installation already")
    with installation(tmp_path_factory.mktemp("steps"), "--checks-allowed-hosts", "127.0.0.1") as found:
        yield found


@pytest.fixture
def judge(served: Judge) -> Judge:
    served.answers.clear()
    served.asked.clear()
    return served


@pytest.fixture
def kubectl(kubeconfig: Any) -> Iterator[Kubectl]:
    namespace = f"checked-{uuid.uuid4().hex[:8]}"
    govern(kubeconfig, [namespace])
    kubectl = Kubectl(kubeconfig, namespace)
    yield kubectl
    kubectl.delete_namespaces(namespace)


def policy(kubectl: Kubectl, rollout: Json | None, *checks: Json, **spec: Any) -> None:
    """Make a policy, and wait until the gatekeepers and the reconciler know it."""
    if rollout is not None:
        held_releases.policy(kubectl, rollout, checks=list(checks), **spec)
    else:
        body = {"apiVersion": API_VERSION, "kind": "DefensePolicy", "metadata": {"name": "steps"}}
        kubectl.apply(json.dumps({**body, "spec": {"checks": list(checks), **spec}}))
    kubectl.wait("defensepolicy/steps", "condition=Accepted")


def condition(kubectl: Kubectl, version: str, type_: str) -> Json:
    found = kubectl.json("changeworkload", f"sleep--x--{version}")["status"]["conditions"]
    return next((each for each in found if each["type"] == type_), {})


def suspended(kubectl: Kubectl, version: str, seconds: float = 30) -> None:
    name = f"changeworkload/sleep--x--{version}"
    kubectl.wait(name, "create")
    kubectl("wait", name, "--for=jsonpath={.status.status}=Suspend", f"--timeout={seconds}s")


def test_release_waits_at_no_pods_until_its_check_passes(kubectl: Kubectl, judge: Judge) -> None:
    judge.answers["PreRelease"] = BAD
    base = release(kubectl, sleep(replicas=4))
    policy(kubectl, {"pods": [1], "soakSeconds": 1}, judge.check("PreRelease", everySeconds=10))
    version = apply(kubectl, sleep(image="other", replicas=4))
    reach(kubectl, version, 1, "Held")
    eventually(lambda: len(judge.asked) >= 2, "the check to be tried again")
    assert pods_by_version(kubectl) == {base: 4}
    found = rollout(kubectl, version)
    assert found["waitingFor"] == ["check"]
    assert found.get("waitingSinceUnix", 0) == 0, "the deadline goes on"
    (batch,) = [each for each in kubectl.json("changepods")["items"] if each["spec"].get("phase")]
    assert (batch["spec"]["phase"], batch["spec"]["step"], batch["spec"]["podInfos"]) == ("PreRelease", 1, [])
    judge.answers.clear()
    succeed(kubectl, version)
    assert pods_by_version(kubectl) == {version: 4}
    assert [each["phase"] for each in judge.asked] == ["PreRelease"] * len(judge.asked)


def test_check_that_fails_between_two_steps_holds_the_release_until_it_passes(kubectl: Kubectl, judge: Judge) -> None:
    base = release(kubectl, sleep(replicas=5))
    check = judge.check("PreBatch", everySeconds=10)
    policy(kubectl, {"pods": [1, 3], "soakSeconds": 3}, check)
    version = apply(kubectl, sleep(image="other", replicas=5))
    reach(kubectl, version, 1, "Soaking")
    assert len(judge.asked) == 1
    judge.answers["PreBatch"] = BAD
    reach(kubectl, version, 2, "Held")
    eventually(lambda: len(judge.asked) >= 3, "the check to be tried again")
    time.sleep(RESTS)
    assert pods_by_version(kubectl) == {base: 5, version: 1}
    assert state(kubectl, version) == "Running"
    judge.answers.clear()
    succeed(kubectl, version)
    assert pods_by_version(kubectl) == {version: 5}
    batches = [each for each in kubectl.json("changepods")["items"] if each["spec"].get("phase")]
    assert sorted(each["spec"]["step"] for each in batches) == [1, 2, 3]


def test_step_whose_check_never_passes_fails_at_its_deadline(kubectl: Kubectl, judge: Judge) -> None:
    judge.answers["PreRelease"] = BAD
    base = release(kubectl, sleep(replicas=4))
    rollout = {"pods": [1], "soakSeconds": 1, "stepDeadlineSeconds": 60}
    policy(kubectl, rollout, judge.check("PreRelease", everySeconds=20))
    version = apply(kubectl, sleep(image="other", replicas=4))
    reach(kubectl, version, 1, "Held")
    suspended(kubectl, version, 90)
    assert pods_by_version(kubectl) == {base: 4}
    verified = condition(kubectl, version, "Verified")
    assert verified["reason"] == "StepDeadlineExceeded"
    assert verified["message"].endswith("prerelease: the server answered HTTP 500: the schema has no column `price`")
    request(kubectl, version, "Approve")
    succeed(kubectl, version)
    assert pods_by_version(kubectl) == {version: 4}


@pytest.mark.parametrize("steps", [None, {"pods": [1], "soakSeconds": 1}])
def test_release_whose_last_check_fails_is_suspended(kubectl: Kubectl, judge: Judge, steps: Json | None) -> None:
    release(kubectl, sleep(replicas=3))
    policy(kubectl, steps, judge.check("PostRelease"))
    judge.answers["PostRelease"] = BAD
    version = apply(kubectl, sleep(image="other", replicas=3))
    suspended(kubectl, version)
    assert pods_by_version(kubectl) == {version: 3}
    verified = condition(kubectl, version, "Verified")
    assert verified["reason"] == "FailedByCheck"
    assert "postrelease: the server answered HTTP 500" in verified["message"]
    assert len(judge.asked) == 1
    judge.answers.clear()
    request(kubectl, version, "Retry")
    succeed(kubectl, version)
    assert len(judge.asked) == 2


def test_release_whose_last_check_fails_is_rolled_back_if_the_policy_says_so(kubectl: Kubectl, judge: Judge) -> None:
    base = release(kubectl, sleep(replicas=3))
    policy(kubectl, {"pods": [1], "soakSeconds": 1}, judge.check("PostRelease"), onFailure="rollback")
    judge.answers["PostRelease"] = BAD
    version = apply(kubectl, sleep(image="other", replicas=3))
    name = f"changeworkload/sleep--x--{version}"
    kubectl.wait(name, "create")
    kubectl.wait(name, "jsonpath={.status.status}=Failed")
    eventually(lambda: pods_by_version(kubectl) == {base: 3}, "the rollback")
    assert "postrelease: the server answered HTTP 500" in condition(kubectl, version, "RolledBack")["message"]


@pytest.mark.parametrize("kind", [ORDERED, PARALLEL, DAEMON_SET], ids=lambda kind: kind.id)
def test_no_kind_of_workload_has_pods_of_the_version_before_its_check_passes(
    kubectl: Kubectl, judge: Judge, kind: Kind
) -> None:
    judge.answers["PreRelease"] = BAD
    base = held_kinds.apply(kubectl, kind, "busybox")
    held_kinds.succeed(kubectl, kind, base)
    before = kubectl.json(kind.resource, "app")
    probe = json.dumps(kind.manifest("app", "probe", replicas=3))
    policy(kubectl, {"pods": [1], "soakSeconds": 1}, judge.check("PreRelease", everySeconds=10), probe=probe)
    version = held_kinds.apply(kubectl, kind, "busybox:2")
    held_kinds.reach(kubectl, kind, version, "Held")
    eventually(lambda: judge.asked, "the check to run")
    if kind is not DAEMON_SET:
        kubectl("scale", kind.resource, "app", "--replicas=4")
        eventually(lambda: len(held_kinds.of_version(kubectl, base)) == 4, "the pod that scaling adds")
    time.sleep(RESTS)
    assert held_kinds.of_version(kubectl, version) == []
    judge.answers.clear()
    held_kinds.succeed(kubectl, kind, version)
    after = kubectl.json(kind.resource, "app")["spec"]
    assert after["updateStrategy"] == before["spec"]["updateStrategy"]


def test_job_before_a_release_is_tried_again_with_a_job_of_its_own(kubectl: Kubectl) -> None:
    base = release(kubectl, sleep(replicas=3))

    def migrated(image: str) -> Json:
        pod = {"restartPolicy": "Never", "containers": [{"name": "smoke", "image": image}]}
        template = {"spec": {"backoffLimit": 0, "template": {"spec": pod}}}
        return {"name": "migrated", "phase": "PreRelease", "everySeconds": 10, "job": {"template": template}}

    policy(kubectl, {"pods": [1], "soakSeconds": 1}, migrated("busybox:exits-after-500ms"))
    version = apply(kubectl, sleep(image="other", replicas=3))
    reach(kubectl, version, 1, "Held")
    eventually(lambda: len(kubectl.json("jobs")["items"]) >= 2, "a second Job")
    assert pods_by_version(kubectl) == {base: 3}
    assert "migrated: the Job" in condition(kubectl, version, "Progressing")["message"]
    request(kubectl, version, "Approve")
    succeed(kubectl, version)
