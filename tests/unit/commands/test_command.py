"""How the command ends: one sentence and an exit code."""

import subprocess
import sys
from pathlib import Path

import pytest


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "altershield", *arguments], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("command", ["demo", "sandbox", "dev", "status", "check", "uninstall"])
def test_every_command_explains_itself(command: str) -> None:
    done = run(command, "--help")
    assert done.returncode == 0
    assert "Usage" in done.stdout


@pytest.mark.parametrize("command", ["status", "dev", "demo"])
def test_a_missing_kubeconfig_is_one_sentence_and_code_2(command: str, tmp_path: Path) -> None:
    done = run(command, "--kubeconfig", str(tmp_path / "none"))
    assert done.returncode == 2
    assert done.stdout.strip() in ("", f"On the cluster of {tmp_path / 'none'}")
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("altershield: ")
    assert "--kubeconfig" in line


def test_a_server_that_is_not_there_is_one_sentence_and_code_1(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        '{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":'
        '{"server":"https://127.0.0.1:1","insecure-skip-tls-verify":true}}],"users":[{"name":"u","user":'
        '{"token":"t"}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}]}'
    )
    done = run("status", "--kubeconfig", str(kubeconfig))
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert "127.0.0.1:1" in line


@pytest.mark.parametrize("wrong", ["--pod-spec=[]", "--pod-spec={", "--pull-secrets=/dev/null/none"])
def test_what_the_check_cannot_read_is_one_sentence_and_code_2(wrong: str) -> None:
    done = run("check", "--namespace=any", wrong)
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("altershield: --pod-spec or --pull-secrets cannot be read: ")


def test_a_threshold_out_of_bounds_is_a_usage_error() -> None:
    done = run("demo", "--start-timeout", "0")
    assert done.returncode == 2
