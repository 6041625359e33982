"""A DaemonSet that is released first to the pods on some nodes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from altershield.api import labels
from altershield.api.rollout import Phase, Rollout, RolloutStatus, Step
from altershield.rollout.steps import selects_nodes, steps_of
from altershield.rollout.waits import NO_WAITS, Waits
from altershield.workloads.hold import STEPS, Cause, Hold
from altershield.workloads.pods import Pod
from reconciler.rollout.draft import Progress
from reconciler.rollout.evictions import Fleet, evictions
from reconciler.rollout.node_sets import node_sets
from reconciler.rollout.progress import progress, promoted
from reconciler.rollout.view import View
from tests.unit.altershield.workloads import objects

BASE, NEW = "0" * 32, "1" * 32
CANARY = {"pool": "canary"}
ROLLOUT = Rollout(steps=(Step(soak_seconds=60, node_selector=CANARY), Step("50%", 60)))


@dataclass
class Fleetwide:
    """A DaemonSet with one pod on each node. A pod whose node is ready comes up and passes at once."""

    canaries: int = 2
    others: int = 4
    rollout: Rollout = ROLLOUT
    most: int = 1
    now: float = 1_000.0
    status: RolloutStatus = field(default_factory=RolloutStatus)
    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    version: dict[str, str] = field(default_factory=dict)
    """The version of the pod of each node."""
    lost: set[str] = field(default_factory=set)
    hold: Hold | None = None
    waits: Waits = NO_WAITS
    events: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        names = [f"canary-{each}" for each in range(self.canaries)] + [f"node-{each}" for each in range(self.others)]
        self.nodes = {name: dict(CANARY) if name.startswith("canary") else {} for name in names}
        self.version = dict.fromkeys(names, BASE)
        self.hold = Hold(NEW, (Cause(STEPS),), base=BASE, rollout=self.rollout, replicas=len(names), write=1)

    def pods(self, version: str) -> list[Pod]:
        return [
            objects.pod(
                name=name, uid=name, labels={labels.VERSION: version}, spec={"nodeName": name},
                status={"conditions": [objects.condition("Ready", name not in self.lost)]},
            )
            for name, own in self.version.items() if own == version
        ]  # fmt: skip

    def ready(self, pod: Pod) -> bool:
        return pod.node not in self.lost

    @property
    def view(self) -> View:
        new, old, replicas, number = self.pods(NEW), self.pods(BASE), len(self.nodes), self.status.step
        up = sum(map(self.ready, new))
        allowed = self.hold.pods if self.hold is not None else 0
        sets = node_sets(
            steps_of(self.rollout)[: number + 1], replicas, updated=new, older=old, nodes=self.nodes,
            on_ready_node=self.ready,
        )  # fmt: skip
        names = sets[number - 1].names if number else ()
        evictable = evictions(
            Fleet(replicas, len(new), up, tuple(old), ending=0, min_ready=0, now=self.now),
            most=self.most, base=BASE, on_ready_node=self.ready,
            allowed=0 if number and selects_nodes(self.rollout, number) else allowed,
            selected=(lambda pod: pod.node in names) if names else None, at_least=0,
        )  # fmt: skip
        lost = tuple(sorted(pod.node for pod in new if not self.ready(pod)))
        kept = tuple(sorted(pod.node for pod in old if not self.ready(pod)))
        return View(
            rollout=self.rollout, version=NEW, replicas=replicas, reach=replicas, hold=self.hold, at_once=None,
            pods=len(new), older=len(old), up=up, passed=up, complete=0 < up == len(new) and len(new) >= allowed,
            failed=False, evictable=evictable if self.hold is not None else (), node_sets=sets,
            waits=self.waits, lost_nodes=lost, kept_nodes=kept,
        )  # fmt: skip

    def reconcile(self) -> Progress:
        view = self.view
        found = progress(self.status, view, self.now)
        assert progress(self.status, view, self.now) == found
        self.status = found.status
        self.events += [each.message for each in found.events]
        if found.new_hold is not None and self.hold is not None:
            cause = Cause(STEPS, pods=found.new_hold.pods)
            self.hold = msgspec.structs.replace(self.hold, causes=(cause,), replicas=found.new_hold.replicas)
        if found.ends_hold:
            self.hold = None
            self.version = dict.fromkeys(self.version, NEW)
        down = len(self.lost)
        for pod in found.evicts:
            assert pod.node not in self.lost
            if selects_nodes(self.rollout, self.status.step):
                assert CANARY.items() <= self.nodes[pod.node].items()
            self.version[pod.node] = NEW
        assert not found.evicts or down + len(found.evicts) <= self.most
        return found

    def settle(self, times: int = 30) -> None:
        for _ in range(times):
            self.reconcile()

    @property
    def updated(self) -> list[str]:
        return sorted(name for name, version in self.version.items() if version == NEW)


def test_selected_nodes_are_first_then_a_share_of_all_then_all() -> None:
    world = Fleetwide()
    reached = []
    for _ in range(3):
        world.settle()
        reached.append((world.status.step, world.status.phase, world.status.pods, world.updated))
        world.now += 60
    canaries = ["canary-0", "canary-1"]
    assert reached[0] == (1, Phase.SOAKING, 2, canaries)
    assert reached[1] == (2, Phase.SOAKING, 3, [*canaries, "node-0"])
    assert (reached[2][1], len(reached[2][3])) == (Phase.DONE, 6)
    assert [each.pods for each in world.status.passed_steps] == [2, 3, 6]
    assert "step 1 of 3: 2 of 6 pods get version" in world.events[0]
    assert "nodes with the labels pool=canary" in world.events[0]


def test_selected_nodes_may_be_those_of_the_second_step() -> None:
    world = Fleetwide(rollout=Rollout(steps=(Step(1, 0), *ROLLOUT.steps)))
    world.settle()
    assert (world.status.step, world.status.phase, world.updated) == (2, Phase.SOAKING, ["canary-0", "canary-1"])
    assert "step 2 of 4: 2 of 6 pods get version" in world.events[2]


def test_step_without_nodes_waits_until_a_node_is_labelled() -> None:
    world = Fleetwide(canaries=0)
    world.settle()
    assert (world.status.phase, world.status.waiting_for, world.updated) == (Phase.HELD, ("nodeSelector",), [])
    assert "no ready node with the labels of its nodeSelector" in world.events[-1]
    world.now += 100_000
    assert not world.reconcile().overdue
    lone = Fleetwide(canaries=0, others=1)
    lone.settle()
    lone.version["node-0"] = NEW  # somebody deleted the old pod
    lone.settle()
    assert (lone.status.step, "is no longer held" in lone.events[-3]) == (3, True)
    world.nodes["node-2"] = dict(CANARY)
    world.settle()
    assert (world.status.phase, world.status.waiting_for, world.updated) == (Phase.SOAKING, (), ["node-2"])


def test_step_without_nodes_is_skipped_by_a_promotion() -> None:
    world = Fleetwide(canaries=0)
    world.settle()
    found = promoted(world.status, world.view, "anna", world.now, full=False)
    assert isinstance(found, Progress)
    world.status = found.status
    world.settle()
    assert (world.status.step, world.status.phase, len(world.updated)) == (2, Phase.SOAKING, 2)
    assert (world.status.passed_steps[0].pods, world.status.passed_steps[0].promoted_by) == (0, "anna")


def test_promotion_skips_a_step_without_nodes_only_after_the_checks_before_it() -> None:
    world = Fleetwide(canaries=0, waits=Waits(("PreRelease",)))
    world.settle()
    assert world.status.waiting_for == ("nodeSelector", "check")
    found = promoted(world.status, world.view, "anna", world.now, full=True)
    assert isinstance(found, Progress)
    assert found.status.step == 1
    assert isinstance(promoted(world.status, world.view, "anna", world.now, full=False), str)
    world.waits = Waits(("PreRelease",), frozenset({("PreRelease", 1)}))
    world.settle()
    skipped = promoted(world.status, world.view, "anna", world.now, full=False)
    assert isinstance(skipped, Progress)
    assert skipped.status.step == 2


def test_selected_node_that_is_not_ready_keeps_its_pod_until_it_is_ready() -> None:
    world = Fleetwide(most=2, lost={"canary-1"})
    world.settle()
    assert (world.status.phase, world.status.pods, world.updated) == (Phase.SOAKING, 1, ["canary-0"])
    world.now += 59
    world.lost.clear()
    world.settle()
    assert (world.status.step, world.status.phase, world.status.pods) == (1, Phase.SOAKING, 2)
    assert world.updated == ["canary-0", "canary-1"]
    assert world.status.soak_end_time_unix == world.now + 60


def test_selected_node_that_is_ready_again_after_its_step_is_the_first_of_the_next_one() -> None:
    world = Fleetwide(most=2, lost={"canary-1"})
    world.settle()
    world.now += 60
    world.reconcile()
    world.lost.clear()
    world.settle()
    assert (world.status.step, world.status.phase) == (2, Phase.SOAKING)
    assert world.updated == ["canary-0", "canary-1", "node-0"]


def test_node_that_joins_elsewhere_takes_no_place_of_a_selected_one() -> None:
    world = Fleetwide()
    world.nodes["joined"], world.version["joined"] = {}, NEW
    world.settle()
    assert (world.status.phase, world.updated) == (Phase.SOAKING, ["canary-0", "canary-1", "joined"])


def test_node_that_is_labelled_in_the_soak_belongs_to_the_step_and_all_soak_anew() -> None:
    world = Fleetwide()
    world.settle()
    world.now += 59
    world.nodes["node-3"] = dict(CANARY)
    world.settle()
    assert (world.status.step, world.status.phase) == (1, Phase.SOAKING)
    assert world.updated == ["canary-0", "canary-1", "node-3"]
    assert world.status.soak_end_time_unix == world.now + 60
    world.now += 4000
    del world.nodes["node-3"]["pool"]
    world.settle()
    assert (world.status.step, world.status.phase) == (2, Phase.SOAKING)


def test_selected_node_that_leaves_in_the_soak_is_not_waited_for() -> None:
    world = Fleetwide()
    world.settle()
    del world.nodes["canary-0"], world.version["canary-0"]
    world.now += 60
    world.settle()
    assert (world.status.step, world.status.pods, world.updated) == (2, 3, ["canary-1", "node-0", "node-1"])


def test_another_node_is_taken_for_one_that_leaves_in_the_soak() -> None:
    """It has a deadline of its own, although the soak was long."""
    world = Fleetwide(rollout=Rollout(pods=(2,), soak_seconds=100_000, step_deadline_seconds=60))
    world.settle()
    assert world.updated == ["canary-0", "canary-1"]
    world.now += 50_000
    del world.nodes["canary-0"], world.version["canary-0"]
    assert not world.reconcile().overdue
    world.settle()
    assert (world.status.phase, world.updated) == (Phase.SOAKING, ["canary-1", "node-0"])
    assert world.status.soak_end_time_unix == world.now + 100_000


def test_step_whose_node_is_lost_waits_for_it_and_its_deadline_does_not_run() -> None:
    world = Fleetwide(rollout=Rollout(pods=(1,), soak_seconds=60, step_deadline_seconds=60))
    world.settle()
    assert world.updated == ["canary-0"]
    world.lost.add("canary-0")
    world.reconcile()
    assert (world.status.phase, world.status.waiting_for) == (Phase.SOAKING, ("node",))
    assert "a node that is not ready has a pod of this step" in world.events[-1]
    assert world.events[-1].endswith("(canary-0)")
    world.now += 10_000
    assert not world.reconcile().overdue
    assert (world.status.step, world.updated) == (1, ["canary-0"]), "the own maxUnavailable is used up"
    del world.nodes["canary-0"], world.version["canary-0"]
    world.lost.clear()
    world.settle()
    assert (world.status.phase, world.status.waiting_for, world.updated) == (Phase.SOAKING, (), ["canary-1"])


def test_step_that_is_left_with_nodes_that_are_not_ready_waits_for_them() -> None:
    world = Fleetwide(2, 0, rollout=Rollout(pods=(2,), step_deadline_seconds=60), most=2, lost={"canary-1"})
    world.settle()
    assert (world.status.phase, world.status.waiting_for, world.updated) == (Phase.ROLLING, ("node",), ["canary-0"])
    world.now += 10_000
    assert not world.reconcile().overdue
    world.lost.clear()
    world.settle()
    assert (world.status.phase, world.updated) == (Phase.SOAKING, ["canary-0", "canary-1"])


def test_node_that_the_step_does_not_need_is_not_waited_for() -> None:
    world = Fleetwide(rollout=Rollout(pods=(1,)), most=2, lost={"node-0"})
    world.settle()
    assert (world.status.phase, world.status.waiting_for) == (Phase.SOAKING, ())


def test_release_that_replaces_a_held_one_begins_with_the_selected_nodes() -> None:
    world = Fleetwide()
    assert world.hold is not None
    world.hold = msgspec.structs.replace(world.hold, at_least=3, causes=(Cause(STEPS, pods=3),))
    world.reconcile()
    assert (world.status.step, world.status.phase, world.status.pods) == (1, Phase.ROLLING, 3)


ACTIONS = ("tick", "join", "leave", "label", "unlabel", "lose", "find")


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 4), st.integers(1, 6), st.integers(1, 3), st.booleans(),
    st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 60)), max_size=40),
)  # fmt: skip
def test_nodes_that_come_and_go_break_no_bound_and_the_release_ends(
    canaries: int, others: int, most: int, number_first: bool, actions: Sequence[tuple[str, int]]
) -> None:
    steps = tuple(reversed(ROLLOUT.steps)) if number_first else ROLLOUT.steps
    world = Fleetwide(canaries, others, rollout=Rollout(steps=steps), most=most)
    for action, number in actions:
        name = sorted(world.nodes)[number % len(world.nodes)] if world.nodes else ""
        match action:
            case "tick":
                world.now += number
            case "join":
                joined = f"joined-{len(world.version)}-{number}"
                world.nodes[joined] = dict(CANARY) if number % 2 else {}
                world.version.setdefault(joined, NEW)
            case "leave" if len(world.nodes) > 1:
                world.lost.discard(name)
                del world.nodes[name], world.version[name]
            case "label":
                world.nodes[name] = dict(CANARY)
            case "unlabel":
                world.nodes[name] = {}
            case "lose" if world.hold is not None:
                world.lost.add(name)
            case "find":
                world.lost.clear()
        world.reconcile()
    world.lost.clear()
    if not any(world.nodes.values()):
        world.nodes[min(world.nodes)] = dict(CANARY)
    for _ in range(400):
        assert not world.reconcile().overdue
        world.now += 1
    assert (world.status.phase, world.hold) == (Phase.DONE, None)
