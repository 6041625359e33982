"""The check `health`: no Warning Event about a pod of the batch while the pods are observed.

The release controller observes pods anyway: a batch consists of pods that are up, and a pod that goes down later fails
the release. This check adds what Kubernetes reports about pods that stay up, for example a probe that fails now and
then.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable

import msgspec

from altershield.api.check_specs import HealthCheck, Phase
from altershield.api.pod_verdicts import PodInfo
from kube_base.access.bodies import decode
from kube_base.access.client import Client
from kube_base.access.errors import KubernetesError
from kube_base.resources import EVENTS
from kube_base.times import unix
from reconciler.checks.check import Availability, Fail, Pass, Pending, PollAnswer, Started, Subject, Unknown
from reconciler.checks.reasons import reason as one_line

_HANDLE = "events"
_AT_ONCE = 8  # lists of Events, for each batch
_NAMED = 3

_EVENTS_AT_A_TIME = 50  # users can write Events with messages of a megabyte


class _Series(msgspec.Struct, rename="camel"):
    last_observed_time: str | None = None


class Event(msgspec.Struct, rename="camel"):
    """The part of an Event that counts."""

    type: str = ""
    reason: str = ""
    message: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None
    series: _Series | None = None

    @property
    def last_seen(self) -> float:
        """Unix seconds; 0 if it is not known."""
        latest = self.series.last_observed_time if self.series is not None else None
        times = [unix(each) for each in (latest, self.last_timestamp, self.event_time) if each]
        return max(times, default=0.0)


class HealthCheckRunner:
    """`observe`: seconds for which pods are observed before they are up, unless their policy says otherwise. `clock`
    returns Unix seconds."""

    availability: Availability = Availability.AVAILABLE
    repeatable: frozenset[Phase] = frozenset(Phase)
    """A start has no effect."""

    def __init__(self, client: Client, clock: Callable[[], float], observe: float) -> None:
        self._client = client
        self._clock = clock
        self._observe = observe

    async def start(self, subject: Subject) -> Started | Unknown:
        """The Events are read with each poll."""
        check = subject.check.health
        if check is None:
            return Unknown("the check has no field `health`")
        if subject.started + check.seconds > subject.deadline:
            return Unknown(
                f"the pods are to be observed for {check.seconds} s, which is longer than the check may take"
            )
        return Started(_HANDLE)

    async def poll(self, subject: Subject, handle: str, *, last: bool) -> PollAnswer:
        """Fail with the first Warning Event; pass when the time is over."""
        del handle, last
        check = subject.check.health or HealthCheck()
        observe = subject.release.spec.policy.observe_seconds
        since = subject.started - (self._observe if observe is None else observe)
        entry = subject.entry
        if entry is not None and entry.previous_time_unix:
            since = min(since, entry.previous_time_unix)
        pods = subject.change_pod.spec.pod_infos
        try:
            found = await self._warnings(pods, subject.change_pod.metadata.namespace, since, check.ignored_reasons)
        except (KubernetesError, msgspec.DecodeError) as error:
            return Pending(one_line(f"the Events cannot be read: {error}"))
        if found:
            return Fail(one_line("; ".join(found[:_NAMED])))
        left = subject.started + check.seconds - self._clock()
        return Pending(f"the pods are observed for {int(left)} s more") if left > 0 else Pass("no Warning Event")

    async def end(self, subject: Subject, handle: str) -> None:
        """Nothing was created."""

    async def _warnings(
        self, pods: Iterable[PodInfo], namespace: str, since: float, ignored: tuple[str, ...]
    ) -> list[str]:
        """A text about each pod with a Warning Event since then."""
        slots = asyncio.Semaphore(_AT_ONCE)

        async def of(pod: PodInfo) -> list[str]:
            selector, named = f"involvedObject.uid={pod.uid},type=Warning", list[str]()
            pages = self._client.pages(EVENTS, namespace, field_selector=selector, limit=_EVENTS_AT_A_TIME)
            async with slots, contextlib.aclosing(pages):
                async for page in pages:
                    events = (decode(item, Event) for item in page.items)
                    named += [one_line(f"pod {pod.pod}: {each}") for each in warnings(events, since, ignored)]
                    if len(named) >= _NAMED:
                        break
            return named[:_NAMED]

        found = await asyncio.gather(*(of(pod) for pod in pods if pod.uid))
        return [text for texts in found for text in texts]


def warnings(events: Iterable[Event], since: float, ignored: tuple[str, ...]) -> list[str]:
    """Reason and message of each Warning Event since then (Unix seconds), without those with an ignored reason."""
    return [
        f"{each.reason}: {each.message}"
        for each in events
        if each.type == "Warning" and each.last_seen >= since and each.reason not in ignored
    ]
