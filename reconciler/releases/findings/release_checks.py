"""The checks of a release that are about no batch of pods: before a step, and after the release. Pure functions."""

from dataclasses import dataclass, replace

from altershield.api.change_workload import WorkloadState
from altershield.api.check_specs import BEFORE_STEP, CheckPhase
from altershield.api.rollout import Phase, RolloutStatus
from altershield.releases import state
from altershield.rollout.waits import Waits, for_gates, waits_of
from reconciler.cluster.batch import Batch, ReleaseChecks
from reconciler.cluster.release_checks import waits_for_checks
from reconciler.releases.terms.effects import CreateBatch
from reconciler.releases.terms.snapshot import Snapshot
from reconciler.rollout.progress import is_first


@dataclass(frozen=True, slots=True)
class Run:
    """A ChangePod with checks of the release."""

    batch: Batch
    checks: ReleaseChecks

    @property
    def passed(self) -> bool:
        return self.batch.done and self.checks.verdict == "True"

    @property
    def fails(self) -> bool:
        """Whether it fails the release."""
        return self.batch.done and self.checks.verdict == "False"

    @property
    def void(self) -> bool:
        """Whether it ended without a verdict, because the release did not wait for it any more."""
        return self.batch.done and self.checks.verdict == "Unknown"


def runs(snapshot: Snapshot) -> list[Run]:
    """Those of this release; its version may have been released before. The newest one is last."""
    generation = snapshot.release.spec.workload_generation
    found = [
        Run(each, each.of_release)
        for each in snapshot.batches
        if each.of_release is not None and each.of_release.generation == generation and not each.deleting
    ]
    return sorted(found, key=lambda run: run.batch.number)


def present(snapshot: Snapshot, phase: str, step: int = 0) -> Run | None:
    """The newest run of the checks of this phase, before this step; None if there is none."""
    found = [run for run in runs(snapshot) if (run.checks.phase, run.checks.step) == (phase, step)]
    return found[-1] if found else None


def created(snapshot: Snapshot, phase: str, step: int = 0) -> tuple[CreateBatch, ...]:
    """The ChangePod of these checks, which has to be created; empty if it exists."""
    run = present(snapshot, phase, step)
    if run is not None and not run.void:
        return ()
    numbers = [each.number for each in snapshot.batches]
    highest = max([*numbers, snapshot.release.status.retried_batches])
    return (CreateBatch(highest + 1, (), phase=phase, step=step),)


# before a step


def waits(snapshot: Snapshot) -> Waits:
    """What the release waits for before its steps: gates, and checks."""
    passed = ((run.checks.phase, run.checks.step) for run in runs(snapshot) if run.passed)
    found = waits_of(snapshot.release.spec.policy.checks, passed)
    go_on = for_gates(each for each in snapshot.closed if each.stops_running)
    return replace(found, begin=for_gates(snapshot.closed), go_on=go_on)


def due(snapshot: Snapshot, status: RolloutStatus) -> str:
    """The phase of the checks for which the present step waits; empty if it waits for none."""
    return waits(snapshot).due(status.step, first=is_first(status)) if status.phase == Phase.HELD else ""


def created_before(snapshot: Snapshot, status: RolloutStatus) -> tuple[CreateBatch, ...]:
    """The ChangePod of checks before the step, which has to be created. `status`: as it is about to be stored."""
    if not waits_for_checks(status) or not waits_for_checks(snapshot.release.status.rollout):
        return ()  # a phase is stored before it is acted on
    phase = due(snapshot, status)
    return created(snapshot, phase, status.step) if phase else ()


def said(snapshot: Snapshot) -> str:
    """What the checks said for which the present step waits; empty if none has a result."""
    status = snapshot.release.status.rollout
    run = present(snapshot, due(snapshot, status), status.step)
    return run.checks.said if run is not None else ""


# after the release


def after(snapshot: Snapshot, verified: WorkloadState) -> tuple[WorkloadState, tuple[CreateBatch, ...]]:
    """The state, and the ChangePod to create: a release succeeds after the checks that run after it, and fails if one
    of them fails. `verified`: the state by its pods."""
    before, checks = state(snapshot.release), snapshot.release.spec.policy.checks
    if before is WorkloadState.SUCCESS or all(each.phase is not CheckPhase.POST_RELEASE for each in checks):
        return verified, ()
    run = present(snapshot, CheckPhase.POST_RELEASE)
    if run is not None and run.fails:
        return WorkloadState.SUSPEND, ()
    if verified is not WorkloadState.SUCCESS or (run is not None and run.passed):
        return verified, ()
    under_way = before is WorkloadState.RUNNING  # the state is stored before it is acted on
    return WorkloadState.RUNNING, created(snapshot, CheckPhase.POST_RELEASE) if under_way else ()


def failed(snapshot: Snapshot) -> Run | None:
    """The checks that failed the release after it; None if they did not."""
    run = present(snapshot, CheckPhase.POST_RELEASE)
    return run if run is not None and run.fails else None


def text_of(run: Run) -> str:
    """The failure of a release by its checks, as a sentence."""
    return f"a check of the phase {run.checks.phase} failed: {run.checks.said}"


def open_runs(snapshot: Snapshot) -> list[Run]:
    """The checks that have not passed, for which the release waits or by which it failed."""
    status, found = snapshot.release.status.rollout, [present(snapshot, CheckPhase.POST_RELEASE)]
    if status.phase in (Phase.HELD, Phase.STOPPED):
        found += [present(snapshot, each, status.step) for each in BEFORE_STEP]
    return [run for run in found if run is not None and not run.passed]
