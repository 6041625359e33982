"""A second `altershield dev` for the same cluster, and the end of the command."""

from pathlib import Path

from command.install.crds import crds
from tests.support.kubectl import Kubectl
from tests.support.processes import command, python, wait_for_line


def test_second_dev_command_is_refused_while_the_first_one_runs(installed: Path, admin: Kubectl) -> None:
    before = admin.json("validatingwebhookconfiguration", "altershield-dev")["metadata"]["uid"]

    done = python("command", "dev", "--yes", "--kubeconfig", str(installed))

    assert done.returncode == 2, done.stderr
    assert "AlterShield is running for this cluster already" in done.stderr
    assert admin.json("validatingwebhookconfiguration", "altershield-dev")["metadata"]["uid"] == before


def test_end_of_the_dev_command_leaves_only_objects_with_data(tmp_path: Path, has_kubectl: None) -> None:
    kubeconfig, log = tmp_path / "kubeconfig", tmp_path / "log"
    with command("sandbox", "--output", str(kubeconfig), log=tmp_path / "sandbox.log") as sandbox:
        wait_for_line(sandbox, tmp_path / "sandbox.log", "Serving ")
        with command("dev", "--yes", "--kubeconfig", str(kubeconfig), log=log) as process:
            wait_for_line(process, log, "The gatekeeper is ready")
            assert python("command", "uninstall", "--dry-run", "--kubeconfig", str(kubeconfig)).stdout
            process.terminate()
            assert process.wait() == 0
        assert "Kept the CustomResourceDefinitions with all their objects" in log.read_text()
        left = python("command", "uninstall", "--dry-run", "--kubeconfig", str(kubeconfig))
    assert "would delete" not in left.stdout, left.stdout
    assert left.stdout.count("kept CustomResourceDefinition") == len(crds())
