"""A second `altershield dev` for the same cluster."""

from pathlib import Path

from tests.support.kubectl import Kubectl
from tests.support.processes import python


def test_second_dev_command_is_refused_while_the_first_one_runs(installed: Path, admin: Kubectl) -> None:
    before = admin.json("validatingwebhookconfiguration", "altershield-dev")["metadata"]["uid"]

    done = python("altershield", "dev", "--yes", "--kubeconfig", str(installed), seconds=60)

    assert done.returncode == 2, done.stderr
    assert "AlterShield is running for this cluster already" in done.stderr
    assert admin.json("validatingwebhookconfiguration", "altershield-dev")["metadata"]["uid"] == before
