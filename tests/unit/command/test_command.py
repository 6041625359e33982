"""Errors of the command: one sentence and an exit code."""

import functools
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest
import shellingham
import typer
from typer.core import TyperGroup

from command import completion, main
from command.app import PLUGIN, arguments, called_as, command_line
from command.status.printers import Output
from tests.support.polling import HANG
from tests.support.processes import Done, call, python

Run = Callable[..., Done]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """`altershield ARGUMENTS`."""
    return functools.partial(call, main, "altershield", capture=capfd)


@pytest.mark.parametrize("command", ["demo", "sandbox", "dev", "status", "check", "uninstall"])
def test_every_command_prints_its_help(run: Run, command: str) -> None:
    done = run(command, "--help")
    assert done.returncode == 0
    assert "Usage" in done.stdout


@pytest.mark.parametrize("command", ["status", "dev", "demo"])
def test_missing_kubeconfig_prints_one_sentence_and_exits_with_2(run: Run, command: str, tmp_path: Path) -> None:
    done = run(command, "--kubeconfig", str(tmp_path / "none"))
    assert done.returncode == 2
    assert done.stdout.strip() in ("", f"On the cluster of {tmp_path / 'none'}")
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("error: ")
    assert "--kubeconfig" in line


def test_unreachable_server_prints_one_sentence_and_exits_with_1(run: Run, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        '{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":'
        '{"server":"https://127.0.0.1:1","insecure-skip-tls-verify":true}}],"users":[{"name":"u","user":'
        '{"token":"t"}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}]}'
    )
    done = run("status", "--kubeconfig", str(kubeconfig))
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("error: cannot reach the API server at https://127.0.0.1:1: connection refused; ")
    assert line.endswith("check the kubeconfig's context c")


@pytest.mark.parametrize("wrong", ["--pod-spec=[]", "--pod-spec={", "--pull-secrets=/dev/null/none"])
def test_unreadable_option_of_check_prints_one_sentence_and_exits_with_2(run: Run, wrong: str) -> None:
    done = run("check", "--namespace=any", wrong)
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith(f"error: {wrong.partition('=')[0]} ")


def test_threshold_out_of_range_exits_with_2(run: Run) -> None:
    done = run("demo", "--start-timeout", "0")
    assert done.returncode == 2


def test_version_option_prints_the_version() -> None:
    assert python("command", "--version").stdout == f"altershield {version('altershield')}\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["status", "-A", "web"],
            "error: -A cannot be combined with the name of a workload; set its namespace with -n",
        ),
        (["status", "--timeout=5m"], "error: --timeout is the timeout of --wait; add --wait, or remove --timeout"),
        (
            ["status", "--wait", "--timeout=soon"],
            'error: --timeout "soon" is not a duration; write it as 90s, 5m or 1h30m',
        ),
        (
            ["status", "-n", "a/b"],
            'error: "a/b" is not the name of a namespace; use lower case letters, digits and "-"',
        ),
        (
            ["status", "--kubeconfig", "/"],
            "error: no usable Kubernetes credentials in /: Is a directory: /; name a kubeconfig with --kubeconfig",
        ),
    ],
)
def test_conflicting_options_print_one_sentence_and_exit_with_2(run: Run, arguments: list[str], sentence: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stderr) == (2, f"{sentence}\n")


def test_output_to_a_full_device_prints_one_sentence_and_exits_with_1() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "command", "--version"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    sentence = "error: cannot write the output or a temporary file: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, sentence)


def test_closed_standard_files_are_opened() -> None:
    program = "import os, sys; sys.argv[1:] = ['--version']; from command import main\n"
    program += "try:\n main()\nexcept SystemExit:\n os.write(2, os.readlink('/proc/self/fd/0').encode())"
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" <&- >&-', "sh", sys.executable, "-c", program],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, os.devnull)


def test_output_to_a_closed_pipe_exits_with_1_without_a_text() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "command", "--version"], stdout=pipe, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (1, "")


def test_port_in_use_is_a_usage_error_of_the_sandbox(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("sandbox", f"--port={port}")
    assert done.returncode == 2
    assert done.stderr == (
        f"error: cannot listen on port {port}: Address already in use; choose another one with --port\n"
    )


@pytest.mark.parametrize("command", ["dev", "status", "check", "uninstall"])
def test_unknown_context_is_named_in_the_error(run: Run, command: str, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text('{"current-context":"c","contexts":[],"clusters":[],"users":[]}')
    more = {"check": ["--namespace=any"], "uninstall": ["--yes"]}.get(command, [])
    done = run(command, "--context=prod", "--kubeconfig", str(kubeconfig), *more)
    assert (done.returncode, done.stderr) == (
        2, f'error: there is no context "prod" in {kubeconfig}; `kubectl config get-contexts` lists them\n',
    )  # fmt: skip


def test_short_options_accept_an_equals_sign() -> None:
    assert arguments(["status", "-o=json", "-n=a=b", "--output=json", "a-b=c"]) == [
        *("status", "-ojson", "-na=b", "--output=json", "a-b=c")
    ]


def test_plugin_is_called_kubectl_altershield_in_its_output() -> None:
    assert called_as("/usr/bin/kubectl-altershield") == "kubectl altershield"
    assert called_as("/usr/bin/altershield") == "altershield"
    names = {entry.name: entry.value for entry in entry_points(group="console_scripts", module="command")}
    assert names == {"altershield": "command:main", PLUGIN: "command:main"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["st"], ["status"]),
        (["status", "--all-n"], ["--all-namespaces"]),
        (["status", "-o", ""], [*Output]),
        (["status", "d"], ["deployment", "daemonset"]),
    ],
)
def test_completion_prints_the_words_and_the_directive_for_kubectl(
    words: list[str], expected: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    environment = {"KUBECONFIG": str(tmp_path / "none")}
    done = call(completion.main, PLUGIN, *words, capture=capfd, environment=environment)
    assert done.stdout.splitlines() == [*expected, ":4"]
    assert done.stderr == ""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("option", ["--install-completion", "--show-completion"])
def test_completion_for_an_unknown_shell_is_refused_and_no_file_is_written(run: Run, home: Path, option: str) -> None:
    done = run(option, "nosuch")
    assert done.returncode == 2
    assert "'nosuch' is not one of 'bash', 'zsh', 'fish'" in done.stderr
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("running", ["ksh", None])
def test_completion_for_a_running_shell_without_one_is_refused(
    run: Run, home: Path, running: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def detect_shell() -> tuple[str, str]:
        if running is None:
            raise shellingham.ShellDetectionFailure
        return running, f"/bin/{running}"

    monkeypatch.setattr(shellingham, "detect_shell", detect_shell)
    done = run("--install-completion")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.endswith("name one: --install-completion bash|zsh|fish|powershell|pwsh\n")
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(("named", "installed"), [("zsh", "zsh"), (None, "fish")])
def test_completion_is_installed_for_the_named_shell_or_else_for_the_running_one(
    run: Run, home: Path, named: str | None, installed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shellingham, "detect_shell", lambda: ("fish", "/bin/fish"))
    done = run("--install-completion", *filter(None, [named]))
    assert done.returncode == 0
    assert done.stdout.startswith(f"{installed} completion installed in {home}")
    assert (home / ".zshrc").exists() is (installed == "zsh")


def test_completion_of_the_plugin_is_left_to_kubectl(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    done = call(main, PLUGIN, "--install-completion", "bash", capture=capfd)
    assert done.returncode == 2
    assert "kubectl completion" in done.stderr
    assert list(home.iterdir()) == []


def test_a_shell_that_cannot_be_set_up_is_one_sentence(run: Run, home: Path) -> None:
    (home / ".zshrc").mkdir()
    done = run("--install-completion", "zsh")
    assert done.returncode == 1
    assert done.stderr == f"error: completion is not set up: {home / '.zshrc'}: Is a directory\n"


def test_help_lists_every_command_once_in_its_group(run: Run) -> None:
    shown = run("--help").stdout
    assert re.findall(r"^(\w+):$", shown, re.MULTILINE) == ["Options", "Look", "Decide", "Protect", "Operate"]
    listed = re.findall(r"^  (\w+) ", shown.partition("Look:")[2], re.MULTILINE)
    group = typer.main.get_command(command_line())
    assert isinstance(group, TyperGroup)
    assert sorted(listed) == sorted(group.commands)
    assert max(map(len, shown.splitlines())) <= 80


def test_completion_ends_in_time_and_says_nothing_if_the_program_of_a_kubeconfig_hangs(tmp_path: Path) -> None:
    """A program that asks for a password would hang, too."""
    kubeconfig = tmp_path / "kubeconfig"
    user = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sleep", "args": ["1000"]}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"exec": {**user, "interactiveMode": "Never"}}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    kubeconfig.write_text(json.dumps(config))
    done = subprocess.run(
        [sys.executable, "-m", "command.completion", "status", "-n", ""],
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.stdout in ("", ":4\n")
    assert done.stderr == ""
