"""A release in steps, with a workload whose pods come up at once, or not."""

from dataclasses import dataclass, field, replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from altershield.api.check_specs import CheckPhase, CheckSpec
from altershield.api.rollout import Phase, Rollout, RolloutStatus, Step, WaitingFor
from altershield.rollout.steps import is_last, step_pods
from altershield.rollout.waits import NO_WAITS, Waits, waits_of
from altershield.workloads.hold import STEPS, Cause, Hold
from altershield.workloads.pods import Pod
from reconciler.rollout.draft import Progress
from reconciler.rollout.progress import progress, promoted
from reconciler.rollout.targets import NewHold
from reconciler.rollout.view import View
from tests.unit.altershield.workloads.objects import pod

ROLLOUT = Rollout(pods=(1, "30%"), soak_seconds=60)


def hold(pods: int, replicas: int = 10, rollout: Rollout = ROLLOUT) -> Hold:
    return Hold("new", (Cause(STEPS, pods=pods),), base="old", rollout=rollout, replicas=replicas, write=1)


@dataclass
class World:
    """A Deployment of `replicas` pods whose strategy allows `at_once` new ones before one is available."""

    rollout: Rollout = ROLLOUT
    replicas: int = 10
    at_once: int | None = 1
    now: float = 1_000.0
    status: RolloutStatus = field(default_factory=RolloutStatus)
    hold: Hold | None = None
    pods: int = 0
    up: int = 0
    passed: int = 0
    failed: bool = False
    waiting: tuple[WaitingFor, ...] = ()
    terminating: tuple[str, ...] = ()
    evictable: tuple[Pod, ...] = ()
    waits: Waits = NO_WAITS
    said: str = ""
    events: list[str] = field(default_factory=list)
    most: int = 0
    """The most pods that the version had while a step was held."""
    oldest: int = 0
    steady: int = 0
    replaced_first: int = 0

    def __post_init__(self) -> None:
        first = step_pods(self.rollout, 1, self.replicas)
        allowed = first if self.at_once is None else min(first, self.at_once)
        allowed = 0 if self.waits.before(1, first=True) else allowed
        self.hold = self.hold or hold(allowed, self.replicas, self.rollout)

    @property
    def view(self) -> View:
        allowed = self.hold.pods if self.hold is not None else self.replicas
        return View(
            rollout=self.rollout, version="new", replicas=self.replicas, reach=self.replicas, hold=self.hold,
            at_once=self.at_once, pods=self.pods, older=max(0, self.replicas - self.pods), up=self.up,
            passed=self.passed, complete=0 < self.passed == self.pods and self.pods >= min(allowed, self.replicas),
            failed=self.failed, waiting=self.waiting, evictable=self.evictable,
            waits=self.waits, terminating=self.terminating, checks_said=self.said,
            oldest=self.oldest, steady=self.steady, replaced_first=self.replaced_first,
        )  # fmt: skip

    def reconcile(self) -> Progress:
        found = progress(self.status, self.view, self.now)
        assert progress(self.status, self.view, self.now) == found
        self.status = found.status
        self.events += [each.reason for each in found.events]
        if found.new_hold is not None:
            assert self.hold is not None
            self.hold = msgspec.structs.replace(
                self.hold,
                causes=(Cause(STEPS, pods=found.new_hold.pods),),
                replicas=found.new_hold.replicas,
                surge=found.new_hold.surge,
            )
        if found.ends_hold:
            self.hold = None
        return found

    def roll(self) -> None:
        """The workload's controller creates what the hold allows, and the pods come up and pass."""
        self.pods = min(self.hold.pods, self.replicas) if self.hold is not None else self.replicas
        self.up = self.passed = self.pods

    def act(self, action: str, number: int) -> None:
        """Something happens to the workload."""
        match action:
            case "tick":
                self.now += number
            case "scale":
                self.replicas = number
                self.pods = min(self.pods, number)
                self.up = self.passed = min(self.up, self.pods)
            case "roll":
                self.roll()
            case "fail" | "pass":
                self.failed = action == "fail"
            case "crash":
                self.up = self.passed = max(0, self.up - 1)
            case "wait":
                self.waiting = (WaitingFor.QUOTA,) if number % 2 else ()

    def check(self, before: int) -> None:
        """`before`: the pods that the hold allowed before the last reconcile."""
        if self.hold is None or not self.status.phase:
            return
        if is_last(self.rollout, self.status.step):  # a failure before the hold ended leaves it
            assert self.status.phase in (Phase.FINISHING, Phase.STOPPED, Phase.ROLLING)
        if self.status.phase != Phase.FINISHING:
            assert self.hold.pods <= max(step_pods(self.rollout, self.status.step, self.replicas), before)
        if self.at_once is not None and self.hold.pods > before:
            assert self.hold.pods <= self.at_once + self.up

    def settle(self, times: int = 30) -> None:
        for _ in range(times):
            self.reconcile()
            self.roll()
            if self.hold is not None:
                self.most = max(self.most, self.pods)


def test_release_goes_to_one_pod_then_to_thirty_percent_then_to_all() -> None:
    world = World()
    reached = []
    for _ in range(4):
        world.settle()
        reached.append((world.status.phase, world.pods))
        world.now += 60
    assert reached == [("Soaking", 1), ("Soaking", 3), ("Done", 10), ("Done", 10)]
    assert world.hold is None
    assert [each.pods for each in world.status.passed_steps] == [1, 3, 10]
    assert world.events.count("StepStarted") == 3
    assert world.events[-1] == "StepsFinished"


def test_step_stays_until_its_soak_is_over() -> None:
    world = World()
    world.settle()
    world.now += 59
    world.settle()
    assert (world.status.step, world.pods) == (1, 1)


def test_pods_rise_by_what_the_own_strategy_allows() -> None:
    """With `maxUnavailable: 0` and `maxSurge: 1`, a further pod is replaced after the one before is available."""
    world = World(rollout=Rollout(pods=("50%",), soak_seconds=0))
    seen = set()
    for _ in range(30):
        world.reconcile()
        if world.hold is None:
            break
        assert world.hold.pods <= world.up + 1
        seen.add(world.hold.pods)
        world.roll()
    assert seen == {1, 2, 3, 4, 5}


def test_failure_stops_the_release_in_its_soak_and_a_corrected_verdict_continues_it() -> None:
    world = World()
    world.settle()
    world.failed = True
    world.settle()
    assert (world.status.phase, world.status.failed_step, world.pods) == (Phase.STOPPED, 1, 1)
    world.now += 10_000
    world.settle()
    assert world.pods == 1
    world.failed = False
    world.settle()
    assert world.status.phase == Phase.SOAKING
    assert world.status.soak_end_time_unix == world.now + 60


def test_soak_in_which_all_pods_restarted_begins_anew_until_the_deadline() -> None:
    """The deadline is an hour, and a soak takes a minute."""
    world = World()
    world.settle()
    begin = world.now
    while not (found := world.reconcile()).overdue:
        assert (world.status.step, world.status.phase) == (1, Phase.SOAKING)
        world.now = found.wake or world.now
        world.steady = int(world.now) - 9
    assert 3600 <= world.now - begin <= 3600 + 120
    assert found.overdue == "step 1 of 3: no pod stayed ready for a whole soak within 3600 s"
    assert world.status.phase == Phase.STOPPED


def test_soak_in_which_all_pods_were_replaced_begins_anew_with_a_deadline_of_its_own() -> None:
    world = World()
    world.settle()
    for _ in range(100):
        world.now += 60
        world.oldest = world.steady = int(world.now) - 9
        found = world.reconcile()
        assert not found.overdue
    assert (world.status.step, world.status.phase) == (1, Phase.SOAKING)
    assert found.wake == world.now + 60
    world.now += 60
    world.settle()
    assert world.status.step == 2


def test_last_step_soaks_anew_without_a_deadline() -> None:
    world = World(rollout=Rollout(steps=(Step(1, 0), Step("100%", 60))))
    world.settle()
    assert (world.status.step, world.status.phase) == (2, Phase.SOAKING)
    for _ in range(100):
        world.now += 60
        world.steady = int(world.now) - 9
        world.reconcile()
        assert world.status.phase == Phase.SOAKING
    world.now += 60
    assert world.reconcile().done


def test_pod_that_stayed_ready_is_enough_and_a_clock_that_is_ahead_does_not_count() -> None:
    for steady in (1_000, 2_000):
        world = World()
        world.settle()
        world.steady = steady
        world.now += 60
        world.settle()
        assert (world.status.step, world.now) == (2, 1_060.0)


def test_approval_waits_for_a_person() -> None:
    world = World(rollout=Rollout(steps=(Step(1, 0, approval=True),)))
    world.settle()
    assert world.status.phase == Phase.WAITING_FOR_APPROVAL
    found = promoted(world.status, world.view, "anna", world.now, full=False)
    assert isinstance(found, Progress)
    world.status = found.status
    world.settle()
    assert world.status.phase == Phase.DONE
    assert world.status.passed_steps[0].promoted_by == "anna"


def test_full_promotion_skips_soaks_and_not_the_verification() -> None:
    world = World()
    world.reconcile()
    found = promoted(world.status, world.view, "anna", world.now, full=True)
    assert isinstance(found, Progress)
    world.status = found.status
    world.reconcile()
    assert world.pods == 0
    world.settle(60)
    assert (world.status.phase, world.pods) == (Phase.DONE, 10)


def test_unverified_step_is_not_promoted() -> None:
    world = World()
    world.reconcile()
    assert isinstance(promoted(world.status, world.view, "anna", world.now, full=False), str)


def test_held_release_takes_no_step() -> None:
    world = World()
    world.settle()
    world.status = msgspec.structs.replace(world.status, held_by="anna")
    world.now += 600
    world.settle()
    assert (world.status.step, world.status.waiting_for) == (1, ("person",))


def test_a_promotion_ends_the_hold_of_a_person_also_if_the_step_is_not_verified_any_more() -> None:
    """Otherwise the release would stand for ever: its deadline does not run while a person holds it."""
    world = World()
    world.settle()
    assert world.status.phase == Phase.SOAKING
    world.status = msgspec.structs.replace(world.status, held_by="anna")
    view = replace(world.view, complete=False)
    found = promoted(world.status, view, "ben", world.now, full=False)
    assert isinstance(found, Progress)
    assert (found.status.held_by, found.status.phase, found.status.step) == ("", Phase.SOAKING, 1)
    assert isinstance(promoted(found.status, view, "ben", world.now, full=False), str)


@pytest.mark.parametrize("waiting", [WaitingFor.PAUSED, WaitingFor.QUOTA])
def test_deadline_does_not_run_while_the_release_waits(waiting: WaitingFor) -> None:
    world = World(rollout=Rollout(pods=(3,), step_deadline_seconds=100))
    world.reconcile()
    world.reconcile()
    world.waiting = (waiting,)
    world.reconcile()
    world.now += 1_000
    assert not world.reconcile().overdue
    world.waiting = ()
    world.reconcile()
    world.now += 99
    assert not world.reconcile().overdue
    world.now += 2
    assert "is not verified within 100 s" in world.reconcile().overdue


def test_deadline_does_not_run_while_the_release_waits_in_its_soak_or_after_it() -> None:
    """A person holds the release, and a pod breaks. It has the rest of the deadline after that."""
    world = World(rollout=Rollout(steps=(Step(1, 30),), step_deadline_seconds=100))
    world.settle()
    assert world.status.phase == Phase.SOAKING
    world.status = msgspec.structs.replace(world.status, held_by="anna")
    world.reconcile()
    world.now += 1_000
    world.passed = 0
    assert not world.reconcile().overdue
    world.status = msgspec.structs.replace(world.status, held_by="")
    found = world.reconcile()
    assert (found.overdue, found.wake) == ("", world.now + 130)
    world.now += 130
    assert "is not verified within 100 s" in world.reconcile().overdue


@pytest.mark.parametrize("soaks", [False, True])
def test_pod_that_does_not_end_stops_the_deadline_and_is_named(*, soaks: bool) -> None:
    world = World(rollout=Rollout(pods=(1,), soak_seconds=60, step_deadline_seconds=100))
    world.reconcile()
    if soaks:
        world.settle()
        assert world.status.phase == Phase.SOAKING
        world.pods = world.up = world.passed = 0
    world.terminating = ("web-2",)
    found = world.reconcile()
    assert world.status.waiting_for == ("termination",)
    assert [each.message.rpartition("place ")[2] for each in found.events if each.reason == "StepHeld"] == ["(web-2)"]
    world.now += 10_000
    assert not world.reconcile().overdue
    world.terminating = ()
    world.reconcile()
    assert world.status.waiting_for == ()
    world.now += 159 if soaks else 99
    assert not world.reconcile().overdue
    world.now += 2
    assert "is not verified within 100 s" in world.reconcile().overdue


def test_refused_eviction_stops_the_deadline_until_no_eviction_is_due() -> None:
    """A later pod that does not come up makes the step overdue, although the step has not all its pods."""
    world = World(rollout=Rollout(pods=(3,), step_deadline_seconds=100), at_once=None)
    world.reconcile()
    world.evictable = (pod(),)
    assert world.reconcile().evicts == world.evictable
    world.status = msgspec.structs.replace(world.status, waiting_for=("eviction",), waiting_since_unix=int(world.now))
    world.now += 1_000
    found = world.reconcile()
    assert (found.overdue, found.evicts, found.status.waiting_for) == ("", world.evictable, ("eviction",))
    world.evictable = ()
    assert world.reconcile().status.waiting_for == ()
    world.now += 101
    assert "is not verified within 100 s" in world.reconcile().overdue


def test_nothing_is_evicted_while_a_person_holds_the_release_or_the_hold_is_written() -> None:
    world = World(rollout=Rollout(pods=(3,)), at_once=None, evictable=(pod(),))
    assert not world.reconcile().evicts
    assert world.reconcile().evicts
    world.replicas = 2
    found = world.reconcile()
    assert found.new_hold is not None
    assert not found.evicts
    world.status = msgspec.structs.replace(world.status, held_by="anna")
    assert not world.reconcile().evicts


def test_scaled_to_zero_and_back_escapes() -> None:
    world = World()
    world.settle()
    world.pods = world.up = world.passed = 10
    assert world.view.older == 0
    world.reconcile()
    assert (world.events[-1], world.status.phase) == ("StepsEscaped", Phase.FINISHING)
    world.settle()
    assert (world.status.phase, world.hold) == (Phase.DONE, None)


@pytest.mark.parametrize(("replicas", "reached"), [(20, 6), (5, 2), (1, 1)])
def test_scaled_workload_gets_the_share_of_its_replicas(replicas: int, reached: int) -> None:
    world = World()
    world.settle()
    world.now += 60
    world.reconcile()
    assert world.status.step == 2
    world.replicas = replicas
    world.pods = world.up = world.passed = min(world.pods, replicas)
    for _ in range(30):
        world.reconcile()
        if world.status.step != 2:
            break
        world.roll()
    assert world.status.step == 2
    assert world.pods == reached


def test_scaling_down_takes_no_more_old_pods_than_the_own_strategy_of_fewer_replicas() -> None:
    """Two of four pods were allowed, and are not up. One of two may be unavailable."""
    rollout = Rollout(pods=(2,), soak_seconds=60)
    world = World(rollout=rollout, replicas=4, at_once=2, hold=hold(2, 4, rollout))
    world.reconcile()
    world.replicas, world.at_once = 2, 1
    found = world.reconcile()
    assert found.new_hold == NewHold("new", 1, 2, surge=True)
    world.up = 1
    found = world.reconcile()
    assert found.new_hold == NewHold("new", 2, 2, surge=True)


def test_quota_that_refuses_surge_takes_no_more_old_pods_than_the_own_strategy() -> None:
    """Three pods were allowed, all above the replicas. Without them, one old pod at once makes room."""
    world = World(rollout=Rollout(pods=(3,), soak_seconds=60), at_once=3, hold=hold(3, rollout=Rollout(pods=(3,))))
    world.reconcile()
    world.at_once = 1
    found = progress(world.status, replace(world.view, surge_refused=True), world.now)
    assert found.new_hold is not None
    assert (found.new_hold.pods, found.new_hold.surge) == (1, False)


def test_failed_version_has_no_pod_in_the_soak_of_its_repair() -> None:
    world = World(at_once=2, replaced_first=1, hold=msgspec.structs.replace(hold(2), at_least=10))
    while world.status.phase != Phase.SOAKING:
        assert world.hold is not None
        assert world.hold.surge or world.up == 10, "old pods go when the new ones are up"
        world.reconcile()
        world.roll()
    assert world.hold is not None
    assert (world.hold.pods, world.hold.surge) == (10, False)


def test_pods_of_the_base_stay_beside_all_pods_of_a_repair_in_its_soak() -> None:
    """Kubernetes counts them as available. It would remove all others for the next version."""
    world = World(replicas=1, hold=msgspec.structs.replace(hold(1, 1), at_least=1))
    while world.status.phase != Phase.SOAKING:
        world.reconcile()
        world.roll()
    assert world.hold is not None
    assert (world.hold.pods, world.hold.surge) == (1, True)


def test_hold_whose_fields_somebody_changed_is_written_again() -> None:
    world = World()
    world.settle()
    found = progress(world.status, replace(world.view, follows=False), world.now)
    assert world.hold is not None
    assert found.new_hold is not None
    assert (found.new_hold.pods, found.new_hold.replicas) == (world.hold.pods, world.hold.replicas)


def test_hold_of_a_failed_release_is_written_again_with_the_same_pods() -> None:
    """Somebody changed its fields while no gatekeeper answered: the failed version must not go on to further pods."""
    world = World()
    world.settle()
    world.failed = True
    world.reconcile()
    assert world.status.phase == Phase.STOPPED
    assert world.hold is not None
    world.status = msgspec.structs.replace(world.status, waiting_for=("write",), waiting_since_unix=int(world.now))
    found = progress(world.status, replace(world.view, follows=False, replicas=20), world.now)
    assert found.new_hold == NewHold("new", world.hold.pods, 10, surge=True)
    assert found.status.waiting_for == ("write",)
    assert progress(found.status, world.view, world.now).status.waiting_for == ()
    world.now += 1_000
    world.failed = False
    world.reconcile()
    world.reconcile()
    assert world.status.stopped_seconds == 0


def test_scaling_in_a_soak_counts_new_pods_only_as_far_as_they_are_up() -> None:
    world = World(
        rollout=Rollout(pods=("30%",), soak_seconds=60), at_once=1, hold=hold(3, rollout=Rollout(pods=("30%",)))
    )
    world.settle()
    assert world.status.phase == Phase.SOAKING
    world.replicas, world.pods = 20, 6  # the deployment controller scales old and new pods in proportion
    found = world.reconcile()
    assert found.new_hold is not None
    assert found.new_hold.pods == 4
    world.up = 6
    found = world.reconcile()
    assert found.new_hold is None


def test_release_that_replaces_a_held_one_begins_with_as_many_pods() -> None:
    found = msgspec.structs.replace(hold(1), at_least=3)
    world = World(hold=found)
    world.settle()
    assert (world.status.step, world.pods, world.status.phase) == (2, 3, Phase.SOAKING)


ACTIONS = ("tick", "scale", "roll", "fail", "pass", "crash", "wait")
pods_of_steps = st.one_of(st.integers(1, 40), st.integers(1, 100).map(lambda each: f"{each}%"))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(pods_of_steps, min_size=1, max_size=5), st.integers(1, 40), st.one_of(st.none(), st.integers(1, 10)),
    st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(1, 40))),
)  # fmt: skip
def test_pods_never_exceed_the_step_and_every_run_ends(
    steps: list[int | str], replicas: int, at_once: int | None, actions: list[tuple[str, int]]
) -> None:
    rollout = Rollout(pods=tuple(steps), soak_seconds=10)
    world = World(rollout=rollout, replicas=replicas, at_once=at_once)

    for action, number in actions:
        world.act(action, number)
        before = world.hold.pods if world.hold is not None else 0
        step = world.status.step
        world.reconcile()
        world.check(before)
        assert world.status.step >= step
    world.failed, world.waiting = False, ()
    for _ in range(400):
        world.reconcile()
        world.roll()
        world.now += 1
    assert world.status.phase == Phase.DONE
    assert (world.hold, world.pods) == (None, world.replicas)


def test_stored_status_alone_decides_after_a_crash_before_any_write() -> None:
    """A decision that is lost is made again."""
    world = World()
    for _ in range(200):
        lost = replace(world)
        progress(lost.status, lost.view, lost.now)
        world.reconcile()
        world.roll()
        world.now += 5
    assert world.status.phase == Phase.DONE


def checked(*passed: tuple[str, int], phase: CheckPhase = CheckPhase.PRE_BATCH) -> Waits:
    """The waits of a release with a check of this phase."""
    return waits_of([CheckSpec("smoke", phase=phase)], passed)


def passes_up_to(step: int) -> Waits:
    return checked(*((CheckPhase.PRE_BATCH, number) for number in range(1, step + 1)))


@pytest.mark.parametrize("phase", [CheckPhase.PRE_RELEASE, CheckPhase.PRE_BATCH])
def test_no_pod_gets_the_version_before_its_check_passes(phase: CheckPhase) -> None:
    world = World(waits=checked(phase=phase))
    world.settle()
    assert (world.status.phase, world.status.step, world.pods) == (Phase.HELD, 1, 0)
    assert (world.status.waiting_for, world.status.waiting_since_unix) == (("check",), 0)
    assert world.events == ["StepHeld"]
    world.waits = checked((phase, 1), phase=phase)
    world.settle()
    assert (world.status.phase, world.pods, world.events) == (Phase.SOAKING, 1, ["StepHeld", "StepStarted"])


def test_each_step_waits_for_its_check_with_the_pods_of_the_step_before() -> None:
    world = World()
    reached = []
    for step in range(4):
        world.waits = passes_up_to(step)
        if not step:
            world.hold = hold(0)
        for _ in range(4):
            world.settle()
            world.now += 60
        reached.append((world.status.phase, world.status.step, world.pods))
    assert reached == [("Held", 1, 0), ("Held", 2, 1), ("Held", 3, 3), ("Done", 3, 10)]
    assert world.hold is None


def test_check_of_the_release_is_not_asked_before_later_steps() -> None:
    world = World(waits=checked((CheckPhase.PRE_RELEASE, 1), phase=CheckPhase.PRE_RELEASE))
    for _ in range(4):
        world.settle()
        world.now += 60
    assert world.status.phase == Phase.DONE


@pytest.mark.parametrize("step", [1, 2, 3])
def test_waiting_for_a_check_counts_for_the_deadline_of_its_step(step: int) -> None:
    rollout = Rollout(pods=(1, "30%"), soak_seconds=0, step_deadline_seconds=100)
    world = World(rollout=rollout, waits=passes_up_to(step - 1), hold=hold(0, rollout=rollout))
    world.settle(60)
    world.said = "smoke: no column"
    assert (world.status.phase, world.status.step) == (Phase.HELD, step)
    pods, world.now = world.pods, world.status.step_time_unix + 99
    found = world.reconcile()
    assert (found.overdue, found.wake) == ("", world.status.step_time_unix + 100)
    world.now += 1
    found = world.reconcile()
    assert found.overdue == f"step {step} of 3 has not begun within 100 s: smoke: no column"
    assert (found.status.phase, found.status.failed_step, found.status.waiting_for) == (Phase.STOPPED, step, ())
    world.failed = True
    world.settle()
    assert world.pods == pods


def test_person_who_holds_a_release_that_waits_for_a_check_stops_its_deadline() -> None:
    world = World(rollout=Rollout(pods=(1,), step_deadline_seconds=100), waits=checked())
    world.settle()
    world.status = msgspec.structs.replace(world.status, held_by="anna")
    world.reconcile()
    world.now += 1_000
    assert not world.reconcile().overdue
    assert world.status.waiting_for == ("person", "check")
    world.waits = passes_up_to(1)
    world.settle()
    assert world.pods == 0, "the person still holds it"


def test_step_of_a_release_that_goes_on_after_a_failure_waits_for_its_check_again() -> None:
    world = World(waits=checked())
    world.settle()
    world.failed = True
    world.settle()
    world.failed = False
    world.settle()
    assert (world.status.phase, world.pods) == (Phase.HELD, 0)
    world.waits = passes_up_to(1)
    world.settle()
    assert world.pods == 1


def test_promotion_does_not_replace_a_check() -> None:
    world = World(waits=checked())
    world.settle()
    found = promoted(world.status, world.view, "anna", world.now, full=False)
    assert isinstance(found, str)
    assert "a check has not passed" in found
    fully = promoted(world.status, world.view, "anna", world.now, full=True)
    assert isinstance(fully, Progress)
    world.status = fully.status
    world.settle()
    assert world.pods == 0


def test_scaling_of_a_release_that_waits_for_a_check_lets_no_pod_of_the_next_step_through() -> None:
    world = World(waits=checked())
    world.settle()
    world.replicas = 20
    assert world.reconcile().new_hold is None, "the hold without pods holds at any size"
    world.waits = passes_up_to(1)
    world.settle()
    world.now += 60
    world.settle()
    assert (world.status.phase, world.status.step, world.pods) == (Phase.HELD, 2, 1)
    world.replicas = 10
    world.settle()
    assert (world.hold is not None and world.hold.replicas, world.pods) == (10, 1)


def test_release_without_a_hold_goes_on_without_its_check() -> None:
    world = World(waits=checked())
    world.settle()
    world.hold = None
    world.settle()
    assert "StepsEscaped" in world.events
    assert world.status.phase == Phase.DONE
