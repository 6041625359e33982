"""The check `logs`: how many lines in the logs of the batch's pods match an expression.

Logs are read through the API server, with the permission `pods/log`, which is granted only if the administrator allows
it. Nothing is stored: each poll reads the logs again. What is read is bounded in bytes and in time.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from altershield.api.check_specs import LogsCheck, Phase
from altershield.api.pod_verdicts import PodInfo
from altershield.workloads import BY_KIND, named_kind
from kube_base.access.client import Client
from kube_base.access.errors import ApiError, ForbiddenError, KubernetesError, NotFoundError
from kube_base.meta import ObjectMeta
from kube_base.resources import PODS
from kube_base.times import rfc3339
from reconciler.checks.check import Availability, Fail, Pass, Pending, PollAnswer, Started, Subject, Unknown
from reconciler.checks.line_patterns import LinePattern, PatternError, TooManyStatesError, problem
from reconciler.checks.reasons import reason as one_line

_HANDLE = "logs"
_ENABLE = "set checks.logs.enabled of the chart"
_AT_ONCE = 4  # logs, for each batch
_TIMEOUT = 20.0  # seconds for the logs of a batch
_MOST_BYTES = 32 * 2**20  # of all logs of a batch
_SLICE = 64 * 1024  # characters that are searched before other work gets its turn


class _Named(msgspec.Struct, frozen=True):
    name: str = ""


class _Spec(msgspec.Struct, frozen=True):
    containers: tuple[_Named, ...] = ()


class _Container(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    restart_count: int = 0


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    container_statuses: tuple[_Container, ...] = ()


class _Pod(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: _Spec = _Spec()
    status: _Status = _Status()


@dataclass(slots=True)
class _Found:
    """What was found so far."""

    pattern: LinePattern
    most: int
    lines: int = 0
    first: str = ""
    """The first line that matches, and where it is."""
    bytes_left: int = _MOST_BYTES
    cut: str = ""
    """The log of which not all was read; empty if there is none."""
    pods: int = 0
    error: Exception | None = None
    """Why a log could not be read or searched."""

    @property
    def fails(self) -> bool:
        return self.lines > self.most

    async def search(self, log: bytes, where: str) -> None:
        searched = 0
        for line in log.decode(errors="replace").split("\n"):
            if line and self.pattern.search(line):
                self.lines += 1
                self.first = self.first or f"{where}: {line}"
                if self.fails:
                    return
            searched += len(line) + 1
            if searched >= _SLICE:
                searched = 0
                await asyncio.sleep(0)


class LogsCheckRunner:
    """`clock` returns Unix seconds."""

    availability: Availability = Availability.AVAILABLE
    repeatable: frozenset[Phase] = frozenset(Phase)
    """A start has no effect."""

    def __init__(self, client: Client, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock

    async def start(self, subject: Subject) -> Started | Unknown:
        """The logs are read with each poll."""
        check = subject.check.logs
        if check is None:
            return Unknown("the check has no field `logs`")
        if sentence := problem(check.pattern):
            return Unknown(f"logs.pattern: {sentence}")
        if subject.started + check.seconds > subject.deadline:
            return Unknown(f"the logs are to be watched for {check.seconds} s, which is longer than the check may take")
        return Started(_HANDLE)

    async def poll(self, subject: Subject, handle: str, *, last: bool) -> PollAnswer:
        """Fail as soon as too many lines match; pass when the time is over."""
        del handle, last
        check = subject.check.logs
        if check is None:
            return Unknown("the check has no field `logs`")
        try:
            found = _Found(LinePattern(check.pattern), check.max)
            async with asyncio.timeout(_TIMEOUT):
                await self._read(subject, check, found)
        except ForbiddenError as error:
            return Unknown(one_line(f"the logs cannot be read: {error}; if AlterShield may read no logs, {_ENABLE}"))
        except PatternError as error:
            return Unknown(f"logs.pattern: {error}")
        except TooManyStatesError:
            return Unknown("logs.pattern: the search of these logs takes too long; write a simpler expression")
        except TimeoutError:
            return Pending(f"the logs could not be read within {_TIMEOUT:g} s")
        except (KubernetesError, msgspec.DecodeError) as error:
            return Pending(one_line(f"the logs cannot be read: {error}"))
        return self._answer(subject, check, found)

    async def end(self, subject: Subject, handle: str) -> None:
        """Nothing was created."""

    def _answer(self, subject: Subject, check: LogsCheck, found: _Found) -> PollAnswer:
        if found.fails:
            least = "1 line matches" if found.lines == 1 else f"{found.lines} lines match"
            return Fail(one_line(f"{least}, {check.max} may: {found.first}"))
        if found.cut:
            return Unknown(one_line(f"the log of {found.cut} is longer than what may be read; set logs.maxBytes"))
        left = subject.started + check.seconds - self._clock()
        if left > 0:
            return Pending(f"the logs are watched for {int(left)} s more")
        if not found.pods:
            return Unknown("no pod of the batch exists any more")
        return Pass(f"{found.lines} of {check.max} lines that may match" if found.lines else "no line matches")

    async def _read(self, subject: Subject, check: LogsCheck, found: _Found) -> None:
        slots, namespace = asyncio.Semaphore(_AT_ONCE), subject.change_pod.metadata.namespace
        kind = BY_KIND.get(named_kind(subject.release.spec.workload_ref))
        in_place = kind is None or kind.in_place  # then the pod may have the log of the old version
        since = _since(subject, in_place=in_place)

        async def of(info: PodInfo) -> None:
            async with slots:
                try:
                    await of_pod(info)
                except (KubernetesError, msgspec.DecodeError, TooManyStatesError) as error:
                    found.error = found.error or error  # lines of other pods may still fail the batch

        async def of_pod(info: PodInfo) -> None:
            pod = await self._pod(info, namespace)
            if pod is None:
                return
            found.pods += 1
            restarts = {each.name: each.restart_count for each in pod.status.container_statuses}
            for container in pod.spec.containers:
                restarted = restarts.get(container.name, 0) > 0 and not in_place
                for previous in (True, False) if restarted else (False,):
                    if not found.fails:
                        await self._search(pod, container.name, check, since, found, previous=previous)

        async with asyncio.TaskGroup() as tasks:
            for info in subject.change_pod.spec.pod_infos:
                tasks.create_task(of(info))
        if found.error is not None and not found.fails:
            raise found.error

    async def _pod(self, info: PodInfo, namespace: str) -> _Pod | None:
        """The pod; None if it does not exist any more."""
        try:
            pod = await self._client.get(PODS, info.pod, namespace, as_=_Pod)
        except NotFoundError:
            return None
        return pod if pod.metadata.uid == info.uid else None

    async def _search(
        self, pod: _Pod, container: str, check: LogsCheck, since: str, found: _Found, *, previous: bool
    ) -> None:
        """Search a log. That of a container which has not started, or has no run before, is empty."""
        metadata = pod.metadata
        limit = min(check.max_bytes, found.bytes_left)
        where = f"{metadata.name}, container {container}"
        if limit <= 0:
            found.cut = found.cut or where
            return
        query = {"container": container, "limitBytes": str(limit), "sinceTime": since}
        try:
            log = await self._client.request(
                "GET",
                PODS.path(metadata.namespace, metadata.name, "log"),
                query=query | ({"previous": "true"} if previous else {}),
                accept="*/*",
            )
        except NotFoundError:
            return
        except ApiError as error:
            if error.code != 400:
                raise
            return
        found.bytes_left -= len(log)
        if len(log) >= limit:
            found.cut = found.cut or where
        await found.search(log, where)


def _since(subject: Subject, *, in_place: bool) -> str:
    """The time from which lines count, in the format of Kubernetes: the run of the check before this one. Empty: all
    lines."""
    entry = subject.entry
    previous = entry.previous_time_unix if entry is not None else 0
    if in_place:
        previous = max(previous, subject.release.spec.create_time_unix)
    return rfc3339(previous) if previous else ""
