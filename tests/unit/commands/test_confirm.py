"""`altershield dev` and `demo` ask before they install webhooks in a cluster that others may use."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from altershield.commands.confirm import confirm, is_loopback, warning
from altershield.errors import UsageError

FAR = "https://203.0.113.7:6443"


def kubeconfig(directory: Path, server: str) -> str:
    path = directory / "kubeconfig"
    config = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "c", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    }
    path.write_text(json.dumps(config))
    return str(path)


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("https://127.0.0.1:6443", True),
        ("https://127.8.0.1", True),
        ("https://[::1]:6443", True),
        ("http://localhost:8001", True),
        (FAR, False),
        ("https://[2001:db8::1]:6443", False),
        ("https://localhost.example.com", False),
        ("https://127.0.0.1.example.com", False),
        ("https://kubernetes.docker.internal:6443", False),
        ("", False),
    ],
)
def test_is_loopback_accepts_only_addresses_of_this_machine(server: str, expected: bool) -> None:
    assert is_loopback(server) is expected


def test_question_names_the_api_server_the_policy_and_the_kinds() -> None:
    text = warning(FAR, "198.51.100.2")
    assert FAR in text
    assert "failurePolicy Fail" in text
    assert "no Deployment, StatefulSet, DaemonSet or CloneSet of a governed namespace can be released" in text
    assert "198.51.100.2" not in text
    assert "Their URLs have the host 127.0.0.1, which is the machine of the API server" in warning(FAR, "127.0.0.1")


def test_remote_api_server_without_a_terminal_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"the API server {FAR} is not on this machine, .* to install them, add --yes"):
        confirm(kubeconfig(tmp_path, FAR), None, "127.0.0.1", yes=False)


def test_option_yes_and_a_loopback_api_server_need_no_question(tmp_path: Path) -> None:
    confirm(kubeconfig(tmp_path, FAR), None, "127.0.0.1", yes=True)
    confirm(kubeconfig(tmp_path, "https://127.0.0.1:6443"), None, "127.0.0.1", yes=False)


def test_answer_no_on_a_terminal_exits_with_1(tmp_path: Path) -> None:
    controlling, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "altershield", "dev", "--kubeconfig", kubeconfig(tmp_path, FAR)],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.write(controlling, b"n\n")
    _, err = process.communicate(timeout=60)
    os.close(controlling)
    os.close(terminal)
    assert process.returncode == 1
    assert f"The API server {FAR} is not on this machine." in err
    assert "Continue? [y/N]" in err
