"""How a release in steps is admitted: the hold begins, stays, and ends with the user's own values."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api.check_specs import CheckPhase, CheckSpec
from altershield.api.rollout import Rollout
from altershield.rollout.admission import State, Wanted, admit
from altershield.rollout.waits import waits_of
from altershield.workloads.held import NEVER_AVAILABLE, NO_DEADLINE, in_force, plain, with_values
from altershield.workloads.hold import Hold
from tests.support.workloads import BY_NAME

from .world import SPECS, STEPS, World, fields_of

KINDS = sorted(SPECS)
every_kind = pytest.mark.parametrize("kind", KINDS)
SURGE, UNAVAILABLE = "/spec/strategy/rollingUpdate/maxSurge", "/spec/strategy/rollingUpdate/maxUnavailable"


def held(kind: str, **options: Any) -> World:
    world = World(kind, SPECS[kind], **options)
    world.request(version="2")
    assert world.hold is not None
    return world


def edited(kind: str, spec: Any) -> Any:
    """Another value of a field of the user."""
    path, value = {
        "Deployment": (SURGE, 2),
        "StatefulSet": ("/spec/updateStrategy/rollingUpdate/partition", 3),
        "DaemonSet": ("/spec/updateStrategy/type", "Other"),
        "CloneSet": ("/spec/updateStrategy/partition", 3),
    }[kind]
    return with_values(spec, {path: value})


@every_kind
def test_release_is_held_at_its_first_step_and_ends_with_the_users_own_values(kind: str) -> None:
    world = held(kind)
    assert world.hold is not None
    assert (world.hold.base, world.hold.version, world.hold.policy) == ("1", "2", "shop/web@1")
    assert (world.hold.pods, world.hold.replicas, world.hold.write) == (1, 10, 1)
    assert world.hold.fields == fields_of(kind, SPECS[kind])
    assert fields_of(kind, world.spec) == in_force(BY_NAME[kind], world.hold)
    world.step(3)
    assert world.hold.pods == 3
    world.finish()
    assert (json.dumps(world.spec, sort_keys=True), world.annotation) == (
        json.dumps(SPECS[kind], sort_keys=True),
        None,
    )


@every_kind
def test_going_back_and_the_base_by_anybody_end_the_hold(kind: str) -> None:
    for back in (lambda world: world.finish("1"), lambda world: world.request(version="1")):
        world = held(kind)
        back(world)
        assert (world.spec, world.annotation, world.version) == (SPECS[kind], None, "1")


@every_kind
def test_another_version_begins_again_with_the_pods_of_the_failed_one(kind: str) -> None:
    world = held(kind)
    world.step(3)
    world.request(version="3")
    assert world.hold is not None
    assert (world.hold.base, world.hold.version, world.hold.pods) == ("1", "3", 3)
    assert world.hold.fields == fields_of(kind, SPECS[kind])
    world.request(version="1")
    assert (world.spec, world.annotation) == (SPECS[kind], None)


@every_kind
def test_release_without_steps_while_another_is_held_ends_the_hold(kind: str) -> None:
    world = held(kind)
    world.wanted = None
    world.request(version="3")
    assert (world.spec, world.annotation) == (SPECS[kind], None)


@every_kind
def test_edited_field_takes_effect_when_the_release_is_over(kind: str) -> None:
    world = held(kind)
    before = fields_of(kind, world.spec)
    answer = world.request(spec=edited(kind, world.spec))
    assert answer is not None
    assert len(answer.edited) == 1
    assert world.hold is not None
    assert (world.hold.write, world.hold.pods) == (2, 1)
    if kind in ("Deployment", "DaemonSet"):
        assert fields_of(kind, world.spec) == before
    world.finish()
    assert world.spec == edited(kind, SPECS[kind])


@every_kind
def test_value_that_the_field_has_already_is_the_users_if_it_is_newly_applied(kind: str) -> None:
    world = held(kind)
    before, own = fields_of(kind, world.spec), fields_of(kind, SPECS[kind])
    world.applied = {path: value for path, value in before.items() if value != own[path]}
    new = {path: value for path, value in world.applied.items() if value not in (NEVER_AVAILABLE, NO_DEADLINE)}
    world.request()
    world.applied = {}
    world.request()
    assert world.hold is not None
    assert world.hold.fields == {**own, **new} != own
    world.finish()
    assert fields_of(kind, world.spec) == {**own, **new}


@every_kind
@pytest.mark.parametrize("text", [None, "", "{}", "no JSON", '{"causes": [{"by": "pause"}], "version": "2"}', "[]"])
def test_annotation_that_somebody_changes_comes_back(kind: str, text: str | None) -> None:
    world = held(kind)
    before = world.state
    answer = world.request(annotation=text)
    assert answer is not None
    assert answer.restored
    assert world.state == before


@every_kind
def test_more_pods_by_somebody_else_have_no_effect(kind: str) -> None:
    world = held(kind)
    before = world.state
    known = json.loads(world.annotation or "")
    for name, value in (("write", 2), ("version", "9"), ("base", "2"), ("replicas", 5), ("policy", "a/b@1")):
        world.request(annotation=json.dumps({**known, name: value}))
        assert world.state == before, name
    more = {**known, "causes": [{**known["causes"][0], "pods": 10}]}
    world.request(annotation=json.dumps(more))
    assert world.state == before
    world.request(annotation=json.dumps(more), version="3")
    assert world.hold is not None
    assert (world.hold.version, world.hold.pods, world.hold.base) == ("3", 1, "1")


@every_kind
def test_undo_with_a_stale_annotation_is_held_or_ends_the_hold(kind: str) -> None:
    """`kubectl rollout undo` brings back the annotations of the old ReplicaSet."""
    world = held(kind)
    stale = world.annotation
    world.step(3)
    world.finish()
    world.request(version="3", annotation=stale)
    assert world.hold is not None
    assert (world.hold.version, world.hold.base, world.hold.pods) == ("3", "2", 1)
    assert world.hold.fields == fields_of(kind, SPECS[kind])
    world.request(version="2", annotation=stale)
    assert (world.spec, world.annotation) == (SPECS[kind], None)
    world.request(annotation=stale)
    assert (world.spec, world.annotation) == (SPECS[kind], None)


@every_kind
def test_copy_of_a_held_workload_has_the_values_of_its_user(kind: str) -> None:
    copy = held(kind)
    fresh = World(kind, {})
    for old in (None, State(None, SPECS[kind])):
        found = admit(fresh.change(old, copy.state, "1", by_reconciler=False))
        assert found is not None
        assert (found.annotation, found.hold, found.restored) == (None, None, True)
        assert found.spec == SPECS[kind]
    another = World(kind, SPECS[kind], version="7")
    another.request(spec=copy.spec, annotation=copy.annotation, version="2")
    assert another.hold is not None
    assert (another.hold.base, another.hold.fields) == ("7", fields_of(kind, SPECS[kind]))


@every_kind
def test_pause_after_a_failure_ends_with_the_next_release_in_steps(kind: str) -> None:
    world = World(kind, SPECS[kind])
    world.pause()
    assert world.spec != SPECS[kind]
    world.request(version="2")
    assert world.hold is not None
    assert world.hold.fields == fields_of(kind, SPECS[kind])
    world.finish()
    assert world.spec == SPECS[kind]


def test_release_that_cannot_be_held_leaves_the_pause_but_no_reserved_value() -> None:
    world = World("Deployment", SPECS["Deployment"])
    world.pause()
    before = world.annotation
    spec = {**world.spec, "strategy": {"type": "Recreate"}}
    world.request(version="2", spec={**spec, "minReadySeconds": NEVER_AVAILABLE})
    assert (world.annotation, world.spec.get("minReadySeconds", 0)) == (before, 0)


@every_kind
def test_pause_that_nobody_ends_is_left_alone(kind: str) -> None:
    world = World(kind, SPECS[kind])
    world.pause()
    before = world.state
    for annotation in ("kept", None):
        world.request(annotation=annotation)
        assert world.state == State(before.annotation if annotation else None, before.spec)


@every_kind
def test_other_webhook_in_between_changes_the_template(kind: str) -> None:
    world = World(kind, SPECS[kind])
    world.request(version="2", injected="2-with-sidecar")
    assert world.hold is not None
    assert (world.hold.version, world.hold.fields) == ("2-with-sidecar", fields_of(kind, SPECS[kind]))


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "CloneSet"])
def test_other_webhook_in_between_changes_a_field(kind: str) -> None:
    other = World(kind, SPECS[kind])
    other.request(version="2", other=lambda state: State(state.annotation, edited(kind, state.spec)))
    assert other.hold is not None
    assert other.hold.fields == fields_of(kind, edited(kind, SPECS[kind]))


def test_other_webhook_in_between_changes_how_many_pods_are_first() -> None:
    spec = with_values(SPECS["Deployment"], {SURGE: 0, UNAVAILABLE: 1})
    other = World("Deployment", spec, wanted=Wanted(Rollout(pods=(2,)), "shop/web@1"), replicas=2)
    changed = with_values(spec, {SURGE: 1})
    other.request(version="2", other=lambda state: State(state.annotation, with_values(state.spec, {SURGE: 1})))
    assert other.hold is not None
    assert (other.hold.pods, other.hold.fields) == (2, fields_of("Deployment", changed))
    assert fields_of("Deployment", other.spec) == in_force(BY_NAME["Deployment"], other.hold)


def test_reserved_values_are_never_those_of_a_user() -> None:
    spec = {**SPECS["Deployment"], "minReadySeconds": NEVER_AVAILABLE, "progressDeadlineSeconds": NO_DEADLINE}
    plain = {**SPECS["Deployment"], "minReadySeconds": 0}
    world = World("Deployment", spec)
    world.request()
    assert world.spec == plain
    world = World("Deployment", spec)
    world.request(version="2")
    world.finish()
    assert world.spec == plain
    world = held("Deployment")
    world.request(spec=with_values(spec, {UNAVAILABLE: 7}))
    world.finish()
    assert world.spec == with_values(SPECS["Deployment"], {UNAVAILABLE: 7})


@every_kind
def test_fields_written_while_no_gatekeeper_answered_are_held_again_however_often_the_handler_is_called(
    kind: str,
) -> None:
    world = held(kind)
    before = world.spec
    world.spec = SPECS[kind]
    world.request()
    assert world.spec == before
    world.finish()
    assert world.spec == SPECS[kind]


def test_strategy_that_is_edited_while_held_gives_the_step_no_further_pods() -> None:
    world = World("Deployment", with_values(SPECS["Deployment"], {SURGE: 0, UNAVAILABLE: 2}))
    world.request(version="2")
    before = world.spec
    for edit in ({SURGE: 2, UNAVAILABLE: 0}, {SURGE: 3}):
        world.request(spec=with_values(world.spec, edit))
        assert world.spec == before
    world.finish()
    assert fields_of("Deployment", world.spec)[SURGE] == 3
    world.request(version="3")
    assert world.hold is not None
    assert (world.hold.before, fields_of("Deployment", world.spec)[SURGE]) == ({}, 1)


def test_switch_to_recreate_while_held_is_in_force_afterwards() -> None:
    world = held("Deployment")
    recreate = {**SPECS["Deployment"], "strategy": {"type": "Recreate"}}
    world.request(spec=recreate)
    assert world.spec["strategy"]["type"] == "RollingUpdate"
    world.finish()
    assert world.spec == recreate


def test_own_pause_is_in_force_at_once_unless_the_release_waits_with_no_pod() -> None:
    world = held("Deployment")
    for spec in ({**SPECS["Deployment"], "paused": True}, SPECS["Deployment"]):
        answer = world.request(spec=spec)
        assert answer is not None
        assert (answer.edited, world.spec.get("paused")) == ((), spec.get("paused"))
    world.step(0)
    answer = world.request(spec={**world.spec, "paused": False})
    assert answer is not None
    assert (answer.edited, world.spec.get("paused")) == (("/spec/paused",), True)


def test_release_that_cannot_be_held_is_not() -> None:
    spec = {**SPECS["Deployment"], "strategy": {"type": "Recreate"}}
    world = World("Deployment", spec)
    answer = world.request(version="2")
    assert answer is not None
    assert (answer.obstacle, answer.hold, world.spec, world.annotation) == (
        "its strategy is Recreate",
        None,
        spec,
        None,
    )
    world = held("Deployment")
    world.request(spec=spec, version="3")
    assert (world.spec, world.annotation) == (spec, None)


def test_first_step_takes_no_more_pods_away_than_the_own_strategy_does() -> None:
    spec = with_values(SPECS["Deployment"], {SURGE: 0, UNAVAILABLE: 1})
    world = World("Deployment", spec, wanted=Wanted(Rollout(pods=(5,)), "shop/web@1"))
    world.request(version="2")
    assert world.hold is not None
    assert world.hold.pods == 1
    assert fields_of("Deployment", world.spec)[UNAVAILABLE] == "10%"


@every_kind
def test_annotation_of_a_later_version_stays_as_it_is(kind: str) -> None:
    world = held(kind)
    world.annotation = json.dumps({**json.loads(world.annotation or ""), "later": {"a": 1}})
    before = world.state
    world.request()
    world.request(spec=SPECS[kind])
    assert world.state == before
    world.request(spec=edited(kind, world.spec))
    assert world.annotation is not None
    assert json.loads(world.annotation)["later"] == {"a": 1}


def test_user_field_written_while_no_gatekeeper_answered_is_the_users() -> None:
    world = held("Deployment")
    world.spec = with_values(world.spec, {SURGE: 2})
    world.request()
    assert world.hold is not None
    assert world.hold.fields[SURGE] == 2
    assert fields_of("Deployment", world.spec)[SURGE] == 1


# any order of requests

numbers = st.integers(0, 12) | st.sampled_from(["0%", "10%", "25%", "100%"])
FIELDS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "Deployment": st.fixed_dictionaries(
        {},
        optional={
            "/spec/paused": st.sampled_from([True, None]),
            "/spec/minReadySeconds": st.sampled_from([None, 5, NEVER_AVAILABLE]),
            "/spec/progressDeadlineSeconds": st.sampled_from([600, 30, NO_DEADLINE]),
            SURGE: numbers,
            UNAVAILABLE: numbers,
        },
    ),
    "StatefulSet": st.fixed_dictionaries(
        {}, optional={"/spec/updateStrategy/rollingUpdate/partition": st.integers(0, 12)}
    ),
    "DaemonSet": st.fixed_dictionaries({}, optional={"/spec/updateStrategy/type": st.just("RollingUpdate")}),
    "CloneSet": st.fixed_dictionaries(
        {},
        optional={
            "/spec/updateStrategy/type": st.sampled_from(["ReCreate", "InPlaceIfPossible"]),
            "/spec/updateStrategy/partition": numbers,
        },
    ),
}
ANNOTATIONS = ("kept", "kept", "dropped", "garbage", "stale", "more pods")
requests = st.tuples(
    st.sampled_from(["release", "base", "apply", "edit", "step", "finish", "back", "none", "scale", "no policy"]),
    st.sampled_from(ANNOTATIONS),
    st.integers(0, 12),
    st.booleans(),
)


class Run:
    """Requests in any order, and the values that the user has given the fields."""

    def __init__(self, kind: str, first: dict[str, Any]) -> None:
        self.kind = kind
        self.world = World(kind, with_values(SPECS[kind], self.unreserved(first)))
        self.own = fields_of(kind, self.world.spec)
        self.stale: str | None = None
        self.number = 1

    @staticmethod
    def unreserved(fields: dict[str, Any]) -> dict[str, Any]:
        return {path: value for path, value in fields.items() if value not in (NEVER_AVAILABLE, NO_DEADLINE)}

    def sent(self, which: str, fields: dict[str, Any]) -> str | None:
        known = self.world.annotation
        if which == "stale" and known is None and self.stale is not None:
            # a user's values that are those of a hold cannot be told from a copy of the held workload
            of_copy = in_force(BY_NAME[self.kind], msgspec.json.decode(self.stale, type=Hold))
            if fields_of(self.kind, with_values(self.world.spec, fields)) == dict(of_copy):
                return "kept"
        if which == "more pods" and known is not None:
            more = json.loads(known)
            more["causes"][0]["pods"] = 11
            return json.dumps(more)
        return {"dropped": None, "garbage": "{", "stale": self.stale}.get(which, "kept")

    def step(self, what: str, annotation: str, number: int, injects: bool, fields: dict[str, Any]) -> None:
        world, held = self.world, self.world.hold
        self.stale = world.annotation or self.stale
        self.number += 1
        version, injected = f"v{self.number}", f"v{self.number}-injected" if injects else ""
        sent = self.sent(annotation, fields)
        if what == "release":
            world.request(version=version, annotation=sent, injected=injected)
        elif what == "base" and held is not None:
            world.request(version=held.base, annotation=sent)
            assert world.hold is None
        elif what == "apply":  # the whole manifest
            spec = with_values(world.spec, self.own)
            world.request(spec=spec, version=version if number % 2 else "", annotation=sent)
        elif what == "edit":
            stored = fields_of(self.kind, world.spec)
            # a value that is in force already cannot be told from one that is not sent
            fields = {path: value for path, value in fields.items() if value != stored[path]}
            self.own |= plain(fields) if held is None else self.unreserved(fields)
            world.request(spec=with_values(world.spec, fields), annotation=sent)
        elif what == "step" and held is not None:
            world.step(number)
        elif what == "finish" and held is not None:
            world.finish()
        elif what == "back" and held is not None:
            world.finish(held.base)
        elif what == "scale":
            world.replicas = number
        elif what == "no policy":
            world.wanted = None if world.wanted is not None else World(self.kind, {}).wanted
        else:
            world.request(annotation=sent)
        self.check(held is not None)

    def check(self, was_held: bool) -> None:
        world, found = self.world, fields_of(self.kind, self.world.spec)
        if world.hold is not None:
            assert world.hold.fields == self.own
            assert found == in_force(BY_NAME[self.kind], world.hold)
            return
        assert world.annotation is None
        if was_held:
            assert found == self.own


@every_kind
@given(st.data())
def test_fields_are_the_users_own_after_any_requests(kind: str, data: st.DataObject) -> None:
    run = Run(kind, data.draw(FIELDS[kind]))
    for what, annotation, number, injects in data.draw(st.lists(requests, max_size=12)):
        run.step(what, annotation, number, injects, data.draw(FIELDS[kind]) if what == "edit" else {})
    if run.world.hold is not None:
        run.world.finish()
        run.check(was_held=True)


def test_hold_in_the_annotation_is_small() -> None:
    world = held("Deployment")
    assert len(world.annotation or "") < 600
    assert msgspec.json.decode(world.annotation or "")["rollout"] == {"pods": [1, "30%"]}


@every_kind
def test_release_that_waits_for_a_check_begins_without_pods(kind: str) -> None:
    waits = waits_of([CheckSpec("smoke", phase=CheckPhase.PRE_RELEASE)])
    world = World(kind, SPECS[kind], wanted=Wanted(STEPS, "shop/web@1", waits))
    before = world.spec
    world.request(version="2")
    assert world.hold is not None
    assert world.hold.pods == 0
    world.step(1)
    assert world.hold.pods == 1
    world.request(version="3")
    assert (world.hold.pods, world.hold.at_least, world.hold.base) == (0, 1, "1")
    world.request(version="1")
    assert (world.hold, world.spec) == (None, before)
