"""What a release in steps stores, writes and says: all of it, reconcile by reconcile, for a few stories.

A line of `stories.txt` is one reconcile: the seconds since the begin, what changed in the status, the Events, and what
else follows.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from altershield.api.rollout import Rollout, RolloutStatus, Step, WaitingFor
from altershield.rollout.waits import NO_WAITS, Waits
from altershield.workloads.hold import Hold
from reconciler.rollout.draft import Progress
from reconciler.rollout.progress import promoted
from reconciler.rollout.view import View
from tests.unit.altershield.workloads.objects import pod
from tests.unit.reconciler.rollout.world import World, checked, passes_up_to

BEGIN = 1_000
_TEXTS = ("phaseTime", "soakEndTime")
_STEPS = Rollout(steps=(Step(1, 60), Step("30%", 0, approval=True)), step_deadline_seconds=100)


@dataclass
class Story(World):
    """`more`: further fields of the view."""

    more: dict[str, Any] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    @property
    def view(self) -> View:
        return replace(super().view, **self.more)

    def reconcile(self) -> Progress:
        before = self.status
        found = super().reconcile()
        self.lines.append(" | ".join(self._told(before, found)))
        return found

    def go(self, seconds: float = 0, **fields: Any) -> None:
        """Time passes, something changes, and the reconciler looks until nothing more follows."""
        self.now += seconds
        for name, value in fields.items():
            setattr(self, name, value)
        assert any(self.reconcile().wake != self.now for _ in range(10)), "more follows without end"

    def promote(self, *, full: bool = False) -> None:
        found = promoted(self.status, self.view, "anna", self.now, full=full)
        if isinstance(found, str):
            self.lines.append(f"{self.now - BEGIN:g} refused: {found}")
            return
        self.lines.append(" | ".join(self._told(self.status, found)))
        self.status = found.status

    def hold_by(self, name: str) -> None:
        self.status = msgspec.structs.replace(self.status, held_by=name)

    def refuse(self, known: Hold | None) -> None:
        """The API server refused the last write."""
        self.hold = known
        self.status = msgspec.structs.replace(self.status, waiting_for=("write",), waiting_since_unix=int(self.now))

    def _told(self, before: RolloutStatus, found: Progress) -> Iterator[str]:
        old, new = (self._plain(each) for each in (before, found.status))
        changed = [f"{name} {new[name]}" for name in new if new[name] != old.get(name)]
        gone = [f"no {name}" for name in old if name not in new]
        yield f"{self.now - BEGIN:g} {', '.join((*changed, *gone))}".strip()
        for event in found.events:
            yield f"{event.reason}{'!' * event.warning}: {event.message}"
        if found.new_hold is not None:
            each = found.new_hold
            yield f"hold {each.pods} of {each.replicas} {each.version}{' with surge' if each.surge else ''}"
        flags = {"ends the hold": found.ends_hold, "frees the fields": found.frees_fields, "evicts": found.evicts}
        yield from (name for name, is_set in flags.items() if is_set)
        if found.checks_said:
            yield f"said: {found.checks_said}"
        if found.overdue:
            yield f"overdue: {found.overdue}"
        if found.wake is not None:
            yield f"wake {found.wake - BEGIN:g}"

    def _plain(self, status: RolloutStatus) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.to_builtins(status)
        times = {name: value - BEGIN for name, value in found.items() if name.endswith("Unix") and value}
        passed = [
            f"{each['step']}: {each['pods']} by {each.get('promotedBy', 'itself')} "
            + "-".join(f"{value - BEGIN:g}" for name, value in each.items() if name.endswith("Unix"))
            for each in found.pop("passedSteps", ())
        ]
        texts = {name: found[name][11:19] for name in _TEXTS if name in found}
        return {**found, **times, **texts, **({"passed steps": passed} if passed else {})}


def steps_with_a_soak_and_an_approval() -> Story:
    story = Story(rollout=_STEPS)
    story.go()
    story.roll()
    story.go()
    story.go(59)
    story.go(1)
    story.roll()
    story.go()
    story.roll()
    story.go(10)
    story.roll()
    story.go(5)
    story.promote()
    story.go()
    story.roll()
    story.go(1)
    return story


def failure_in_the_soak_and_a_corrected_verdict() -> Story:
    story = Story(rollout=_STEPS)
    story.go()
    story.roll()
    story.go(5, waiting=(WaitingFor.QUOTA,))
    story.go(5, waiting=())
    story.go(5, failed=True)
    story.go(5)
    story.go(5, more={"follows": False})
    story.go(5, failed=False, more={})
    story.go()
    return story


def quota_and_the_deadline() -> Story:
    story = Story(rollout=_STEPS)
    story.go()
    story.go(10, waiting=(WaitingFor.QUOTA,))
    story.go(1_000, waiting=())
    story.go(99, more={"trouble": "1 of 1 pods is not ready"})
    return story


def checks_before_steps_and_promotions() -> Story:
    closed = {"gates": ("ReleaseFreeze shop/sale",), "opens_at": BEGIN + 1.0}  # of a gate that stops no later step
    story = Story(rollout=_STEPS, waits=checked(), said="smoke: no result", more=closed)
    story.go()
    story.go(10)
    story.hold_by("anna")
    story.go(5)
    story.promote()
    story.promote()
    story.go(5)
    story.go(1, waits=passes_up_to(1))
    story.promote()
    story.roll()
    story.go()
    story.promote()
    story.promote(full=True)
    story.go()
    story.go(5, waits=passes_up_to(2))
    story.roll()
    story.go()
    story.roll()
    story.go()
    return story


def gates_before_the_first_step() -> Story:
    story = Story(
        rollout=_STEPS,
        waits=Waits(begin=(WaitingFor.FREEZE,)),
        more={"gates": ("ReleaseFreeze shop/sale",), "opens_at": BEGIN + 50.0},
    )
    story.go()
    story.go(500, terminating=("web-1",))
    story.go(1, terminating=(), more={**story.more, "lost_nodes": ("n1",)})
    story.go(1, failed=True)
    story.go(1, failed=False)
    story.go(1, waits=NO_WAITS, more={})
    return story


def soaks_in_which_pods_restart_and_are_replaced() -> Story:
    story = Story(rollout=_STEPS)
    story.go()
    story.roll()
    story.go()
    story.go(60, oldest=BEGIN, steady=BEGIN + 60)
    story.go(30, oldest=BEGIN + 70, steady=BEGIN + 75)
    story.go(30)
    story.go(60)
    return story


def release_that_is_let_go_while_a_person_holds_it() -> Story:
    story = Story(rollout=_STEPS)
    story.go()
    story.roll()
    story.go()
    story.hold_by("ann")
    story.go(5)
    story.go(5, more={"let_go": "the setting rollout is off"})
    story.roll()
    story.go(5, more={})
    return story


def pods_that_are_evicted_and_nodes_that_are_lost() -> Story:
    story = Story(rollout=_STEPS)
    story.go()
    story.go(5, evictable=(pod(),), at_once=None)
    story.go(1, terminating=("web-1",), evictable=())
    story.go(5, more={"lost_nodes": ("n1", "n2", "n3", "n4")}, terminating=())
    story.go(5, more={})
    story.roll()
    story.go()
    story.go(5, evictable=(pod(),))
    story.go(5, evictable=())
    return story


def release_without_its_hold() -> Story:
    story = Story(rollout=_STEPS)
    story.go(1)
    story.go(1, hold=None)
    story.roll()
    story.go(1)
    return story


def release_that_is_let_go_at_first() -> Story:
    story = Story(rollout=_STEPS, more={"let_go": "the policy is gone"})
    story.go(1)
    return story


def pods_that_vanish_before_they_passed_and_one_that_is_evictable_later() -> Story:
    story = Story(rollout=_STEPS, more={"evictable_at": BEGIN + 7.0})
    story.go()
    story.go(pods=1)
    story.go(1, pods=0)
    return story


def pods_that_come_one_by_one_and_break_in_the_soak() -> Story:
    story = Story(rollout=Rollout(steps=(Step(3, 60), Step("100%", 60)), step_deadline_seconds=100))
    story.go()
    story.roll()
    story.hold_by("ann")
    story.go(5)
    story.promote()
    story.go(1, waiting=(WaitingFor.PAUSED,))
    known = story.hold
    story.go(1, waiting=())
    story.refuse(known)
    story.go(5)
    story.roll()
    story.go()
    story.go(1, up=0, passed=0)
    story.roll()
    story.go()
    story.hold_by("ann")
    story.go(60)
    story.go(5, passed=0)
    story.promote()
    story.promote()
    story.go()
    known = story.hold
    story.go(5, passed=3)
    story.refuse(known)
    story.go(5)
    story.roll()
    story.go(5, waiting=(WaitingFor.PAUSED,))
    story.go(5, waiting=())
    story.go(60)
    return story


def promotion_of_all_steps_while_a_pod_is_broken() -> Story:
    story = Story(rollout=Rollout(steps=(Step(1, 60), Step(2, 0, approval=True), Step("100%", 60))))
    story.go()
    story.roll()
    story.go()
    story.go(20, passed=0)
    story.promote(full=True)
    story.go(60, passed=1, steady=BEGIN + 75)
    story.roll()
    story.go()
    return story


def approval_of_all_steps_while_a_pod_is_broken() -> Story:
    story = Story(rollout=Rollout(steps=(Step(1, 0, approval=True),)))
    story.go()
    story.roll()
    story.reconcile()
    story.reconcile()
    story.go(20, passed=0)
    story.go(5, passed=1, steady=BEGIN + 25)
    story.go(5, passed=0)
    story.promote(full=True)
    story.go(5, passed=1)
    return story


def clock_that_goes_back() -> Story:
    story = Story(rollout=_STEPS)
    story.go()
    story.go(waiting=(WaitingFor.QUOTA,))
    story.roll()
    story.go(-100, waiting=())
    story.go(60, oldest=BEGIN - 50, steady=BEGIN - 50)
    story.go(10, evictable=(pod(),))
    return story


_TOLD = dict(
    re.findall(
        r"^# (.+)\n((?:.+\n)*)", (Path(__file__).parent / "stories.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
)


@pytest.mark.parametrize(
    "story",
    [
        steps_with_a_soak_and_an_approval,
        failure_in_the_soak_and_a_corrected_verdict,
        quota_and_the_deadline,
        checks_before_steps_and_promotions,
        gates_before_the_first_step,
        soaks_in_which_pods_restart_and_are_replaced,
        release_that_is_let_go_while_a_person_holds_it,
        pods_that_are_evicted_and_nodes_that_are_lost,
        release_without_its_hold,
        release_that_is_let_go_at_first,
        pods_that_vanish_before_they_passed_and_one_that_is_evictable_later,
        pods_that_come_one_by_one_and_break_in_the_soak,
        promotion_of_all_steps_while_a_pod_is_broken,
        approval_of_all_steps_while_a_pod_is_broken,
        clock_that_goes_back,
    ],
)
def test_story_is_told_as_it_is_written(story: Callable[[], Story]) -> None:
    assert "".join(f"{line}\n" for line in story().lines) == _TOLD[story.__name__.replace("_", " ")]
