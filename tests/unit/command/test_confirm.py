"""`altershield dev` and `demo` ask before they install webhooks in a cluster that others may use."""

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from command.confirm import confirm, is_loopback, warning
from command.uninstall import uninstall
from kube_base.errors import UsageError

FAR = "https://203.0.113.7:6443"
CTRL_C = b"\x03"


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


def answered(arguments: list[str], answer: bytes, question: str) -> tuple[int, str]:
    """The exit code and the output of a command on a terminal, with this answer to its question."""
    controlling, terminal = pty.openpty()
    process = subprocess.Popen(arguments, stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # the command ended
        while True:
            if question.encode() in shown and not select.select([controlling], [], [], 1)[0]:
                if answer == CTRL_C:
                    process.send_signal(signal.SIGINT)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(10)  # a second signal, if the first one came before the command began to read
                else:
                    os.write(controlling, answer)
                continue
            shown += os.read(controlling, 4096)
    os.close(controlling)
    return process.wait(60), shown.decode()


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


@pytest.mark.parametrize("command", ["dev", "demo"])
def test_answer_no_on_a_terminal_exits_with_1_and_ctrl_c_with_130(tmp_path: Path, command: str) -> None:
    arguments = [sys.executable, "-m", "command", command, "--kubeconfig", kubeconfig(tmp_path, FAR)]
    code, shown = answered(arguments, b"n\n", "Continue? [y/N]")
    assert code == 1
    assert f"The API server {FAR} is not on this machine." in shown
    code, shown = answered(arguments, CTRL_C, "Continue? [y/N]")
    assert code == 130
    assert "Aborted" not in shown


def test_ctrl_c_at_a_question_inside_an_event_loop_exits_with_130() -> None:
    program = "import asyncio, typer; from command.confirm import ask; app = typer.Typer()\n"
    program += "async def run():\n ask('Delete?')\n@app.command()\ndef command():\n asyncio.run(run())\napp()"
    arguments = [sys.executable, "-c", program]
    assert answered(arguments, CTRL_C, "Delete? [y/N]")[0] == 130
    assert answered(arguments, b"n\n", "Delete? [y/N]")[0] == 1
    assert answered(arguments, b"y\n", "Delete? [y/N]")[0] == 0


def test_closed_stdin_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(UsageError, match="without a terminal"):
        confirm(kubeconfig(tmp_path, FAR), None, "127.0.0.1", yes=False)
    with pytest.raises(UsageError, match="stdin is not a terminal"):
        uninstall(kubeconfig=kubeconfig(tmp_path, FAR))
