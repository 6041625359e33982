"""What do release gates cost a release at admission, and how much memory do they take in a gatekeeper?

Measured: a gatekeeper without gates, and one with windows and freezes in AlterShield's namespace, serve HTTPS in turns,
each alone on one core; wrk sends reviews of releases of 8 KB from another core. Each gate requires a label, as those of
teams do. Those of one team select the workload and are open, so that the release is admitted. Each round starts both
processes again. Then the judgement about one release is measured in this process, with gates that are all closed: the
minimum of several runs, in CPU time. `mebibytes` is what a gatekeeper keeps of the objects, with the times of 35 days.

How to read it: read the ratios, the medians of those of each round. Two processes with the same code differ by several
percent: `--freezes 0 --windows 0` shows by how much. The bound of the p99 is for the defaults, on a quiet machine.
"""

import json
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from altershield.admission.webhooks import webhook_path
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.resources import RELEASE_FREEZES, RELEASE_WINDOWS
from altershield.gates.cached import reader
from altershield.gates.freezes import FREEZES
from altershield.gates.gate import Gate
from altershield.gates.index import Index
from altershield.gates.judge import judge
from altershield.gates.release import Placed, Release
from altershield.gates.windows import WINDOWS
from bench.harness.answer import Answer, exceeded, fields
from bench.harness.reviews import write_reviews
from bench.harness.stub_api import gatekeeper_on_a_stub
from bench.harness.wrk import SERVER_CORE, Run, check_machine, compared, in_turns
from kube_base.resources import DEPLOYMENTS
from kube_base.times import rfc3339

_NOW = 1_800_000_000
_DAY = 86_400
_BYTES = 8_000
_PATHS = {True: "mutate", False: "validate"}
_APP = "sleep"
"""The value of the label `app` of the workloads in the reviews."""
_REPEATS = 200
_TRIES = 5
_MOST_MICROSECONDS = 60.0
_MOST_TIMES = 1.05
_MOST_MEBIBYTES = 10.0

_Gates = dict[str, list[dict[str, Any]]]
"""Windows and freezes as the API server has them, by plural."""


async def ask(
    windows: Annotated[int, typer.Option(help="Number of ReleaseWindows.")] = 1000,
    freezes: Annotated[int, typer.Option(help="Number of ReleaseFreezes.")] = 200,
    teams: Annotated[int, typer.Option(help="Number of values of the label by which they select.")] = 200,
    seconds: Annotated[float, typer.Option(help="Seconds of one run.")] = 3,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds with new processes.")] = 9,
) -> Answer:
    check_machine()
    with tempfile.TemporaryDirectory() as name:
        given = _gates(windows, freezes, teams, time.time() + _DAY)
        runs, resident = await _served(Path(name), given, seconds, rounds)
    table = Table("path", "p99 ms", "times", "CPU µs", "times", "rate", title="with gates, compared with none")
    figures: dict[str, Any] = {"windows": windows, "freezes": freezes}
    wrong = []
    for path, found in runs.items():
        own, cpu = compared(found, 1, 0), statistics.median(with_.cpu / without.cpu for without, with_ in found)
        figures[path] = {"p99": own.p99, "p99_times": own.times, "cpu_times": round(cpu, 3), "share": own.share}
        table.add_row(path, f"{own.p99:.2f}", f"{own.times:.3f}", f"{own.cpu:.0f}", f"{cpu:.3f}", f"{own.share:.1%}")
        wrong += exceeded(f"p99 of {path}, compared with that without gates", own.times, _MOST_TIMES)
    mebibytes = _mebibytes(windows, freezes, teams)
    without, with_gates = _microseconds({}), _microseconds(_gates(windows, freezes, teams, _NOW - _DAY))
    figures |= {
        "resident_mebibytes_more": resident,
        "mebibytes": round(mebibytes, 1),
        "microseconds_without": round(without, 1),
        "microseconds": round(with_gates, 1),
    }
    wrong += [
        *exceeded("memory", max(mebibytes, resident), _MOST_MEBIBYTES, " MiB"),
        *exceeded("a judgement", with_gates - without, _MOST_MICROSECONDS, " µs"),
    ]
    plain = {name: value for name, value in figures.items() if name not in runs}
    return Answer(figures, [table, fields("Release gates", plain)], wrong=wrong)


async def _served(
    directory: Path, gates: _Gates, seconds: float, rounds: int
) -> tuple[dict[str, list[list[Run]]], float]:
    """The runs of each path: without gates, and with them. And by how many MiB the resident memory is larger with
    them."""
    bodies = write_reviews(directory, "release", _BYTES)
    runs: dict[str, list[list[Run]]] = {name: [] for name in _PATHS.values()}
    more: list[float] = []
    for number in range(1, rounds + 1):
        print(f"round {number} of {rounds} …", flush=True)
        own = [directory / f"{number}-{name}" for name in ("without", "with")]
        for each in own:
            each.mkdir()
        async with (
            gatekeeper_on_a_stub(own[0], SERVER_CORE) as without,
            gatekeeper_on_a_stub(own[1], SERVER_CORE, gates) as with_gates,
        ):
            for mutating, name in _PATHS.items():
                path = webhook_path(DEPLOYMENTS, mutating=mutating)
                runs[name].append(await in_turns([without, with_gates], path, bodies, seconds))
            more.append(with_gates.resident - without.resident)
    return runs, statistics.median(more)


def _mebibytes(windows: int, freezes: int, teams: int) -> float:
    """The memory of what a gatekeeper keeps of the objects."""
    readers = {RELEASE_WINDOWS.plural: reader(WINDOWS), RELEASE_FREEZES.plural: reader(FREEZES)}
    for plural, each in _encoded(_gates(1, 1, 1, _NOW)):
        readers[plural](each)  # what is made once is not counted
    written = _encoded(_gates(windows, freezes, teams, _NOW))
    tracemalloc.start()
    found = [readers[plural](each) for plural, each in written]
    mebibytes = tracemalloc.get_traced_memory()[0] / 2**20
    tracemalloc.stop()
    del found
    return mebibytes


def _microseconds(gates: _Gates) -> float:
    """CPU time of one judgement."""
    kinds: dict[str, Gate[Any, Any]] = {RELEASE_WINDOWS.plural: WINDOWS, RELEASE_FREEZES.plural: FREEZES}
    placed: dict[Gate[Any, Any], list[Placed]] = {}
    for plural, each in _encoded(gates):
        found = reader(kinds[plural])(each).in_force
        placed.setdefault(kinds[plural], []).extend([found] if found is not None else [])
    indexes = {gate: Index(of_kind, SYSTEM_NAMESPACE) for gate, of_kind in placed.items()}
    labels = {"app": _APP, "stage": "prod"}
    release = Release("shop", {"stage": "prod"}, (labels, labels))
    objects = partial(_objects, indexes, release)
    return min(_timed(lambda: judge(release, objects, SYSTEM_NAMESPACE, _NOW)) for _ in range(_TRIES)) * 1e6


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


def _encoded(gates: _Gates) -> list[tuple[str, bytes]]:
    return [(plural, json.dumps(each).encode()) for plural, of_kind in gates.items() for each in of_kind]


def _gates(windows: int, freezes: int, teams: int, begin: float) -> _Gates:
    """Gates that are closed from `begin` on, Unix seconds; one after the other is for another team."""
    apps = [_APP, *(f"t{number}" for number in range(1, teams))]
    return {
        RELEASE_WINDOWS.plural: [_window(number, apps[number % teams], begin) for number in range(windows)],
        RELEASE_FREEZES.plural: [_freeze(number, apps[number % teams], begin) for number in range(freezes)],
    }


def _window(number: int, app: str, begin: float) -> dict[str, Any]:
    """A window that is closed on two days of each week, as the reconciler has accepted it."""
    spec = {
        "type": "Deny",
        "timeZone": "Asia/Shanghai",
        "schedules": [{"weekly": {"days": ["Sat", "Sun"]}}],
        "selector": {"matchLabels": {"app": app}},
        "reason": f"no releases at weekends: {number}",
    }
    weeks = [begin + week * 7 * _DAY for week in range(5)]
    times = [{"from": rfc3339(each), "to": rfc3339(each + 2 * _DAY)} for each in weeks]
    until = rfc3339(begin + 35 * _DAY)
    status = {"accepted": spec, "acceptedGeneration": 1, "computedUntil": until, "intervals": times}
    return {"metadata": _metadata(f"window-{number}"), "spec": spec, "status": status}


def _freeze(number: int, app: str, begin: float) -> dict[str, Any]:
    selector = {"matchLabels": {"app": app}}
    spec = {"reason": "an incident", "requestedBy": "ann", "selector": selector, "from": rfc3339(begin)}
    return {"metadata": _metadata(f"freeze-{number}"), "spec": spec}


def _metadata(name: str) -> dict[str, Any]:
    made = {"name": name, "namespace": SYSTEM_NAMESPACE, "uid": name, "resourceVersion": "1", "generation": 1}
    return {**made, "creationTimestamp": rfc3339(_NOW)}
