"""What a person decides about a release, by the command `altershield` and by plain kubectl."""

from collections.abc import Callable

import pytest

from altershield.commands.app import main
from tests.e2e.sleep import SUSPEND, TEMPLATE_PATCH, VERSION, release, succeed, suspend
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually
from tests.support.processes import Done, call

Run = Callable[..., Done]


@pytest.fixture
def altershield(kubectl: Kubectl, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs `altershield` in the namespace of the test, and checks the exit code."""

    def run(*arguments: str, code: int = 0) -> Done:
        where = ("-n", kubectl.namespace, "--kubeconfig", str(kubectl.kubeconfig))
        done = call(main, "altershield", *arguments, *where, capture=capfd)
        assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    return run


def actions(kubectl: Kubectl, version: str) -> list[Json]:
    found: list[Json] = kubectl.json("changeworkload", f"sleep--x--{version}")["status"].get("actions", [])
    return found


def is_suspended(kubectl: Kubectl) -> bool:
    return SUSPEND in kubectl.labels("deployment", "sleep")


def test_approve_ends_the_suspension_of_a_false_alarm(kubectl: Kubectl, altershield: Run) -> None:
    version = release(kubectl)
    suspend(kubectl, version)
    done = altershield("approve", "deploy/sleep", "-m", "the check is broken")
    assert "is accepted" in done.stdout
    assert not is_suspended(kubectl)
    succeed(kubectl, version)
    (action,) = actions(kubectl, version)
    assert (action["verb"], action["result"], action["reason"]) == ("Approve", "Done", "the check is broken")
    assert action["by"]
    again = altershield("approve", "deploy/sleep", "-m", "the check is broken")
    assert "nothing was changed" in again.stdout
    kubectl("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH)
    assert kubectl.labels("deployment", "sleep")[VERSION] != version
    eventually(lambda: "RequestCarriedOut" in kubectl("get", "events"), "the Event")
