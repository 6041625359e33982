"""`altershield dev` beside another one."""

from pathlib import Path

from tests.support.kubectl import Kubectl
from tests.support.processes import python


def test_a_second_gate_is_refused_while_the_first_one_runs(gate: Path, admin: Kubectl) -> None:
    before = admin.json("validatingwebhookconfiguration", "altershield-dev")["metadata"]["uid"]

    done = python("altershield", "dev", "--yes", "--kubeconfig", str(gate), seconds=60)

    assert done.returncode == 2, done.stderr
    assert "a gate is running on this cluster already" in done.stderr
    assert admin.json("validatingwebhookconfiguration", "altershield-dev")["metadata"]["uid"] == before
