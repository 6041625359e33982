"""A release in steps, with a workload whose pods come up at once, or not."""

from dataclasses import dataclass, field

import msgspec

from altershield.api.check_specs import CheckPhase, CheckSpec
from altershield.api.rollout import Phase, Rollout, RolloutStatus, WaitingFor
from altershield.rollout.steps import is_last, step_pods
from altershield.rollout.waits import NO_WAITS, Waits, waits_of
from altershield.workloads.hold import STEPS, Cause, Hold
from altershield.workloads.pods import Pod
from reconciler.rollout.draft import Progress
from reconciler.rollout.progress import progress
from reconciler.rollout.view import View

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


def checked(*passed: tuple[str, int], phase: CheckPhase = CheckPhase.PRE_BATCH) -> Waits:
    """The waits of a release with a check of this phase."""
    return waits_of([CheckSpec("smoke", phase=phase)], passed)


def passes_up_to(step: int) -> Waits:
    return checked(*((CheckPhase.PRE_BATCH, number) for number in range(1, step + 1)))
