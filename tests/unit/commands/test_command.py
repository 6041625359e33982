"""How the command ends: one sentence and an exit code."""

import subprocess
import sys
from pathlib import Path

import pytest

from altershield.api import labels
from altershield.api.kinds import (
    ChangeWorkload,
    ChangeWorkloadSpec,
    ChangeWorkloadStatus,
    ConditionType,
    WorkloadState,
)
from altershield.api.meta import Condition, ObjectMeta
from altershield.api.views import Deployment
from altershield.commands.status import _row, exit_code


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


def workload(status: ChangeWorkloadStatus) -> ChangeWorkload:
    spec = ChangeWorkloadSpec("w", "w", "w", "1", 1, 60, "", 0)
    return ChangeWorkload(ObjectMeta(name="w--x--1"), spec, status)


def test_what_a_verdict_says_cannot_steer_the_terminal() -> None:
    said = Condition(ConditionType.VERIFIED, "False", "PodsFailed", "pod a: \x1b[31mred\nline")
    row = _row(workload(ChangeWorkloadStatus(conditions=(said,))), Deployment(ObjectMeta(name="w")))
    assert row.why == "pod a:  [31mred line"


def test_status_says_which_release_slipped_past_the_gate() -> None:
    conditions = (
        Condition(ConditionType.SLIPPED, "True", "VersionReused", "ReplicaSet sleep-1 slipped past the gate: ..."),
        Condition(ConditionType.VERIFIED, "True", "PodsPassed", "5 of 5 pods passed"),
    )
    row = _row(workload(ChangeWorkloadStatus(conditions=conditions)), Deployment(ObjectMeta(name="w")))
    assert row.why == "slipped past the gate (VersionReused); 5 of 5 pods passed"


def test_exit_codes_tell_suspended_from_rolled_back_from_fine() -> None:
    fine = workload(ChangeWorkloadStatus(status=WorkloadState.SUCCESS))
    rolled_back = workload(
        ChangeWorkloadStatus(
            status=WorkloadState.FAILED, conditions=(Condition(ConditionType.ROLLED_BACK, "True", "PodNotUp"),)
        )
    )
    suspended = Deployment(ObjectMeta(name="w", labels={labels.SUSPEND: "1"}))
    assert exit_code([fine], [Deployment(ObjectMeta(name="w"))]) == 0
    assert exit_code([fine, rolled_back], [Deployment(ObjectMeta(name="w"))]) == 5
    assert exit_code([fine, rolled_back], [suspended]) == 3
