"""A workload as a tree: versions, steps, batches, pods."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from altershield.api.change_pod import ChangePod, ChangePodSpec, ChangePodStatus, PodState
from altershield.api.change_workload import ChangeWorkloadStatus, WorkloadState
from altershield.api.pod_verdicts import PodInfo
from altershield.views.releases.family import Line, Mark, lines
from altershield.views.releases.model import Release, Snapshot, shown
from kube_base.meta import ObjectMeta
from tests.unit.altershield.releases.steps import NOW, ROLLOUT, SOAKING
from tests.unit.altershield.views.builders import DONE, V1, V2, in_steps, release, scaled, stored, workload

NAME = f"web--x--{V1}"
RUNNING = ChangeWorkloadStatus(status=WorkloadState.RUNNING, entry_time_unix=NOW - 90)


def batch(number: int, *pods: str, ended: str = "PreFailed", created: int = NOW - 100, **status: Any) -> ChangePod:
    spec = ChangePodSpec(NAME, "", created, tuple(map(PodInfo, pods)))
    state = PodState.EXECUTE_DONE if ended else PodState.PRE_SUBMITTED
    return ChangePod(
        ObjectMeta(name=f"{NAME}--x--{number}"), spec, ChangePodStatus(status=state, message=ended, **status)
    )


def drawn(found: list[Release], *batches: ChangePod) -> list[Line]:
    return lines(found, {NAME: batches}, float(NOW))


def texts(found: list[Release], *batches: ChangePod) -> list[str]:
    return [line.branch + line.text for line in drawn(found, *batches)]


def of(status: ChangeWorkloadStatus) -> list[Release]:
    return shown(Snapshot([workload()], [stored(release(status))]))


def test_versions_batches_and_pods_are_a_tree_with_the_newest_version_first() -> None:
    old = release(DONE, version=V2, created=1)
    new = release(replace(RUNNING, defense_preparing_pods=(PodInfo("web-5"),)), created=2)
    found = shown(Snapshot([workload()], [stored(old), stored(new)]))
    failed = batch(2, "web-2", ended="PostFinish", pod_results=(PodInfo("web-2", verdict="unpass", message="5xx"),))
    made = drawn(found, batch(3, "web-3", "web-4", ended=""), batch(1, "web-1"), failed)
    assert [line.branch + line.text for line in made] == [
        "deployment.apps/web",
        f"├─ version {V1[:12]}* (busybox): Running for 90s",
        "│  ├─ batch 1: web-1  passed without a check",
        "│  ├─ batch 2: web-2  failed: 5xx",
        "│  ├─ batch 3: 2 pods",
        "│  │  ├─ web-3  is being verified",
        "│  │  └─ web-4  is being verified",
        "│  └─ web-5  waits for a batch",
        f"└─ version {V2[:12]}: Success for {made[-1].text.partition(' for ')[2]}",
    ]
    assert [line.mark for line in made[2:6]] == [Mark.GOOD, Mark.BAD, Mark.PLAIN, Mark.PLAIN]


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        ("PreFailed", "passed without a check"),
        ("PostFailed", "passed without a check"),
        ("PreTimeout", "passed, the check had no result in time"),
        ("PostTimeout", "passed, the check had no result in time"),
        ("PostFinish", "passed"),
        ("looks good to me", "passed"),
    ],
)
def test_end_of_a_batch_is_said_in_words(ended: str, words: str) -> None:
    assert f"   └─ batch 1: web-1  {words}" in texts(of(RUNNING), batch(1, "web-1", ended=ended))


def test_message_of_a_verdict_is_shown_on_one_line() -> None:
    result = PodInfo("web-1", verdict="pass", message="errors\n0.1 %\x1b[31m")
    assert "   └─ batch 1: web-1  passed: errors 0.1 % [31m" in texts(
        of(RUNNING), batch(1, "web-1", pod_results=(result,))
    )


def test_pods_that_are_down_are_shown_and_not_as_waiting() -> None:
    down = (replace(PodInfo("web-1"), message="OOMKilled"),)
    status = replace(RUNNING, defense_preparing_pods=(PodInfo("web-1"),))
    status = msgspec.convert(
        msgspec.to_builtins(status) | {"downPods": [{"pod": each.pod, "message": each.message} for each in down]},
        ChangeWorkloadStatus,
    )
    assert texts(of(status))[-1] == "   └─ web-1  is down: OOMKilled"
    assert drawn(of(status))[-1].mark is Mark.BAD


def test_batches_that_passed_are_counted_if_there_are_many_and_others_are_shown() -> None:
    bad = batch(1, "bad", pod_results=(PodInfo("bad", verdict="unpass"),))
    made = texts(of(RUNNING), bad, *(batch(number, f"web-{number}") for number in range(2, 100)))
    assert made[2] == "   ├─ batch 1: bad  failed: unpass"
    assert len(made) == 11
    assert made[-2:] == ["   ├─ batch 99: web-99  passed without a check", "   └─ and 91 more batches"]
    many = texts(of(RUNNING), batch(1, *(f"web-{number}" for number in range(30))))
    assert many[-1] == "      └─ and 22 more"


def test_batches_are_below_the_step_in_which_they_were_taken() -> None:
    found = [Release(scaled(10), stored(in_steps(ROLLOUT, SOAKING)))]
    made = texts(found, batch(1, "web-1", created=NOW - 800), batch(2, "web-2", created=NOW - 40))
    (first,) = [index for index, line in enumerate(made) if "─ step 1 " in line]
    (third,) = [index for index, line in enumerate(made) if "─ step 3 " in line]
    assert made[first + 1] == "   │  └─ batch 1: web-1  passed without a check"
    assert made[third + 1] == "   │  └─ batch 2: web-2  passed without a check"
    assert [line for line in made if "batch" in line] == [made[first + 1], made[third + 1]]


def test_version_that_is_not_processed_has_no_batches() -> None:
    assert texts([Release(workload(), None)])[1:] == [f"└─ version {V1[:12]}* (busybox): admitted, not yet processed"]
