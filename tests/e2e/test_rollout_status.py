"""What `kubectl rollout status` shows of a release that is held: the table in docs/release-in-steps.md."""

import pytest

from tests.e2e.held_kinds import apply, steps, succeed
from tests.e2e.kinds import DAEMON_SET, DEPLOYMENT, ORDERED, Kind
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually


@pytest.mark.parametrize(
    ("kind", "code", "text"),
    [
        pytest.param(DEPLOYMENT, 1, "Waiting for deployment", id="Deployment"),
        pytest.param(ORDERED, 0, "partitioned roll out complete", id="StatefulSet"),
        pytest.param(DAEMON_SET, 1, "rollout status is only available for RollingUpdate", id="DaemonSet"),
    ],
)
def test_rollout_status_of_a_held_release(kubectl: Kubectl, kind: Kind, code: int, text: str) -> None:
    succeed(kubectl, kind, apply(kubectl, kind, "busybox"))
    steps(kubectl, kind, 1, soak=600)
    version = apply(kubectl, kind, "busybox:2")
    name = kind.change_workload_name("app", version)
    eventually(lambda: kubectl.exists("changeworkload", name), name)
    kubectl.wait(f"changeworkload/{name}", "jsonpath={.status.rollout.phase}=Soaking")
    shown = kubectl.run("rollout", "status", f"{kind.resource}/app", "--timeout=3s")
    assert (shown.returncode, text in shown.stdout + shown.stderr) == (code, True), (shown.stdout, shown.stderr)
