"""Decides about deletions by the PodDeletionFlowControls of the cluster, and writes their counts.

For each policy, one write is under way at a time. The deletions that arrive meanwhile share the next one.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgspec

from altershield.api.flow_control import Denied, FlowControlStatus, Mode, OnError, PodDeletionFlowControl
from altershield.api.resources import POD_DELETION_FLOW_CONTROLS
from altershield.flow_control import texts
from altershield.flow_control.decision import ADMITTED, Verdict, in_order, note_denied, step, undo
from altershield.flow_control.deletion import Deletion, covering
from altershield.flow_control.texts import Hint
from altershield.kube.client import Client
from altershield.kube.errors import ConflictError, KubernetesError, NotFoundError
from altershield.kube.informer import Informer

logger = logging.getLogger(__name__)

_TRIES = 6  # writes, while other clients change the status
_SECONDS = 3.0  # for one deletion
_FRESH = 1.0  # seconds after a read in which a refusal needs no new read
_DENIED_EVERY = 5.0  # seconds between writes of refused deletions alone
_MAX_DENIED = 100  # refused deletions that wait to be written


@dataclass(frozen=True, slots=True)
class Decided:
    """The decision of the policies about a deletion."""

    policy: str = ""
    """The name of the policy that refuses the deletion, else of the first one that counts it."""
    refusal: str = ""
    """Empty: the deletion passes."""
    hints: tuple[Hint, ...] = ()
    """Warnings for the user."""
    busy: bool = False
    """The deletion is refused because it could not be counted."""


class FlowControls(Protocol):
    """The PodDeletionFlowControls, as handlers see them. Only `decide` sends requests to the API server."""

    @property
    def filled(self) -> bool:
        """Whether the caches are filled."""

    @property
    def exist(self) -> bool:
        """Whether there is a PodDeletionFlowControl."""

    def would_refuse(self, deletion: Deletion) -> bool:
        """Whether a policy refuses the deletion, by the cache, which may be old."""

    async def decide(self, deletion: Deletion, seconds: float) -> Decided | None:
        """Decide about the deletion. If it passes and is no dry run, its count is stored before this returns. None: no
        policy counts the deletion. `seconds`: the time for each policy."""

    def decide_unread(self, pod: str) -> Decided | None:
        """The refusal of the eviction of a pod that cannot be read, `NAMESPACE/NAME`. None: the eviction passes."""


class CountedFlowControls:
    """The policies in a cache. `client` reads and writes. `labels_of` returns the labels of a namespace, from the cache
    `namespaces`. `clock` returns Unix seconds by the API server's clock."""

    def __init__(
        self,
        client: Client,
        policies: Informer[PodDeletionFlowControl],
        namespaces: Informer[Any],
        labels_of: Callable[[str], Mapping[str, str]],
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._policies = policies
        self._namespaces = namespaces
        self._labels_of = labels_of
        self._clock = clock
        self._counters: dict[str, _Counter] = {}

    @property
    def filled(self) -> bool:
        return self._policies.synced and self._namespaces.synced

    @property
    def exist(self) -> bool:
        return len(self._policies) > 0

    def decide_unread(self, pod: str) -> Decided | None:
        for policy in sorted(self._policies.all(), key=lambda each: each.metadata.name):
            if policy.spec.mode == Mode.ENFORCE and policy.spec.on_error == OnError.DENY:
                name = policy.metadata.name
                return Decided(name, texts.busy(name), (Hint(f"the pod {pod} cannot be read"),), busy=True)
        return None

    def would_refuse(self, deletion: Deletion) -> bool:
        deletion = replace(deletion, namespace_labels=self._labels_of(deletion.namespace), dry_run=True)
        now = self._clock()
        return any(
            step(policy, (deletion,), now).verdicts[0].refusal for policy in covering(self._policies.all(), deletion)
        )

    async def decide(self, deletion: Deletion, seconds: float) -> Decided | None:
        deletion = replace(deletion, namespace_labels=self._labels_of(deletion.namespace))
        found = covering(self._policies.all(), deletion)
        if not found:
            return None
        if len(found) > 1:
            deletion = replace(deletion, shared=True)
            found = in_order(found, deletion, self._clock())
        hints: tuple[Hint, ...] = ()
        counted: list[_Counter] = []
        for policy in found:
            name = policy.metadata.name
            counter = self._counters.setdefault(name, _Counter(self._client, self._policies, name, self._clock))
            answer = await _ask(counter, policy, deletion, seconds)
            if answer.refusal:
                await asyncio.gather(*(each.take_back(deletion) for each in counted))
                return answer
            hints += answer.hints
            if answer.counted:
                counted.append(counter)
        return Decided(found[0].metadata.name, hints=hints)


@dataclass(frozen=True, slots=True)
class _Answer(Decided):
    counted: bool = False


async def _ask(counter: "_Counter", policy: PodDeletionFlowControl, deletion: Deletion, seconds: float) -> _Answer:
    """Ask one policy. A deletion that cannot be counted passes if it is exempt, if the mode is Warn, or if `onError` is
    Allow."""
    name = policy.metadata.name
    try:
        async with asyncio.timeout(min(seconds, _SECONDS)):
            verdict = await counter.ask(deletion)
    except (KubernetesError, TimeoutError) as error:
        logger.warning("cannot count a deletion", extra={"policy": name, "cause": str(error) or "it took too long"})
        if deletion.exempt or policy.spec.mode == Mode.WARN or policy.spec.on_error == OnError.ALLOW:
            return _Answer(name, hints=(texts.not_counted(name),))
        return _Answer(name, texts.busy(name), busy=True)
    return _Answer(name, verdict.refusal, verdict.hints, counted=verdict.counted)


class _Waiting:
    """A deletion and the future of its verdict."""

    def __init__(self, deletion: Deletion) -> None:
        self.deletion = deletion
        self.verdict: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()


class _Counter:
    """Counts deletions in the status of one policy."""

    def __init__(
        self,
        client: Client,
        policies: Informer[PodDeletionFlowControl],
        name: str,
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._policies = policies
        self._name = name
        self._clock = clock
        self._waiting: list[_Waiting] = []
        self._denied: list[Denied] = []
        self._counting: asyncio.Task[None] | None = None
        self._writing_denied: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()
        self._read_at = -_FRESH
        """When the policy was last read from the API server, by the event loop's clock."""

    async def ask(self, deletion: Deletion) -> Verdict:
        """The verdict on a deletion. KubernetesError: it could not be counted."""
        waiting = _Waiting(deletion)
        self._waiting.append(waiting)
        if self._counting is None or self._counting.done():
            self._counting = asyncio.create_task(self._count())
        return await waiting.verdict

    async def take_back(self, deletion: Deletion) -> None:
        """Take back the count of a deletion that another policy refuses. If this fails, the leading reconciler takes it
        back later."""
        with contextlib.suppress(KubernetesError, TimeoutError):
            async with asyncio.timeout(_SECONDS), self._writing:
                policy = self._policies.get("", self._name)
                for _ in range(_TRIES):
                    if policy is None:
                        break
                    status = undo(policy, deletion.uid, deletion.claim, self._clock())
                    if status is None:
                        break
                    try:
                        await self._write(policy, status)
                    except ConflictError:
                        policy = await self._read()
                    else:
                        break

    async def _count(self) -> None:
        """Decide about all deletions that wait, until none does."""
        while self._waiting:
            batch: list[_Waiting] = []
            try:
                async with asyncio.timeout(_SECONDS), self._writing:
                    await self._decide(batch)
            except Exception as error:
                for each in batch:
                    if not each.verdict.done():
                        each.verdict.set_exception(error)

    async def _decide(self, batch: list[_Waiting]) -> None:
        """Put the deletions that wait into `batch`, and decide about them. KubernetesError: they are not counted."""
        policy = self._policies.get("", self._name)
        for _ in range(_TRIES):
            batch += self._waiting
            self._waiting.clear()
            batch[:] = [each for each in batch if not each.verdict.done()]  # the others have timed out
            if policy is None:  # it was deleted meanwhile
                _answer(batch, [ADMITTED] * len(batch))
                return
            done = step(policy, [each.deletion for each in batch], self._clock())
            try:
                if done.status is not None:
                    await self._write(policy, self._with_denied(done.status))
                elif any(each.refusal for each in done.verdicts) and not self._is_fresh():
                    policy = await self._read()
                    continue
            except ConflictError:
                policy = await self._read()
                continue
            except NotFoundError:
                policy = None
                continue
            self._write_denied_soon(done.denied)
            _answer(batch, done.verdicts)
            return
        raise ConflictError(f"other clients changed the status {_TRIES} times", code=409)

    async def _read(self) -> PodDeletionFlowControl | None:
        began = asyncio.get_running_loop().time()
        try:
            found = await self._client.get(POD_DELETION_FLOW_CONTROLS, self._name, as_=PodDeletionFlowControl)
        except NotFoundError:
            return None
        self._read_at = began
        self._policies.observe(found)
        return found

    async def _write(self, policy: PodDeletionFlowControl, status: FlowControlStatus) -> None:
        """Replace the status. ConflictError: the policy has changed since it was read."""
        began = asyncio.get_running_loop().time()
        changed = msgspec.structs.replace(policy, status=status)
        written = await self._client.replace(
            POD_DELETION_FLOW_CONTROLS, changed, self._name, subresource="status", as_=PodDeletionFlowControl
        )
        self._read_at = began
        self._policies.observe(written)

    def _is_fresh(self) -> bool:
        """Whether the policy was read just now. A person may have reset the breaker since an older read."""
        return asyncio.get_running_loop().time() - self._read_at < _FRESH

    def _with_denied(self, status: FlowControlStatus) -> FlowControlStatus:
        """The status with the refused deletions that wait to be written."""
        policy = self._policies.get("", self._name)
        denied, self._denied = self._denied, []
        if not denied or policy is None:
            return status
        return note_denied(msgspec.structs.replace(policy, status=status), denied)

    def _write_denied_soon(self, denied: tuple[Denied, ...]) -> None:
        self._denied = [*self._denied, *denied][-_MAX_DENIED:]
        if self._denied and (self._writing_denied is None or self._writing_denied.done()):
            self._writing_denied = asyncio.create_task(self._write_denied())

    async def _write_denied(self) -> None:
        await asyncio.sleep(_DENIED_EVERY)
        with contextlib.suppress(KubernetesError, TimeoutError):
            async with asyncio.timeout(_SECONDS), self._writing:
                policy = await self._read()
                if policy is not None and self._denied:
                    await self._write(policy, self._with_denied(policy.status))


def _answer(batch: list[_Waiting], verdicts: "list[Verdict] | tuple[Verdict, ...]") -> None:
    for each, verdict in zip(batch, verdicts, strict=True):
        if not each.verdict.done():
            each.verdict.set_result(verdict)
