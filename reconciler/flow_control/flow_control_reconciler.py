"""Controller: confirms the pending deletions of each PodDeletionFlowControl or gives them back, counts pods that were
lost without a request, moves the windows and the breaker on with the time, and sets the conditions."""

import asyncio
from collections.abc import Callable

import msgspec

from altershield.api.flow_control import FlowControlStatus, PodDeletionFlowControl
from altershield.api.meta import time_of
from altershield.api.resources import POD_DELETION_FLOW_CONTROLS
from altershield.flow_control.decision import Working
from altershield.flow_control.deletion import Deletion, Operation, covers
from altershield.flow_control.losses import REMEMBERED, count_lost
from altershield.flow_control.settling import Question, Seen, questions, settle
from altershield.workloads.pods import Pod
from kube_base.access.client import Client
from kube_base.access.errors import ConflictError, KubernetesError, NotFoundError
from kube_base.access.events import WARNING, EventRecorder, ObjectRef
from kube_base.meta import ObjectMeta
from kube_base.resources import PODS
from kube_base.times import unix
from reconciler.cluster.caches import Caches, Key
from reconciler.cluster.metrics import DisruptionMetrics
from reconciler.cluster.watch import Scope, Watch
from reconciler.cluster.writer import Writer
from reconciler.flow_control.conditions import announcements, conditions, new_near_limit, ungated
from reconciler.machinery.announcer import Announcer

WATCH = Watch(POD_DELETION_FLOW_CONTROLS, PodDeletionFlowControl, Scope.EVERYWHERE)

_TRIES = 6  # writes, while gatekeepers change the status
_PENDING_EVERY = 1.0  # seconds between reconciles while deletions are pending
_WINDOWS_EVERY = 15.0  # seconds between writes of windows alone
_READ_EVERY = 10.0  # seconds between two reads of one pod
_READS = 32  # of pods, at once


_ENDED = ("Succeeded", "Failed")


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""


class _Pod(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    status: _Status = _Status()


class FlowControlReconciler:
    """Its keys are the names of PodDeletionFlowControls, with an empty namespace. `clock` returns Unix seconds by the
    API server's clock."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        writer: Writer,
        recorder: EventRecorder,
        metrics: DisruptionMetrics,
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._caches = caches
        self._writer = writer
        self._recorder = recorder
        self._announcer = Announcer(recorder, clock)
        self._metrics = metrics
        self._clock = clock
        self._read_at: dict[str, dict[str, float]] = {}
        """By the name of the policy and the uid of the pod: when the pod was read from the API server."""
        self._written: dict[str, float] = {}
        """By the name of the policy: when this reconciler wrote its status last."""
        self._labels: dict[str, dict[str, str] | None] = {}
        """By the uid of each lost pod: its labels; None: it does not exist any more."""

    async def reconcile(self, key: Key) -> float | None:
        """Bring the status up to date. Each transition and each deletion by break glass raise an Event.

        Gatekeepers write the status too, possibly many times a second. So after a conflict, the policy is read from the
        API server and decided again at once.
        """
        policy = self._caches[WATCH].get(*key)
        if policy is None:
            self._read_at.pop(key[1], None)
            self._written.pop(key[1], None)
            return None
        read, lost = await self._read(policy), await self._lost(policy)
        for tries in range(1, _TRIES + 1):
            try:
                policy = await self._settle(policy, read, lost)
                break
            except ConflictError:
                if tries == _TRIES:
                    raise
                policy = await self._client.get(
                    POD_DELETION_FLOW_CONTROLS, policy.metadata.name, as_=PodDeletionFlowControl
                )
        again = self._announcer.write(_reference(policy), policy.metadata.uid, policy.status.announcements)
        return min((each for each in (self._next(policy), again) if each is not None), default=None)

    async def _settle(
        self, policy: PodDeletionFlowControl, read: dict[str, Seen], lost: list[Deletion]
    ) -> PodDeletionFlowControl:
        """Decide and write once. ConflictError: the policy has changed."""
        now = self._clock()
        work = Working(policy, now)
        ended = settle(work, read)
        status, counted = count_lost(work, lost)
        status = msgspec.structs.replace(
            status, conditions=conditions(work), observed_generation=policy.metadata.generation
        )
        name = policy.metadata.name
        if not _is_due(policy.status, status, now - self._written.get(name, 0.0)):
            return policy
        before, uid = policy.status, policy.metadata.uid
        new = list(announcements(before.conditions, status.conditions, ended, now))
        if counted:
            new.append(ungated(counted, now))
        stored = self._announcer.with_new(uid, before.announcements, new)
        saved = await self._writer.replace_status(
            self._caches[WATCH],
            msgspec.structs.replace(policy, status=msgspec.structs.replace(status, announcements=stored)),
        )
        self._written[name] = now
        self._metrics.break_glass.inc(sum(pending.break_glass for pending in ended))
        self._metrics.ungated_deletions.inc(len(counted))
        near = new_near_limit(before.conditions, status.conditions)
        if near is not None and near.reason == "LimitReached":
            self._recorder.event(_reference(policy), WARNING, "DeletionLimitReached", near.message)
        elif near is not None:
            self._recorder.event(_reference(policy), WARNING, "DeletionLimitNear", near.message)
        self._announcer.write(_reference(policy), uid, new)  # the status may not have space for all
        return saved

    def _next(self, policy: PodDeletionFlowControl) -> float | None:
        """The seconds after which the status changes by itself; None: it does not."""
        status, now = policy.status, self._clock()
        if status.pending:
            return _PENDING_EVERY
        delays = [_WINDOWS_EVERY] if any(window.used for window in status.windows) else []
        if status.breaker.until:
            delays.append(max(1.0, time_of(status.breaker.until, now) - now))
        return min(delays, default=None)

    async def _read(self, policy: PodDeletionFlowControl) -> dict[str, Seen]:
        """The pods of pending deletions whose state is known, by uid: those that are terminating in the cache, and
        those that were read from the API server now."""
        read = {}
        for uid, pending in policy.status.pending.items():
            pod = self._caches.pods.get(pending.namespace, pending.name)
            if pod is not None and pod.metadata.uid == uid and not pod.exists:
                read[uid] = Seen.ENDING
        now = self._clock()
        known = self._read_at.get(policy.metadata.name, {})
        read_at = {uid: time for uid, time in known.items() if uid in policy.status.pending}
        due = [each for each in questions(policy, read, now) if now - read_at.get(each.uid, 0.0) >= _READ_EVERY]
        due = due[:_READS]
        read_at.update((each.uid, now) for each in due)
        self._read_at[policy.metadata.name] = read_at
        for question, answer in zip(due, await asyncio.gather(*map(self._ask, due)), strict=True):
            if answer is not None:
                read[question.uid] = answer
        return read

    async def _lost(self, policy: PodDeletionFlowControl) -> list[Deletion]:
        """The pods that were lost since the policy exists, and in the last hour, and that the policy covers. Their
        labels are read from the API server, because the cache has none."""
        begun = max(self._clock() - REMEMBERED, unix(policy.metadata.creation_timestamp))
        found = self._caches.lost_pods()
        present = {pod.metadata.uid for pod in found}
        self._labels = {uid: known for uid, known in self._labels.items() if uid in present}
        new = [pod for pod in found if pod.ready_at >= begun and pod.metadata.uid not in policy.status.ungated_pods]
        unread = [pod for pod in new if pod.metadata.uid not in self._labels]
        for pod, labels in zip(unread, await asyncio.gather(*map(self._labels_of, unread[:_READS])), strict=False):
            self._labels[pod.metadata.uid] = labels
        deletions = []
        for pod in new:
            metadata, labels = pod.metadata, self._labels.get(pod.metadata.uid)
            namespace = self._caches.namespaces.get("", metadata.namespace)
            if labels is None or namespace is None:
                continue
            deletion = Deletion(
                metadata.uid,
                metadata.namespace,
                metadata.name,
                Operation.EVICT,
                by=f"system:node:{pod.node}",
                claim="",
                labels=labels,
                namespace_labels=namespace.metadata.labels,
                exempt=True,
            )
            if covers(policy, deletion):
                deletions.append(deletion)
        return sorted(deletions, key=lambda each: (each.namespace, each.name))

    async def _labels_of(self, pod: Pod) -> dict[str, str] | None:
        """The labels of a pod. KubernetesError if the API server does not answer."""
        try:
            live = await self._client.get(PODS, pod.metadata.name, pod.metadata.namespace, as_=_Pod)
        except NotFoundError:
            return None
        return live.metadata.labels if live.metadata.uid == pod.metadata.uid else None

    async def _ask(self, question: Question) -> Seen | None:
        """The state of the pod at the API server; None: it proves nothing. A read without a resourceVersion returns the
        latest state."""
        try:
            pod = await self._client.get(PODS, question.name, question.namespace, as_=_Pod)
        except NotFoundError:
            return Seen.ENDING
        except KubernetesError:
            return None  # a count is given back only if the pod is known to be alive
        if pod.metadata.uid != question.uid or pod.metadata.deletion_timestamp is not None:
            return Seen.ENDING
        if pod.status.phase in _ENDED:
            return Seen.ENDING  # a kubelet evicted it: the pod is lost, although its object stays
        return Seen.ALIVE if question.decisive else None


def _reference(policy: PodDeletionFlowControl) -> ObjectRef:
    return ObjectRef.of(POD_DELETION_FLOW_CONTROLS, policy.metadata)


def _is_due(old: FlowControlStatus, new: FlowControlStatus, since: float) -> bool:
    """Whether the new status is to be written: at once, unless only the windows have moved on. `since`: seconds since
    the last write."""
    if old == new:
        return False
    without = msgspec.structs.replace
    return without(old, windows=()) != without(new, windows=()) or since >= _WINDOWS_EVERY
