"""The check by PromQL: its queries to Prometheus. It stores nothing: each poll reads all samples since the start with
range queries, so a restarted reconciler continues where the last one was."""

import asyncio
import contextlib
import email.utils
import urllib.parse
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from altershield.api.check_specs import Phase, PrometheusCheck
from kube_base.errors import ReportedError
from reconciler.checks.check import Availability, Pass, PollAnswer, Started, Subject, Unknown
from reconciler.checks.compare import compares_nothing, expanded, queries_of
from reconciler.checks.prometheus_answers import MAX_ANSWER, Reading, read
from reconciler.checks.samples import Sample, conclude, first_time, problem, times_until
from reconciler.outbound.credentials import Credentials
from reconciler.outbound.outbound_client import Outbound

_HANDLE = "queries"
_NO_PROMQL = "the check has no PromQL"
_PATH = "/api/v1/query_range"
_TIMEOUT = 10.0
_REMEMBERED = 4096


class SecretReader(Protocol):
    """Reads the credentials in a Secret of a policy's namespace. ReportedError: it cannot."""

    async def read(self, namespace: str, name: str) -> Credentials: ...


_Key = tuple[str, str, str, float]
"""The uid of the ChangePod, the name of the check, the phase, and when it began."""


class _Answer(NamedTuple):
    readings: list[Reading]
    is_complete: bool
    """Whether Prometheus has answered, and the answer does not change any more."""


class PrometheusCheckRunner:
    """`clock` returns Unix seconds."""

    availability: Availability = Availability.AVAILABLE
    repeatable: frozenset[Phase] = frozenset(Phase)
    """A start has no effect."""

    def __init__(self, outbound: Outbound, secrets: SecretReader, clock: Callable[[], float]) -> None:
        self._outbound = outbound
        self._secrets = secrets
        self._clock = clock
        self._latest: OrderedDict[_Key, list[Sample]] = OrderedDict()
        """The samples of the last poll if Prometheus has answered: a poll before the next sample needs no request."""

    async def start(self, subject: Subject) -> Started | Pass | Unknown:
        """Nothing runs before the first poll. A check that can never have a result ends here."""
        if compares_nothing(subject):
            return Pass("there is no version before this one to compare it with")
        try:
            _queries(subject)
        except ValueError as error:
            return Unknown(str(error))
        return Started(_HANDLE)

    async def poll(self, subject: Subject, handle: str, *, last: bool) -> PollAnswer:
        del handle  # the definition and the start time are all that is needed
        now, key, check = self._clock(), _key(subject), subject.check.prometheus
        if check is None:
            return Unknown(_NO_PROMQL)
        count = times_until(check, subject.started, now, subject.deadline)
        try:
            samples = self._latest.get(key, [])
            if len(samples) != count or (last and count):
                samples, is_complete = await self._samples(subject, count, now)
                if is_complete:
                    self._remember(key, samples)
            return conclude(expanded(check), samples, last=last)
        except ValueError as error:
            return Unknown(str(error))

    def _remember(self, key: _Key, samples: list[Sample]) -> None:
        self._latest[key] = samples
        self._latest.move_to_end(key)
        if len(self._latest) > _REMEMBERED:
            self._latest.popitem(last=False)

    async def end(self, subject: Subject, handle: str) -> None:
        del handle
        self._latest.pop(_key(subject), None)

    async def _samples(self, subject: Subject, count: int, now: float) -> tuple[list[Sample], bool]:
        """The first `count` samples (at least 1), and whether Prometheus has answered all queries about them.
        ValueError: the check cannot run."""
        check, queries = _queries(subject)
        try:
            credentials = await self._credentials(subject, check)
        except ReportedError as error:
            return [Sample(str(error))] * count, False
        answers = await asyncio.gather(
            *(self._query(subject, check, query, credentials, count, now) for query in queries.values())
        )
        readings = {name: answer.readings for name, answer in zip(queries, answers, strict=True)}
        samples = [Sample(**{name: every[index] for name, every in readings.items()}) for index in range(count)]
        return samples, all(answer.is_complete for answer in answers)

    async def _credentials(self, subject: Subject, check: PrometheusCheck) -> Credentials | None:
        if check.secret_ref is None:
            return None
        return await self._secrets.read(subject.release.spec.policy.namespace, check.secret_ref.name)

    async def _query(
        self,
        subject: Subject,
        check: PrometheusCheck,
        query: str,
        credentials: Credentials | None,
        count: int,
        now: float,
    ) -> _Answer:
        """The readings of a query at the first `count` times (at least 1)."""
        start, step = first_time(check, subject.started), check.interval_seconds
        end = start + (count - 1) * step
        form = {
            "query": query,
            "start": f"{start:.3f}",
            "end": f"{end:.3f}",
            "step": str(step),
            "timeout": f"{_TIMEOUT - 1:g}s",
        }
        try:
            reply = await self._outbound.request(
                "POST",  # a query with the names of many pods is longer than a URL may be
                check.url.rstrip("/") + _PATH,
                headers={"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"},
                body=urllib.parse.urlencode(form).encode(),
                credentials=credentials,
                timeout=_TIMEOUT,
                limit=MAX_ANSWER,
            )
            readings = read(reply.status, reply.body, start=start, step=step, count=count)
        except (ReportedError, ValueError) as error:
            return _Answer([str(error)] * count, is_complete=False)
        there = _server_time(reply.headers, now)
        known = times_until(check, subject.started, min(now, there), subject.deadline)
        early: list[Reading] = ["Prometheus' clock has not come to its time"] * (count - known)
        return _Answer(readings[:known] + early, is_complete=not early)


def _key(subject: Subject) -> _Key:
    return subject.change_pod.metadata.uid, subject.check.name, subject.phase, subject.started


def _queries(subject: Subject) -> tuple[PrometheusCheck, dict[str, str]]:
    """The definition of the check, and its queries with the values of this batch, by the field of `Sample`. ValueError
    if the check cannot run."""
    check = subject.check.prometheus
    if check is None:
        raise ValueError(_NO_PROMQL)
    if sentence := problem(subject.check):
        raise ValueError(sentence)
    return check, queries_of(check, subject)


def _server_time(headers: Mapping[str, str], now: float) -> float:
    """The time at the server, from the header Date (whole seconds); `now` if there is none."""
    with contextlib.suppress(ValueError, OverflowError, TypeError):
        return email.utils.parsedate_to_datetime(headers.get("Date", "")).timestamp() + 1
    return now
