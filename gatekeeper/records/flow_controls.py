"""Decides about deletions by the PodDeletionFlowControls of the cluster, and writes their counts."""

import asyncio
import functools
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgspec

from altershield.api.flow_control import Denied, FlowControlStatus, Mode, OnError, PodDeletionFlowControl
from altershield.flow_control import texts
from altershield.flow_control.decision import Verdict, in_order, note_denied, step, undo
from altershield.flow_control.deletion import Deletion, covering
from altershield.flow_control.statistics import denied_entry
from altershield.flow_control.texts import Hint
from gatekeeper.records.shared_status import Decision, SharedStatus
from kube_base.access.client import Client
from kube_base.access.errors import KubernetesError
from kube_base.access.informer import Informer

logger = logging.getLogger(__name__)

_SECONDS = 3.0  # for one deletion
_DENIED_AFTER = 5.0  # seconds for which refused deletions are collected before they are written
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
        self._policies = policies
        self._namespaces = namespaces
        self._labels_of = labels_of
        self._clock = clock
        self._counts: SharedStatus[PodDeletionFlowControl, Deletion, Verdict] = SharedStatus(
            client, policies, PodDeletionFlowControl, self._count
        )
        self._denied: dict[str, deque[Denied]] = {}
        """By policy: the refused deletions that wait to be written."""
        self._noting: dict[str, asyncio.Task[None]] = {}

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
        counted: list[PodDeletionFlowControl] = []
        for policy in found:
            answer = await self._ask(policy, deletion, seconds)
            if answer.refusal:
                for each in counted:
                    self._counts.change(each.metadata, functools.partial(self._without, deletion))
                return answer
            hints += answer.hints
            if answer.counted:
                counted.append(policy)
        return Decided(found[0].metadata.name, hints=hints)

    async def _ask(self, policy: PodDeletionFlowControl, deletion: Deletion, seconds: float) -> "_Answer":
        """Ask one policy. A deletion that cannot be counted passes if it is exempt, if the mode is Warn, or if
        `onError` is Allow."""
        name = policy.metadata.name
        try:
            async with asyncio.timeout(min(seconds, _SECONDS)):
                answered = await self._counts.ask(policy.metadata, deletion)
        except (KubernetesError, TimeoutError) as error:
            logger.warning("cannot count a deletion", extra={"policy": name, "cause": str(error) or "it took too long"})
            if deletion.exempt or policy.spec.mode == Mode.WARN or policy.spec.on_error == OnError.ALLOW:
                return _Answer(name, hints=(texts.not_counted(name),))
            return _Answer(name, texts.busy(name), busy=True)
        if answered is None:  # the policy was deleted meanwhile
            return _Answer(name)
        verdict = answered.answer
        if verdict.refusal and answered.stored is None and not deletion.dry_run:
            self._note_soon(policy, deletion)
        return _Answer(name, verdict.refusal, verdict.hints, counted=verdict.counted)

    def _count(
        self, policy: PodDeletionFlowControl, deletions: Sequence[Deletion]
    ) -> Decision[PodDeletionFlowControl, Verdict]:
        done = step(policy, deletions, self._clock())
        if done.status is not None:
            return Decision(done.verdicts, _with(policy, done.status))
        # a person may have reset the breaker, or raised a limit, since the policy was read
        return Decision(done.verdicts, needs_fresh=any(each.refusal for each in done.verdicts))

    def _without(self, deletion: Deletion, policy: PodDeletionFlowControl) -> PodDeletionFlowControl | None:
        """Take back the count of a deletion that another policy refuses. If this cannot be stored, the leading
        reconciler takes it back later."""
        status = undo(policy, deletion.uid, deletion.claim, self._clock())
        return _with(policy, status) if status is not None else None

    def _note_soon(self, policy: PodDeletionFlowControl, deletion: Deletion) -> None:
        """Write a refused deletion, together with those that are refused in the next seconds."""
        name = policy.metadata.name
        if name not in self._denied:
            self._denied[name] = deque(maxlen=_MAX_DENIED)
            self._noting[name] = asyncio.create_task(self._note(policy))
        self._denied[name].append(denied_entry(deletion, int(self._clock())))

    async def _note(self, policy: PodDeletionFlowControl) -> None:
        await asyncio.sleep(_DENIED_AFTER)
        name = policy.metadata.name
        denied = self._denied.pop(name)
        del self._noting[name]
        self._counts.change(policy.metadata, lambda found: _with(found, note_denied(found, denied)))


@dataclass(frozen=True, slots=True)
class _Answer(Decided):
    counted: bool = False


def _with(policy: PodDeletionFlowControl, status: FlowControlStatus) -> PodDeletionFlowControl:
    return msgspec.structs.replace(policy, status=status)
