"""The check `health`: which Events fail a batch, and when it passes."""

from collections.abc import AsyncGenerator
from typing import Any, cast

import msgspec
import pytest

from altershield.api.change_pod import ChangePod
from altershield.api.check_specs import CheckSpec, HealthCheck, Phase
from kube_base.access.bodies import ListMeta, ObjectList
from kube_base.access.errors import UnreachableError
from kube_base.times import rfc3339
from reconciler.checks.check import Fail, Pass, Pending, PollAnswer, Started, Subject, Unknown
from reconciler.checks.health_check import Event, HealthCheckRunner, _Series
from tests.unit.altershield.releases.builders import NOW, change_pod, release

OBSERVE = 10.0


class Client:
    """Answers with these Events, and remembers the selectors."""

    def __init__(self, *events: Event) -> None:
        self.events = events
        self.selectors: list[str] = []

    async def pages(
        self, *_: object, field_selector: str, **__: object
    ) -> AsyncGenerator[ObjectList[msgspec.Raw], None]:
        self.selectors.append(field_selector)
        for event in self.events:
            yield ObjectList(ListMeta("1"), [msgspec.Raw(msgspec.json.encode(event))])


def warning(at: float, reason: str = "Unhealthy", type_: str = "Warning") -> Event:
    return Event(type=type_, reason=reason, message="probe failed", last_timestamp=rfc3339(at))


def subject(check: HealthCheck, batch: ChangePod | None = None) -> Subject:
    spec = CheckSpec("events", health=check)
    return Subject(batch or change_pod(1, *"ab"), release(), spec, Phase.POST, NOW, NOW + 120)


async def polled(client: Any, check: HealthCheck, now: float = NOW) -> PollAnswer:
    runner = HealthCheckRunner(cast(Any, client), lambda: now, OBSERVE)
    return await runner.poll(subject(check), "events", last=False)


async def test_batch_without_warnings_passes_when_it_was_observed_for_long_enough() -> None:
    client = Client(warning(NOW, type_="Normal"))
    assert isinstance(await polled(client, HealthCheck(seconds=30), NOW + 29), Pending)
    assert isinstance(await polled(client, HealthCheck(seconds=30), NOW + 30), Pass)
    assert client.selectors[:2] == ["involvedObject.uid=a-uid,type=Warning", "involvedObject.uid=b-uid,type=Warning"]


async def test_warning_during_the_observation_fails_at_once_and_is_named() -> None:
    found = await polled(Client(warning(NOW - 5)), HealthCheck(seconds=30), NOW + 1)
    assert isinstance(found, Fail)
    assert "pod a: Unhealthy: probe failed" in found.reason


@pytest.mark.parametrize(
    "event",
    [
        Event(type="Warning", reason="BackOff", series=_Series(rfc3339(NOW + 3))),
        Event(type="Warning", reason="BackOff", event_time=f"{rfc3339(NOW + 3)[:-1]}.123456Z"),
    ],
)
async def test_time_of_events_of_both_apis_is_read(event: Event) -> None:
    assert isinstance(await polled(Client(event), HealthCheck(), NOW + 5), Fail)


async def test_warnings_from_before_the_pods_were_ready_do_not_count() -> None:
    assert isinstance(await polled(Client(warning(NOW - OBSERVE - 1)), HealthCheck()), Pass)


async def test_ignored_reasons_do_not_count() -> None:
    assert isinstance(await polled(Client(warning(NOW)), HealthCheck(ignored_reasons=("Unhealthy",))), Pass)


async def test_long_message_of_an_event_hides_no_warning() -> None:
    """A user who may create Events must not be able to make the check unknown."""
    long = Event(type="Warning", reason="Long", message="x" * 40_000, last_timestamp=rfc3339(NOW))
    found = await polled(Client(long, warning(NOW)), HealthCheck())
    assert isinstance(found, Fail)
    assert "pod a: Long: xxx" in found.reason


async def test_events_that_cannot_be_read_are_no_pass() -> None:
    class Unreachable:
        async def pages(self, *_: object, **__: object) -> AsyncGenerator[Any, None]:
            raise UnreachableError("no route")
            yield

    found = await polled(Unreachable(), HealthCheck())
    assert isinstance(found, Pending)
    assert "no route" in found.reason


async def test_time_that_is_longer_than_the_check_may_take_is_told_at_the_start() -> None:
    runner = HealthCheckRunner(cast(Any, Client()), lambda: NOW, OBSERVE)
    assert isinstance(await runner.start(subject(HealthCheck(seconds=121))), Unknown)
    assert isinstance(await runner.start(subject(HealthCheck(seconds=120))), Started)
