"""`altershield dev` beside another one."""

import subprocess
import sys
from pathlib import Path

from tests.support.kubectl import Kubectl


def test_a_second_gate_is_refused_while_the_first_one_runs(gate: Path, admin: Kubectl) -> None:
    before = admin.json("validatingwebhookconfiguration", "altershield-dev")["metadata"]["uid"]

    done = subprocess.run(
        [sys.executable, "-m", "altershield", "dev", "--yes", "--kubeconfig", str(gate)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 2, done.stderr
    assert "a gate is running on this cluster already" in done.stderr
    assert admin.json("validatingwebhookconfiguration", "altershield-dev")["metadata"]["uid"] == before
