"""Controller: takes each ChangePod to its end state, with or without checks.

This controller, people, and the receivers of callbacks write the status of ChangePods.
"""

import asyncio
from collections.abc import Callable, Set
from dataclasses import replace

import msgspec

from altershield.api.change_pod import ChangePod, ChangePodStatus, PodState
from altershield.api.change_workload import ChangeWorkload
from altershield.api.check_results import CheckState
from altershield.api.check_specs import CheckPhase, Phase
from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition
from altershield.api.pod_verdicts import Verdict
from kube_base.access.errors import ConflictError
from reconciler.batches.check_run import Answer, Ask, Step
from reconciler.batches.metrics import UNCHECKED_ENDS, BatchMetrics
from reconciler.batches.new_pods import with_pods
from reconciler.batches.nodes import Reception, awaits_node, is_of_this_run, refusal, with_doubtful_pass, with_node
from reconciler.batches.old_pods import needs_old_pods, old_pods
from reconciler.batches.plan import Checks, kind_of, plan, subject
from reconciler.batches.repetition import Soak
from reconciler.batches.skipping import Skipper
from reconciler.batches.transitions import BatchSnapshot, decide, received
from reconciler.checks.check import Fail, Pass, Result, Unknown, entry_of
from reconciler.checks.identity import CheckRun
from reconciler.cluster.batch import Batch
from reconciler.cluster.caches import Caches, Key
from reconciler.cluster.release_checks import asked
from reconciler.cluster.soaks import repeats
from reconciler.cluster.writer import Writer


class BatchReconciler:
    """Its keys are the namespace and name of a ChangePod.

    `checks`: the checks that this reconciler can run. The timeouts are in seconds, for checks without a timeout of
    their own. `skipper` reports approvals to an AlterShield server.
    """

    def __init__(
        self,
        caches: Caches,
        writer: Writer,
        metrics: BatchMetrics,
        clock: Callable[[], float],
        *,
        checks: Checks,
        pre_timeout: int,
        post_timeout: int,
        skipper: Skipper | None = None,
    ) -> None:
        self._caches = caches
        self._writer = writer
        self._metrics = metrics
        self._clock = clock
        self._checks = checks
        self._pre_timeout = pre_timeout
        self._post_timeout = post_timeout
        self._skipper = skipper

    async def reconcile(self, key: Key) -> float | None:
        """Store the next status and send the requests to checks, until the batch waits or is done. Returns the seconds
        after which the batch is reconciled again, or None."""
        batch = self._caches.batches.get(*key)
        if batch is None or batch.metadata.deleting:
            return None
        change_pod = batch.unfinished or await self._soaking(batch)
        if change_pod is None:
            return None
        release = await self._known_release(change_pod)
        snapshot = self._snapshot(change_pod, release)
        ran = _open_checks(change_pod)
        while True:
            status, following = decide(change_pod.status, snapshot, self._clock())
            if status != change_pod.status:
                change_pod = await self._save(change_pod, status)  # before the requests
            if not following.asks:
                if status.status == PodState.EXECUTE_DONE:
                    await self._clean_up(change_pod, release, snapshot, ran)
                    if self._skipper is not None:
                        return _earlier(following.after, await self._skipper.tell(change_pod, release))
                return following.after
            ran |= {each.key for each in following.asks}
            answers = await asyncio.gather(*(self._ask(each, change_pod, release, snapshot) for each in following.asks))
            new = {each.key: answer for each, answer in zip(following.asks, answers, strict=True)}
            snapshot = replace(snapshot, change_pod=change_pod, answers={**snapshot.answers, **new})

    def awaits_node(self, change_pod: ChangePod, begun_by: float) -> bool:
        """Whether an AlterShield server may have had a node for this batch by this time (Unix seconds), and its id is
        not known."""
        return awaits_node(
            change_pod.status, self._server_check(self._release(change_pod), change_pod.spec.phase), begun_by
        )

    async def receive(
        self, change_pod: ChangePod, order: str, node: str, phase: Phase, result: Pass | Fail
    ) -> Reception:
        """Store the result of the AlterShield server's check on a batch, if `order` is that of its release, `node` is
        its id there, and the check has no result yet.

        ConflictError: the ChangePod has changed meanwhile, or the cache does not have its ChangeWorkload yet.
        """
        release = await self._known_release(change_pod)
        name, state = self._server_check(release, change_pod.spec.phase), change_pod.status
        now = self._clock()
        refused = refusal(state, release, name, order, node, phase, passes=isinstance(result, Pass))
        if refused is not None:
            return refused
        if not state.change_pod_id:
            state = with_node(state, name, node)
        entry = entry_of(state.checks, name, phase)
        if entry is not None and not is_of_this_run(entry, result):
            if isinstance(result, Pass) and not result.newest_rule and entry.state == CheckState.RUNNING:
                doubtful = with_doubtful_pass(state, name, phase)
                if doubtful != state:
                    await self._save(change_pod, doubtful)
            return Reception.DOUBTFUL
        with_id = msgspec.structs.replace(change_pod, status=state)
        snapshot = replace(self._snapshot(with_id, release), answers={(name, phase): result})
        status = received(state, snapshot, now)
        if status != change_pod.status:
            await self._save(change_pod, status)
        return Reception.STORED

    async def receive_result(self, change_pod: ChangePod, run: CheckRun, result: Result) -> Reception:
        """Store the result that the receiver of an `http` check has sent, if the check began with this run, and the
        result changes anything.

        ConflictError: the ChangePod has changed meanwhile, or the cache does not have its ChangeWorkload yet.
        """
        entry = entry_of(change_pod.status.checks, run.check, run.phase)
        if entry is None or entry.start_time_unix != run.started:
            return Reception.UNKNOWN
        if entry.state not in (CheckState.RUNNING, CheckState.UNKNOWN):
            return Reception.LATE
        release = await self._known_release(change_pod)
        snapshot = replace(self._snapshot(change_pod, release), answers={(run.check, run.phase): result})
        status = received(change_pod.status, snapshot, self._clock())
        if status.checks == change_pod.status.checks:
            return Reception.LATE
        await self._save(change_pod, status)
        return Reception.STORED

    def _server_check(self, release: ChangeWorkload | None, phase: str) -> str:
        """The name of the AlterShield server's check; empty if the batches of the release, or the checks of this phase,
        do not have this check."""
        found = plan(release, self._checks, phase)
        return next((each.spec.name for each in found if each.spec.server is not None), "")

    def _snapshot(self, change_pod: ChangePod, release: ChangeWorkload | None) -> BatchSnapshot:
        spec = change_pod.spec
        return BatchSnapshot(
            change_pod,
            plan(release, self._checks, spec.phase),
            pre_timeout=self._pre_timeout,
            post_timeout=self._post_timeout,
            soak=Soak(lasts=release is not None and repeats(release)),
            asked=bool(spec.phase) and release is not None and asked(release, spec),
            release_began=float(release.spec.create_time_unix) if release is not None else 0.0,
        )

    def _release(self, change_pod: ChangePod) -> ChangeWorkload | None:
        return self._caches.releases.get(change_pod.metadata.namespace, change_pod.spec.change_workload_id)

    async def _known_release(self, change_pod: ChangePod) -> ChangeWorkload | None:
        """The ChangeWorkload of the batch; None if it does not exist.

        The caches of ChangePods and ChangeWorkloads are filled independently, and without its ChangeWorkload a batch
        seems to have no checks. ConflictError: the ChangeWorkload exists, but the cache does not have it yet.
        """
        release, owner = self._release(change_pod), change_pod.metadata.controller
        if release is not None and (owner is None or owner.uid == release.metadata.uid):
            return release
        namespace, name = change_pod.metadata.namespace, change_pod.spec.change_workload_id
        uid = await self._writer.release_uid(name, namespace)
        if uid and (owner is None or uid == owner.uid):
            raise ConflictError(f"the cache does not have the ChangeWorkload {namespace}/{name} yet", code=409)
        return None

    async def _ask(
        self, ask: Ask, change_pod: ChangePod, release: ChangeWorkload | None, snapshot: BatchSnapshot
    ) -> Answer:
        planned = next(each for each in snapshot.plan if each.spec.name == ask.name)
        check = self._checks.get(kind_of(planned.spec))
        if check is None or release is None:
            return Unknown("the check is not configured any more" if check is None else "the release does not exist")
        others = old_pods(self._caches, release) if needs_old_pods(planned.spec) else ()
        if change_pod.spec.phase == CheckPhase.POST_RELEASE:
            change_pod = with_pods(change_pod, self._caches, release)
        of_check = subject(change_pod, release, planned, ask.phase, others)
        if ask.step is Step.START:
            return await check.start(of_check)
        handle = of_check.entry.handle if of_check.entry is not None else ""
        return await check.poll(of_check, handle, last=ask.step is Step.LAST_POLL)

    async def _soaking(self, batch: Batch) -> ChangePod | None:
        """The ChangePod of a batch that is done, if checks of it are repeated now; else None."""
        release = self._caches.releases.get(*batch.release)
        if release is None or batch.giver or not repeats(release) or not self._has_pods(batch):
            return None
        return await self._writer.live_batch(batch.metadata.name, batch.metadata.namespace)

    def _has_pods(self, batch: Batch) -> bool:
        """Whether a pod of the batch exists."""
        pods = ((each, self._caches.pods.get(batch.metadata.namespace, each.pod)) for each in batch.members)
        return any(pod is not None and pod.metadata.packed_uid == member.packed_uid for member, pod in pods)

    async def _clean_up(
        self, change_pod: ChangePod, release: ChangeWorkload | None, snapshot: BatchSnapshot, ran: Set[tuple[str, str]]
    ) -> None:
        """Let each check of a batch that is done remove the objects that the check has created. `ran`: the checks that
        have run since, by name and phase."""
        if release is None:
            return
        for planned in snapshot.plan:
            check = self._checks.get(kind_of(planned.spec))
            for entry in change_pod.status.checks:
                is_over = (entry.name, entry.phase) in ran and entry.state != CheckState.RUNNING
                if check is not None and entry.name == planned.spec.name and entry.handle and is_over:
                    await check.end(subject(change_pod, release, planned, Phase(entry.phase)), entry.handle)

    async def _save(self, change_pod: ChangePod, status: ChangePodStatus) -> ChangePod:
        saved = await self._writer.save_batch(change_pod, status)
        self._count(change_pod, status)
        return saved

    def _count(self, change_pod: ChangePod, status: ChangePodStatus) -> None:
        """Count the verdicts of a batch that is done now. If a person fails a batch that was done before, count its
        failed pods."""
        if status.status != PodState.EXECUTE_DONE:
            return
        results = {result.pod: result.verdict for result in status.pod_results if result.verdict}
        verdicts = [results.get(pod.pod, "") for pod in change_pod.spec.pod_infos]
        if change_pod.status.status == PodState.EXECUTE_DONE:
            fails_now = _fails(status) and not _fails(change_pod.status)
            verdicts = [verdict for verdict in verdicts if fails_now and verdict not in ("", Verdict.PASS)]
        for verdict in verdicts:
            if not verdict and status.checks and status.message in UNCHECKED_ENDS:
                self._metrics.unchecked.labels(status.message).inc()
            else:
                passed = verdict in ("", Verdict.PASS)
                self._metrics.verifications.labels(Verdict.PASS if passed else Verdict.UNPASS).inc()


def _open_checks(change_pod: ChangePod) -> set[tuple[str, str]]:
    """The checks to clean up after the batch is done, by name and phase: all that have run, or, if it was done before,
    those that run again."""
    status = change_pod.status
    was_done = status.status == PodState.EXECUTE_DONE
    return {(each.name, each.phase) for each in status.checks if not was_done or each.state == CheckState.RUNNING}


def _earlier(first: float | None, second: float | None) -> float | None:
    return min((each for each in (first, second) if each is not None), default=None)


def _fails(status: ChangePodStatus) -> bool:
    verified = find_condition(status.conditions, ConditionType.VERIFIED)
    return verified is not None and verified.status == "False"
