"""Releases in steps that wait for checks before a step, and releases that a check judges at their end."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e import held_releases
from tests.e2e.conftest import govern
from tests.e2e.held_releases import apply, pods_by_version, reach, rollout
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


def policy(kubectl: Kubectl, rollout: Json, *checks: Json, **spec: Any) -> None:
    """Make a policy, and wait until the gatekeepers and the reconciler know it."""
    held_releases.policy(kubectl, rollout, checks=list(checks), **spec)
    kubectl.wait("defensepolicy/steps", "condition=Accepted")


def version_pods(kubectl: Kubectl, version: str) -> int:
    return pods_by_version(kubectl).get(version, 0)


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
