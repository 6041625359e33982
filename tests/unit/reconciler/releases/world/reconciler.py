"""The reconciler of the simulated cluster. It calls the product's decisions."""

from dataclasses import replace
from typing import Any

from altershield.api import labels, names
from altershield.api.change_pod import ChangePod
from altershield.api.change_workload import (
    ChangeWorkload,
    ChangeWorkloadSpec,
    ChangeWorkloadStatus,
    SourceRef,
    WorkloadRef,
    WorkloadState,
)
from altershield.api.check_specs import Phase
from altershield.api.meta import plain_time
from altershield.workloads import change_workload_name
from altershield.workloads.pods import Trouble
from altershield.workloads.workload import Workload
from kube_base.meta import ObjectMeta, OwnerReference
from reconciler.batches import transitions as batches
from reconciler.batches.check_run import Answer, Planned
from reconciler.batches.conclusion import Answers
from reconciler.cluster import batch as batch_projections
from reconciler.cluster.release import Release
from reconciler.cluster.release_checks import asked
from reconciler.releases.decisions import answers as request_answers
from reconciler.releases.decisions import bypass, rollback
from reconciler.releases.decisions.decide import decide
from reconciler.releases.decisions.stuck_pods import StuckPods, starts_until
from reconciler.releases.findings.ending import automatic_target, cause_unknown, unknown_again_at
from reconciler.releases.findings.restarts import restarts_before
from reconciler.releases.findings.ungated import Revision, current_revision
from reconciler.releases.pods.blame import Parts
from reconciler.releases.pods.groups import PodGroups
from reconciler.releases.reads.live import revision_of
from reconciler.releases.reads.targets import TargetReader
from reconciler.releases.terms.effects import Decision
from reconciler.releases.terms.rules import settings_of, settle_of, timing_of
from reconciler.releases.terms.snapshot import Snapshot, Target
from reconciler.releases.writes import creation
from tests.support.workloads import GROUP_KINDS

from .cluster import NAME, UID
from .executor import Executor, WriteRefused
from .pods import NAMESPACE, SimPod


class World(Executor):
    def __init__(self, kind: str, *, replicas: int = 3, observe: float = 10, start_timeout: float = 120) -> None:
        super().__init__(kind, replicas=replicas, observe=observe, start_timeout=start_timeout)
        self.events_say: Any = None
        """The fault that the Events of pods in creation show."""
        self.changed: Parts = frozenset()
        """What the present release changed."""
        self.events_refuse = ""
        """Why pods cannot be created, as the Events say."""
        self.event_words: dict[str, Trouble] = {}
        """By pod uid: what its Events say."""
        self.asked: list[tuple[float, str]] = []
        """When the Events of which pods were read while the release was under way."""
        self.checked = True
        """Whether the controller of batches runs."""
        self.check_answers: dict[str, Answer] = {}
        """What checks of the release answer, by name."""
        self.checks_asked: list[str] = []
        self.exhausted_budget = ""
        """The name of a PodUnavailableBudget that admits no deletion of the workload's pods."""
        self.looks = 0
        self.decision = Decision()
        self.stuck_pods = StuckPods(self)

    def die(self) -> None:
        """The leader dies, and what it knows about pods is lost."""
        self.groups, self.stuck_pods = None, StuckPods(self)

    def begin(self, image: str) -> None:
        """Release an image, and let the reconciler see it."""
        self.release(image)
        self.rest()

    def begin_repair(self, image: str) -> None:
        """Release an image that a person lets pass although the workload is suspended."""
        self.own_labels[labels.IGNORED_SUSPEND] = "true"
        self.begin(image)

    def fail(self, pod: SimPod) -> None:
        """A person fails the pod, and the reconciler sees it."""
        assert self.judge(pod, "unpass")
        self.rest()

    def reconcile(self) -> bool:
        """Run each controller once. Return whether anything was written."""
        before = self.writes
        if self.checked:
            self._reconcile_batches()
        self._reconcile_release()
        return self.writes != before

    def rest(self, turns: int = 60) -> int:
        """Reconcile until nothing is written, while the time stands still. Return the number of turns."""
        for turn in range(turns):
            if not self.reconcile() and self.decision.requeue_after not in (0, 0.0):
                return turn
        raise AssertionError("the reconciler writes again and again")

    def run(self, seconds: float) -> None:
        """Let `seconds` pass, and reconcile whenever the reconciler has asked for it."""
        end = self.t + seconds
        self.rest()
        for _ in range(2000):
            again = self.decision.requeue_after
            if again is None or self.t + again > end:
                break
            self.t += max(again, 0.001)
            self.rest()
        else:
            raise AssertionError("the reconciler asks to be called again and again")
        self.t = end
        self.rest()

    def advance(self, seconds: float) -> None:
        """Let time pass without a reconciler."""
        self.t += seconds

    def roll_out(self, image: str) -> list[SimPod]:
        """Release an image, replace all pods by new ones that come up, and wait until the release has settled."""
        old = list(self.pods.values())
        self.begin(image)
        pods = self.make_up(self.replicas)
        self.remove(*old)
        self.run(self.timing.observe + self.timing.start_timeout + 60)
        assert self.state() == WorkloadState.SUCCESS, self.status()
        return pods

    def _reconcile_batches(self) -> None:
        for name in list(self.batches):
            answers: dict[tuple[str, Phase], Answer] = {}
            while True:
                change_pod = self.batches[name]
                observed = self._batch_snapshot(change_pod, answers)
                status, following = batches.decide(change_pod.status, observed, self.now)
                assert following == batches.DONE or change_pod.spec.phase
                if status != change_pod.status:
                    self._write("batch")
                    self._store_batch(change_pod, status)
                if not following.asks:
                    break
                answers = {each.key: self.check_answers[each.name] for each in following.asks}
                self.checks_asked += [each.name for each in following.asks]

    def _batch_snapshot(self, change_pod: ChangePod, answers: Answers) -> batches.BatchSnapshot:
        """The input of a decision about a batch. Only checks that are about no batch of pods run here."""
        spec = change_pod.spec
        release = self.releases.get(names.version_in(spec.change_workload_id))
        if not spec.phase or release is None:
            return batches.BatchSnapshot(change_pod)
        wanted = [each for each in release.spec.policy.checks if each.phase == spec.phase]
        plan = [Planned(each, repeatable=frozenset(Phase)) for each in wanted]
        return batches.BatchSnapshot(change_pod, plan, answers, asked=asked(release, spec))

    def _reconcile_release(self) -> None:
        self.decision = Decision()
        workload = self.workload
        own = [self._projected(each) for each in self.releases.values()]
        for other in own:
            if other.status.status == WorkloadState.ROLLBACK and names.version_in(other.metadata.name) != self.version:
                self._close(other, workload)
                return
        for other in own:
            if other.status.request is not None and names.version_in(other.metadata.name) != self.version:
                self._carry_out(
                    other, workload, request_answers.not_current(other, workload, other.status.request, self.now)
                )
                return
        release = next((each for each in own if names.version_in(each.metadata.name) == self.version), None)
        if release is None or not workload.processed:
            self._begin(workload, release, [each for each in own if each is not release])
            return
        others = [each for each in own if each is not release]
        self._go_on(workload, release, others)
        self._free(workload, release, others)

    def _free(self, workload: Workload, release: Release, others: list[Release]) -> None:
        """Delete the pods of older versions for which the workload's controller would wait without end."""
        found = self.stuck_pods.find(
            workload,
            [self.project(pod) for pod in self.pods.values()],
            release,
            others,
            [batch_projections.project(each) for each in self.batches.values()],
            self.timing,
            self.now,
            enabled=settings_of(self.settings, release.spec.policy).rollback,
        )
        dues = [self.decision.requeue_after, None if found.due is None else max(0.0, found.due - self.now)]
        for pod in (*found.rolled_back, *found.overdue):
            sim = self.pods[pod.metadata.uid]
            starts = starts_until(pod, self.start(sim.container), found.timing)
            if pod in found.overdue and self.now < starts:
                dues.append(starts - self.now)
            else:
                self._write("delete pod")
                self.remove(sim)
        due = min((each for each in dues if each is not None), default=None)
        self.decision = replace(self.decision, requeue_after=due)

    def _begin(self, workload: Workload, release: Release | None, others: list[Release]) -> None:
        version = workload.version
        name = change_workload_name(GROUP_KINDS[self.kind], NAME, version)
        metadata = ObjectMeta(
            name=name,
            namespace=NAMESPACE,
            uid=f"release-{version}",
            generation=1,
            resource_version="1",
            labels={labels.VERSION: version},
            owner_references=(
                OwnerReference(self.kind, NAME, UID, self.adapter.resource.api_version, controller=True),
            ),
        )
        spec = ChangeWorkloadSpec(
            change_workload_id=name,
            service_name=NAME,
            app_name=NAME,
            reversion=version,
            count_threshold=settings_of(self.settings, self.policy).batch_size(workload.replicas),
            wait_time_threshold=60,
            create_time=plain_time(self.now),
            create_time_unix=int(self.now),
            workload_ref=WorkloadRef(self.adapter.resource.api_version, self.kind, NAME, UID),
            workload_generation=workload.generation,
            policy=self.policy,
            restarts_before=restarts_before(
                map(self.project, self.pods.values()),
                [*others, *([] if release is None else [release])],
                version,
                settle_of(timing_of(self.timing, self.policy), self.policy),
                settings_of(self.settings, self.policy),
                self.now,
            ),
        )
        if release is None:
            self._write("release")
            self._store(ChangeWorkload(metadata, spec))
        elif release.spec.workload_generation != workload.generation:
            status = ChangeWorkloadStatus(
                status=WorkloadState.INIT,
                source=release.status.source,
                previous=creation.previous(release, others),
                conditions=creation._kept_conditions(release, self.now),
                actions=creation.actions_with_refusal(release, self.now),
            )
            self._write("status")
            self._store(ChangeWorkload(metadata, release.spec, status))
            self._write("spec")
            self._store(ChangeWorkload(metadata, spec, status))
        self._write("label")
        self.own_labels[labels.DEFENSE_STATUS] = labels.PROCESSED
        if not bypass.is_rollback(workload, others):
            self.own_labels.pop(labels.IGNORED_SUSPEND, None)

    def _close(self, release: Release, workload: Workload) -> None:
        self._carry_out(release, workload, rollback.close(release, workload, self.now))

    def open_groups(self, release: Release, source: SourceRef, workload: Workload) -> PodGroups:
        if self.groups is None or not self.groups.is_for(workload, release, source):
            self.groups = PodGroups(workload, release, source, self, timing_of(self.timing, release.spec.policy))
            for each in self.batches.values():
                if each.metadata.owner_references[0].uid == release.metadata.uid:
                    self.groups.update_batch(batch_projections.project(each))
            for pod in self.pods.values():
                self.groups.update_pod(self.project(pod), self.now)
        if release.status.status == WorkloadState.SUCCESS:
            self.groups.set_changed(None)
        self.groups.refresh(workload, self.now)
        return self.groups

    def revision_projections(self) -> list[Revision]:
        return [revision_of(self.workload, raw) for raw in self.revisions.values()]

    def snapshot(self, release: Release, others: list[Release], workload: Workload) -> Snapshot:
        source = release.status.source
        if not source.uid and workload.up_to_date:
            found = current_revision(workload, self.revision_projections())
            if found is not None:
                known = found.source
                source = SourceRef(known.kind, known.name, known.uid, self.version, known.fingerprint)
        known = release.status.previous
        return Snapshot(
            release=release,
            workload=workload,
            groups=self.open_groups(release, source, workload) if source.uid else None,
            others=others,
            settings=settings_of(self.settings, release.spec.policy),
            timing=timing_of(self.timing, release.spec.policy),
            source=source,
            previous=known if known.uid else creation.previous(release, others),
            budget=self.exhausted_budget,
            batches=[
                batch_projections.project(each)
                for each in self.batches.values()
                if each.spec.change_workload_id == release.metadata.name and release.spec.policy.checks
            ],
        )

    def targets(self, snapshot: Snapshot) -> list[Target]:
        self.looks += 1
        groups = snapshot.groups
        if groups is not None:
            for pod in self.pods.values():
                if pod.creating:
                    groups.set_events_fault(pod.uid, self.events_say, self.now)
                if pod.uid in self.event_words:
                    groups.set_event(pod.uid, self.event_words[pod.uid], self.now)
            groups.refresh(snapshot.workload, self.now)
        look: Any = TargetReader(None, self, None)  # type: ignore[arg-type]
        projected = [self.project(pod) for pod in self.pods.values()]
        found: list[Target] = look._targets(
            snapshot.workload,
            snapshot.source,
            self.revision_projections(),
            projected,
            [snapshot.release, *snapshot.others],
        )
        if groups is not None and cause_unknown(snapshot, self.now):
            undoable = isinstance(automatic_target(snapshot, found), Target)
            if undoable:
                groups.set_changed(self.changed)
            else:
                groups.set_changed(frozenset(), unknown_again_at(snapshot, self.now))
            groups.set_refusal(self.events_refuse, self.now)
            groups.refresh(snapshot.workload, self.now)
        return found

    def _read_events(self, snapshot: Snapshot) -> None:
        groups = snapshot.groups
        assert groups is not None
        for tracked in groups.not_up.ask(self.now):
            uid = tracked.pod.metadata.uid
            self.asked.append((self.t, uid))
            groups.set_event(uid, self.event_words.get(uid), self.now)
        groups.refresh(snapshot.workload, self.now)

    def _go_on(self, workload: Workload, release: Release, others: list[Release]) -> None:
        snapshot = self.snapshot(release, others, workload)
        self.decision = decide(snapshot, self.now)
        if self.decision.read_events:
            self._read_events(snapshot)
            snapshot = replace(snapshot, events_read=True)
            self.decision = decide(snapshot, self.now)
            assert not self.decision.read_events
        if self.decision.read_pods:
            self.touch(*self.pods.values())
            snapshot = replace(snapshot, groups=self.open_groups(release, snapshot.source, workload), pods_read=True)
            self.decision = decide(snapshot, self.now)
            assert not self.decision.read_pods
        if self.decision.read_live:
            own_pause = self.held and self.paused and not self.paused_again
            snapshot = replace(snapshot, targets=self.targets(snapshot), pods_read=True, own_pause=own_pause)
            self.decision = decide(snapshot, self.now)
            assert not self.decision.read_live
        try:
            self._carry_out(release, workload, self.decision)
        except WriteRefused as cause:
            current = self._projected(self.releases[self.version])
            decision = rollback.refused(current, str(cause), self.now)
            self._carry_out(current, workload, decision)
            self.decision = replace(decision, requeue_after=5.0)
