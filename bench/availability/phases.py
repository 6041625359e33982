"""Results of the load in each phase, and the errors in them."""

import asyncio
import collections
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass

from bench.availability.gatekeepers import Gatekeepers
from bench.availability.installation import WEBHOOK_SECONDS
from bench.availability.load import Load
from bench.availability.losses import Cause, Sent, explained, wrong_with
from bench.availability.service import Service
from bench.harness.answer import quantile


@dataclass(frozen=True)
class Phase:
    """The results of a phase. Latencies are in milliseconds."""

    name: str
    seconds: float
    requests: int
    failures: tuple[str, ...]
    under_way: int
    """Failures because a gatekeeper was killed during the call."""
    unnoticed: int
    """Failures on new or closing connections to a killed gatekeeper."""
    hung: int
    """Failures because a gatekeeper hung."""
    p50: float
    p99: float
    worst: float
    happened: str


@dataclass(frozen=True)
class Result:
    phases: tuple[Phase, ...]
    wrong: tuple[str, ...]
    """Error messages about unexplained failures, and about causes with too many failures."""


@dataclass(frozen=True)
class _Span:
    name: str
    began: float
    ended: float
    happened: str


class Measurement:
    """Measures consecutive phases under a load that does not stop between them."""

    def __init__(self, load: Load, service: Service) -> None:
        self._load = load
        self._service = service
        self._spans: list[_Span] = []

    @contextlib.asynccontextmanager
    async def under_load(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(self._load.run())
            yield
            await self._load.settled(asyncio.get_running_loop().time())
            sending.cancel()

    async def phase(self, name: str, happening: Awaitable[str]) -> None:
        """Measure a phase. It lasts until `happening` is done."""
        loop = asyncio.get_running_loop()
        began = self._spans[-1].ended if self._spans else loop.time()
        happened = await happening
        self._spans.append(_Span(name, began, loop.time(), happened))

    def result(self, kills: int) -> Result:
        """The results, after the load has ended. `kills` is the number of killed gatekeepers."""
        sent = self._load.sent
        failed = [each for each in sent if each.failure]
        causes = explained(failed, self._service.losses)
        phases = [
            _phase(span, [each for each in sent if span.began <= each.due < span.ended], causes) for span in self._spans
        ]
        return Result(tuple(phases), wrong_with(failed, causes, kills))


async def through_phases(
    gatekeepers: Gatekeepers,
    rate: float,
    phases: Mapping[str, Callable[[], Awaitable[str]]],
    *,
    kills: int,
    report: Callable[[str], None],
    webhook_seconds: int | None = WEBHOOK_SECONDS,
) -> Result:
    """Run the gatekeepers under a load of `rate` releases per second, and measure these phases, one after the other.
    `report` is called with the name of each phase."""
    installation = gatekeepers.installation
    async with (
        gatekeepers.running(webhook_seconds=webhook_seconds),
        Load.connected(installation.admin, installation.name, rate) as load,
    ):
        await load.prepare()
        measurement = Measurement(load, gatekeepers.service)
        async with measurement.under_load():
            for name, happen in phases.items():
                report(f"{name} …")
                await measurement.phase(name, happen())
        return measurement.result(kills)


def _phase(span: _Span, sent: Collection[Sent], causes: Mapping[Sent, Cause]) -> Phase:
    found = collections.Counter(causes.get(each) for each in sent)
    latencies = sorted(each.latency * 1000 for each in sent)
    return Phase(
        name=span.name,
        seconds=round(span.ended - span.began, 1),
        requests=len(sent),
        failures=tuple(each.failure for each in sent if each.failure),
        under_way=found[Cause.UNDER_WAY],
        unnoticed=found[Cause.UNNOTICED],
        hung=found[Cause.HUNG],
        p50=round(quantile(latencies, 0.5), 1),
        p99=round(quantile(latencies, 0.99), 1),
        worst=round(latencies[-1], 1),
        happened=span.happened,
    )
