"""A random test of pauses that end. Pods fail, pass and are evicted, people decide, pause and continue, settings
change, and leaders die between any two writes. In every order of events: AlterShield does not continue the rollout of a
failed version, unless its policy or a person says so, and every pause ends or tells that it lasts."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from altershield.api import labels
from altershield.api.ops_config import Settings
from altershield.api.policy import OnFailure, OnPauseEnd
from tests.support.random_runs import random_runs
from tests.unit.reconciler.releases.scenarios import SUSPEND
from tests.unit.reconciler.releases.world import KINDS, Killed, World

from .policies import released

SECONDS = 300


class Pauses(RuleBasedStateMachine):
    world: World

    @initialize(kind=st.sampled_from(KINDS), continues=st.booleans(), passed=st.booleans())
    def begin(self, kind: str, continues: bool, passed: bool) -> None:
        self.continues = continues
        end = OnPauseEnd.CONTINUE if continues else OnPauseEnd.ROLLBACK
        rules = {"on_failure": OnFailure.PAUSE, "pause_seconds": SECONDS, "on_pause_end": end}
        self.world, (pod, _) = released(kind, "v2" if passed else "v1", pods=2, **rules)
        self.budget: int | None = None
        self.versions = 2
        self.world.write_hook = self.on_write
        self.world.judge(pod, "unpass")

    def on_write(self, what: str) -> None:
        if self.budget is not None:
            if self.budget == 0:
                raise Killed
            self.budget -= 1
        world = self.world
        if what == "continue":
            of_version = world.version in world.releases and world.held_version == world.version
            status = world.status()
            if of_version and status.status == SUSPEND and not status.resumption.since_unix:
                assert self.continues, "the rollout of a failed version continues"
                assert status.pause.ended, "the rollout continues before the end of its pause"
        if what == "release again":
            assert not (world.held and not world.paused and not self.requested()), "a person continued the rollout"
            assert not (world.paused_again and not self.requested()), "a person paused the rollout"

    def requested(self) -> bool:
        return self.world.status().rollback_requested

    def reconcile(self, seconds: float = 0.0) -> None:
        try:
            self.world.run(seconds)
        except Killed:
            self.world.die()
        finally:
            self.budget = None

    @rule(seconds=st.sampled_from([10.0, SECONDS - 1.0, SECONDS + 1.0]))
    def time_passes(self, seconds: float) -> None:
        self.reconcile(seconds)

    @rule(seconds=st.sampled_from([1.0, 2.0 * SECONDS]))
    def time_passes_without_a_leader(self, seconds: float) -> None:
        self.world.die()
        self.world.advance(seconds)
        self.reconcile()

    @rule(budget=st.integers(0, 6))
    def the_next_leader_dies_after_some_writes(self, budget: int) -> None:
        self.budget = budget

    @rule(pick=st.integers(0, 9), verdict=st.sampled_from(["unpass", "unpass", "unpass", "pass", ""]))
    def a_person_judges(self, pick: int, verdict: str) -> None:
        pods = self.world.of(self.world.image)
        if pods:
            self.world.judge(pods[pick % len(pods)], verdict)
            self.reconcile()

    @rule(pick=st.integers(0, 9), up=st.booleans())
    def a_pod_is_evicted(self, pick: int, up: bool) -> None:
        world = self.world
        pods = world.of(world.image)
        if pods:
            world.remove(pods[pick % len(pods)])
            self.reconcile()
            (successor,) = world.make(1)
            if up:
                world.up(successor)
            self.reconcile()

    @rule()
    def all_pods_of_the_version_are_gone(self) -> None:
        self.world.remove(*self.world.of(self.world.image))
        self.reconcile()

    @rule(verb=st.sampled_from(["Approve", "Resume", "Retry", "Repair", "Rollback"]))
    def a_person_asks(self, verb: str) -> None:
        self.world.request(verb)
        self.reconcile()

    @rule(again=st.booleans())
    def a_person_continues_the_rollout(self, again: bool) -> None:
        if self.world.held:
            self.world.paused = self.world.paused_again = again
            self.reconcile()

    @rule(on=st.booleans())
    def the_setting_rollback_changes(self, on: bool) -> None:
        self.world.settings = Settings(rollback=on)
        self.reconcile()

    @rule()
    def another_version_is_released(self) -> None:
        self.versions += 1
        world = self.world
        world.own_labels[labels.IGNORED_SUSPEND] = "true"
        world.paused_again = False
        world.release(f"v{self.versions}")
        self.reconcile()
        world.make_up(1)
        self.reconcile()

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        world, self.budget = self.world, None
        world.run(3 * SECONDS)
        status = world.status()
        if world.held and world.paused and status.status == SUSPEND and world.held_version == world.version:
            assert not self.continues or world.paused_again, "the pause has not ended"
            assert status.pause.ended, "the pause has not ended and does not tell why"
        looks = world.looks
        world.run(3 * SECONDS)
        assert world.looks == looks, "the end of a pause is tried again and again"


TestPauses = Pauses.TestCase
TestPauses.settings = random_runs(200, steps=10)
