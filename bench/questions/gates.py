"""What do release gates cost a release at admission, and how much memory do they take in a gatekeeper?

Measured: the judgement about one release, in this process and without an API, with no gates, and with windows and
freezes in AlterShield's namespace. Each requires a label, as those of teams do, and all of them are closed. Times are
the minimum of several runs, in CPU time. The memory is that of what a gatekeeper keeps of the objects, with the times
of 35 days.

How to read it: a review of a release asks for up to three judgements. The whole review of a release costs about 200 µs.
"""

import json
import time
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

import typer

from altershield.api.names import SYSTEM_NAMESPACE
from altershield.gates.cached import Stored, reader
from altershield.gates.freezes import FREEZES
from altershield.gates.gate import Gate
from altershield.gates.index import Index
from altershield.gates.judge import judge
from altershield.gates.release import Placed, Release
from altershield.gates.windows import WINDOWS
from bench.harness.answer import Answer, exceeded, fields
from kube_base.times import rfc3339

_NOW = 1_800_000_000
_DAY = 86_400
_REPEATS = 200
_ROUNDS = 5
_MOST_MICROSECONDS = 60.0
_MOST_MEBIBYTES = 10.0


async def ask(
    windows: Annotated[int, typer.Option(help="Number of ReleaseWindows.")] = 1000,
    freezes: Annotated[int, typer.Option(help="Number of ReleaseFreezes.")] = 200,
    teams: Annotated[int, typer.Option(help="Number of values of the label by which they select.")] = 200,
) -> Answer:
    read_window, read_freeze = reader(WINDOWS), reader(FREEZES)
    read_window(_window(0, teams))  # what is made once is not counted
    read_freeze(_freeze(0, teams))
    tracemalloc.start()
    found: dict[Gate[Any, Any], list[Stored]] = {
        WINDOWS: [read_window(_window(number, teams)) for number in range(windows)],
        FREEZES: [read_freeze(_freeze(number, teams)) for number in range(freezes)],
    }
    mebibytes = tracemalloc.get_traced_memory()[0] / 2**20
    tracemalloc.stop()
    without, with_gates = _microseconds({}), _microseconds(found)
    figures = {
        "windows": windows,
        "freezes": freezes,
        "microseconds_without": round(without, 1),
        "microseconds": round(with_gates, 1),
        "mebibytes": round(mebibytes, 1),
    }
    wrong = [
        *exceeded("a judgement", with_gates - without, _MOST_MICROSECONDS, " µs"),
        *exceeded("memory", mebibytes, _MOST_MEBIBYTES, " MiB"),
    ]
    return Answer(figures, [fields("Release gates", figures)], wrong=wrong)


def _microseconds(found: dict[Gate[Any, Any], list[Stored]]) -> float:
    """CPU time of one judgement."""
    placed = {gate: [each.in_force for each in of_kind if each.in_force is not None] for gate, of_kind in found.items()}
    indexes = {gate: Index(of_kind) for gate, of_kind in placed.items()}
    labels = {"team": "t7", "app": "web"}
    release = Release("shop", {"stage": "prod"}, (labels, labels))
    objects = partial(_objects, indexes, release)
    return min(_timed(lambda: judge(release, objects, SYSTEM_NAMESPACE, _NOW)) for _ in range(_ROUNDS)) * 1e6


def _objects(
    indexes: dict[Gate[Any, Any], Index[Placed]], release: Release, gate: Gate[Any, Any], namespace: str
) -> Sequence[Placed]:
    index = indexes.get(gate)
    return index.candidates(release) if index is not None and namespace == SYSTEM_NAMESPACE else ()


def _timed(function: Callable[[], object]) -> float:
    began = time.process_time()
    for _ in range(_REPEATS):
        function()
    return (time.process_time() - began) / _REPEATS


def _window(number: int, teams: int) -> bytes:
    """A window that is closed on two days of each week, as the reconciler has accepted it."""
    spec = {
        "type": "Deny",
        "timeZone": "Asia/Shanghai",
        "schedules": [{"weekly": {"days": ["Sat", "Sun"]}}],
        "selector": {"matchLabels": {"team": f"t{number % teams}"}},
        "reason": f"no releases at weekends: {number}",
    }
    times = [{"from": rfc3339(_NOW + day * _DAY), "to": rfc3339(_NOW + (day + 2) * _DAY)} for day in range(-1, 34, 7)]
    status = {"accepted": spec, "acceptedGeneration": 1, "computedUntil": rfc3339(_NOW + 35 * _DAY), "intervals": times}
    return json.dumps({"metadata": _metadata(f"window-{number}"), "spec": spec, "status": status}).encode()


def _freeze(number: int, teams: int) -> bytes:
    selector = {"matchLabels": {"team": f"t{number % teams}"}}
    spec = {"reason": "an incident", "requestedBy": "ann", "selector": selector}
    return json.dumps({"metadata": _metadata(f"freeze-{number}"), "spec": spec}).encode()


def _metadata(name: str) -> dict[str, Any]:
    made = {"name": name, "namespace": SYSTEM_NAMESPACE, "uid": name, "resourceVersion": "1", "generation": 1}
    return {**made, "creationTimestamp": rfc3339(_NOW)}
