"""The patches that hold a rollout and that take back exactly this."""

import json
from copy import deepcopy
from typing import Any

import jsonpatch
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api.annotations import PAUSED, ROLLOUT
from altershield.workloads import hold as holding
from altershield.workloads.hold import PAUSE, Cause, Hold
from altershield.workloads.workload import Strategy
from tests.support.workloads import BY_NAME

from . import objects

DEPLOYMENT = [{"op": "add", "path": "/spec/paused", "value": True}]
CLONE_SET = [{"op": "add", "path": "/spec/updateStrategy/paused", "value": True}]
STATEFUL_SET = [
    {"op": "add", "path": "/spec/updateStrategy", "value": {"type": "RollingUpdate", "rollingUpdate": {"partition": 9}}}
]


def paused(raw: dict[str, Any], wanted: list[dict[str, Any]], by: str = PAUSE, version: str = "v") -> Any:
    cause = Cause(by, "a pod failed", "2026-01-01T00:00:00Z")
    return jsonpatch.apply_patch(raw, holding.begin(raw, wanted, version, cause))


def continued(raw: dict[str, Any], wanted: list[dict[str, Any]], by: str = PAUSE) -> Any:
    return jsonpatch.apply_patch(raw, holding.end(raw, wanted, by))


def paused_by_an_older_release(raw: dict[str, Any], wanted: list[dict[str, Any]]) -> Any:
    """As releases of AlterShield before the annotation `rollout` paused a workload."""
    changes = []
    for each in wanted:
        change = {"path": each["path"], "value": each["value"], "before": None}
        *parents, last = each["path"].split("/")[1:]
        found = raw
        for part in parents:
            found = found.setdefault(part, {})
        change["before"], found[last] = found.get(last), each["value"]
        changes.append(change)
    marker = {"time": "2026-01-01T00:00:00Z", "version": "v", "reason": "a pod failed", "changes": changes, "until": ""}
    raw["metadata"].setdefault("annotations", {})[PAUSED] = json.dumps(marker)
    return raw


@pytest.mark.parametrize(
    ("wanted", "spec"),
    [
        (DEPLOYMENT, {"replicas": 3}),
        (DEPLOYMENT, {"paused": False}),
        (CLONE_SET, {}),
        (CLONE_SET, {"updateStrategy": {"type": "InPlaceIfPossible"}}),
        (STATEFUL_SET, {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}),
        (STATEFUL_SET, {}),
    ],
)
def test_pause_is_taken_back_completely(wanted: list[dict[str, Any]], spec: dict[str, Any]) -> None:
    raw = {"metadata": {"annotations": {"own": "1"}}, "spec": spec}
    held = paused(raw, wanted)
    (path,) = (each["path"] for each in wanted)
    before = spec.get(path.split("/")[2])
    assert json.loads(held["metadata"]["annotations"][ROLLOUT]) == {
        "version": "v",
        "causes": [{"by": "pause", "reason": "a pod failed", "time": "2026-01-01T00:00:00Z"}],
        "fields": {path: before if wanted is not CLONE_SET else (before or {}).get("paused")},
    }
    assert held["metadata"]["annotations"]["own"] == "1"
    after = continued(held, wanted)
    if spec == {} and wanted is CLONE_SET:
        assert after["spec"] == {"updateStrategy": {}}
        return
    assert after == raw


def test_workload_without_annotations_gets_the_annotation() -> None:
    held = paused({"metadata": {}, "spec": {}}, DEPLOYMENT)
    assert held["spec"] == {"paused": True}
    assert continued(held, DEPLOYMENT) == {"metadata": {"annotations": {}}, "spec": {}}


def test_defaults_that_the_api_server_adds_do_not_keep_the_pause() -> None:
    held = paused({"metadata": {}, "spec": {}}, STATEFUL_SET)
    held["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] = 1
    assert "updateStrategy" not in continued(held, STATEFUL_SET)["spec"]


def test_workload_that_is_paused_already_gets_no_annotation() -> None:
    raw = {"metadata": {}, "spec": {"paused": True}}
    assert holding.begin(raw, DEPLOYMENT, "v", Cause(PAUSE)) == []


def test_field_that_somebody_changed_since_stays() -> None:
    held = paused({"metadata": {}, "spec": {}}, STATEFUL_SET)
    held["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    after = continued(held, STATEFUL_SET)
    assert after["spec"]["updateStrategy"]["rollingUpdate"] == {"partition": 1}
    assert ROLLOUT not in after["metadata"]["annotations"]


def test_annotation_says_when_the_pause_ends() -> None:
    cause = Cause(PAUSE, "", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z")
    held = jsonpatch.apply_patch({"metadata": {}, "spec": {}}, holding.begin({"spec": {}}, DEPLOYMENT, "v", cause))
    (found,) = json.loads(held["metadata"]["annotations"][ROLLOUT])["causes"]
    assert found["until"] == "2026-01-01T01:00:00Z"


def test_long_reason_is_cut() -> None:
    (*_, stored) = holding.begin({"spec": {}}, DEPLOYMENT, "v", Cause(PAUSE, "r" * 10_000))
    assert len(json.loads(stored["value"])["causes"][0]["reason"]) == 512


# who has written the field since


def managed(raw: dict[str, Any], **fields: dict[str, Any]) -> dict[str, Any]:
    """The workload with these entries in `managedFields`, and the annotation as a field of `altershield`."""
    own = {"f:metadata": {"f:annotations": {f"f:{ROLLOUT}": {}}}, **fields.pop("altershield", {})}
    entries = [
        {"manager": manager, "operation": "Update", "fieldsV1": owned}
        for manager, owned in {"altershield": own, **fields}.items()
    ]
    return {**raw, "metadata": {**raw["metadata"], "managedFields": entries}}


PARTITION = {"f:spec": {"f:updateStrategy": {"f:rollingUpdate": {"f:partition": {}}}}}
TYPE = {"f:spec": {"f:updateStrategy": {"f:type": {}}}}
IS_PAUSED = {"f:spec": {"f:paused": {}}}


@pytest.mark.parametrize(
    ("wanted", "fields", "own"),
    [
        (DEPLOYMENT, {"altershield": IS_PAUSED}, True),
        (DEPLOYMENT, {"kubectl": IS_PAUSED}, False),
        (DEPLOYMENT, {"altershield": IS_PAUSED, "argocd": IS_PAUSED}, False),
        (STATEFUL_SET, {"altershield": PARTITION, "kubectl": TYPE}, True),
        (STATEFUL_SET, {"altershield": TYPE, "kubectl": PARTITION}, False),
    ],
)
def test_field_that_somebody_else_owns_since_stays_although_its_value_is_the_same(
    wanted: list[dict[str, Any]], fields: dict[str, Any], own: bool
) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    raw = {"metadata": {}, "spec": {"updateStrategy": strategy} if wanted is STATEFUL_SET else {}}
    held = managed(paused(raw, wanted), **fields)
    assert holding.is_own(held, wanted) == own
    after = continued(held, wanted)
    assert after["spec"] == (raw["spec"] if own else held["spec"])
    assert ROLLOUT not in after["metadata"]["annotations"]


def test_workload_without_managed_fields_is_continued() -> None:
    held = paused({"metadata": {}, "spec": {}}, DEPLOYMENT)
    for entries in ([], [{"manager": "kubectl", "operation": "Update", "fieldsV1": IS_PAUSED}], ["?"]):
        held["metadata"]["managedFields"] = entries
        assert holding.is_own(held, DEPLOYMENT)


def deep(depth: int) -> str:
    return "[" * depth + "]" * depth


UNREADABLE = [
    "no JSON",
    "",
    "[]",
    "null",
    "{}",
    '{"causes": {}}',
    '{"causes": [{}]}',
    '{"causes": [{"by": 1}]}',
    '{"causes": [{"by": "pause", "pods": -1}]}',
    '{"causes": [{"by": "pause", "pods": 1.5}]}',
    '{"causes": [{"by": "pause", "pods": 1' + "0" * 400 + "}]}",
    '{"causes": [{"by": "pause"}], "version": 1}',
    '{"causes": [{"by": "pause"}], "fields": []}',
    '{"causes": [{"by": "pause"}], "fields": {"/spec/paused": 1.5}}',
    '{"causes": [{"by": "pause"}], "fields": {"/spec/paused": 2147483648}}',
    '{"causes": [{"by": "\\ud800"}]}',
    '{"causes": [{"by": "pause"}], "fields": {"/spec/paused": "\\udc00"}}',
    f'{{"causes": [{{"by": "pause"}}], "fields": {{"/spec/paused": {deep(17)}}}}}',
    f'{{"causes": [{{"by": "pause"}}], "fields": {{"/spec/paused": {deep(100_000)}}}}}',
    deep(100_000),
    "\ud800",
]


@pytest.mark.parametrize("value", UNREADABLE, ids=range(len(UNREADABLE)))
def test_annotation_that_cannot_be_read_is_removed_and_nothing_else(value: str) -> None:
    raw = {"metadata": {"annotations": {ROLLOUT: value}}, "spec": {"paused": True, "replicas": 3}}
    assert holding.read(raw["metadata"]["annotations"]) == Hold()
    assert holding.begin({**raw, "spec": {}}, DEPLOYMENT, "v", Cause(PAUSE)) == []
    assert not holding.is_own(raw, DEPLOYMENT)
    after = continued(raw, DEPLOYMENT)
    assert after == {"metadata": {"annotations": {}}, "spec": raw["spec"]}


def test_fields_may_be_nested_sixteen_levels_deep() -> None:
    value = json.loads(deep(16))
    annotation = json.dumps({"causes": [{"by": PAUSE}], "fields": {"/spec/paused": value}})
    assert holding.read({ROLLOUT: annotation}).fields == {"/spec/paused": value}


@pytest.mark.parametrize("name", [ROLLOUT, PAUSED])
def test_forged_annotation_changes_no_other_field(name: str) -> None:
    raw: dict[str, Any] = {"metadata": {}, "spec": {"paused": True, "replicas": 3, "template": 1}}
    other = {"/spec/template": 1, "/spec/replicas": 3, "/metadata/labels": {}}
    forged: dict[str, Any] = {"causes": [{"by": PAUSE}], "fields": other}
    if name == PAUSED:
        forged = {"changes": [{"path": path, "before": before} for path, before in other.items()]}
    raw["metadata"]["annotations"] = {name: json.dumps(forged)}
    after = continued(raw, DEPLOYMENT)
    assert after == {"metadata": {"annotations": {}}, "spec": raw["spec"]}


def test_huge_annotation_is_read() -> None:
    causes = [{"by": str(number)} for number in range(20_000)]
    raw = {"metadata": {"annotations": {ROLLOUT: json.dumps({"causes": causes})}}, "spec": {"paused": True}}
    assert holding.end(raw, DEPLOYMENT, PAUSE) == []


# the annotation of older releases


@pytest.mark.parametrize(
    ("wanted", "spec"),
    [
        (DEPLOYMENT, {"replicas": 3}),
        (DEPLOYMENT, {"paused": False}),
        (CLONE_SET, {"updateStrategy": {"type": "InPlaceIfPossible"}}),
        (STATEFUL_SET, {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}),
    ],
)
def test_pause_of_an_older_release_is_taken_back(wanted: list[dict[str, Any]], spec: dict[str, Any]) -> None:
    raw = {"metadata": {"annotations": {"own": "1"}}, "spec": spec}
    held = paused_by_an_older_release(deepcopy(raw), wanted)
    found = holding.read(held["metadata"]["annotations"])
    assert found is not None
    assert (found.version, found.causes) == ("v", (Cause(PAUSE, "a pod failed", "2026-01-01T00:00:00Z"),))
    assert holding.is_own(held, wanted)
    assert holding.begin(held, wanted, "v", Cause(PAUSE)) == []
    assert continued(held, wanted) == raw


def test_another_cause_replaces_the_annotation_of_an_older_release() -> None:
    raw = {"metadata": {"annotations": {"own": "1"}}, "spec": {"paused": False}}
    held = paused(paused_by_an_older_release(deepcopy(raw), DEPLOYMENT), DEPLOYMENT, "steps", "w")
    assert list(held["metadata"]["annotations"]) == ["own", ROLLOUT]
    assert continued(continued(held, DEPLOYMENT), DEPLOYMENT, "steps") == raw


# several causes


def test_fields_return_with_the_last_cause() -> None:
    raw = {"metadata": {"annotations": {"own": "1"}}, "spec": {"paused": False}}
    both = paused(paused(raw, DEPLOYMENT, "a"), DEPLOYMENT, "b")
    assert both["spec"] == {"paused": True}
    one = continued(both, DEPLOYMENT, "a")
    assert one["spec"] == {"paused": True}
    assert [each["by"] for each in json.loads(one["metadata"]["annotations"][ROLLOUT])["causes"]] == ["b"]
    assert continued(one, DEPLOYMENT, "a") == one
    assert continued(one, DEPLOYMENT, "b") == raw


def test_the_fewest_pods_of_all_causes_count() -> None:
    assert Hold("v", (Cause("a", pods=5), Cause("b", pods=2))).pods == 2
    assert Hold("v", (Cause("a", pods=5), Cause(PAUSE))).pods == 0
    assert Hold().pods == 0


def test_whoever_continues_by_hand_ends_the_causes_before() -> None:
    held = paused({"metadata": {"annotations": {"own": "1"}}, "spec": {}}, DEPLOYMENT, "a")
    held["spec"]["paused"] = False
    again = paused(held, DEPLOYMENT, "b")
    assert again["spec"] == {"paused": True}
    assert continued(again, DEPLOYMENT, "b") == {"metadata": {"annotations": {"own": "1"}}, "spec": {"paused": False}}


def test_user_who_paused_again_keeps_the_pause() -> None:
    held = managed(paused({"metadata": {}, "spec": {}}, DEPLOYMENT, "a"), kubectl=IS_PAUSED)
    assert holding.begin(held, DEPLOYMENT, "v", Cause("b")) == []
    assert continued(held, DEPLOYMENT, "a")["spec"] == {"paused": True}


strategies: st.SearchStrategy[Any] = st.sampled_from(
    [
        {},
        {"updateStrategy": {"type": "RollingUpdate"}},
        {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2, "maxUnavailable": "10%"}}},
        {"updateStrategy": {"type": "OnDelete"}},
    ]
)
specs = st.one_of(
    st.tuples(st.just("Deployment"), st.sampled_from([{}, {"paused": False}, {"paused": True}])),
    st.tuples(st.sampled_from(["StatefulSet", "DaemonSet"]), strategies),
    st.tuples(st.just("CloneSet"), st.sampled_from([{"updateStrategy": {}}, {"updateStrategy": {"paused": False}}])),
)
steps = st.lists(st.tuples(st.sampled_from([holding.begin, holding.end]), st.sampled_from(["a", "b", PAUSE])))
annotations = st.sampled_from([{"own": "1"}, {}])


def stepped(raw: Any, wanted: Any, step: Any, by: str) -> Any:
    return paused(raw, wanted, by) if step is holding.begin else continued(raw, wanted, by)


def with_defaults(raw: Any, kind: str) -> Any:
    """The workload with defaults that the API server adds to a partition."""
    strategy = raw["spec"].get("updateStrategy") or {}
    if kind == "StatefulSet" and strategy.get("rollingUpdate", {}).get("partition") == 2**31 - 1:
        rolling = {"maxUnavailable": 1, **strategy["rollingUpdate"]}
        return {**raw, "spec": {"updateStrategy": {**strategy, "rollingUpdate": rolling}}}
    return raw


@given(found=specs, own=annotations, taken=steps, ends=st.permutations(["a", "b", PAUSE]))
def test_fields_of_the_user_return_after_any_steps(found: Any, own: Any, taken: Any, ends: list[str]) -> None:
    kind, spec = found
    raw: dict[str, Any] = {"metadata": {"annotations": own}, "spec": spec}
    wanted, held, causes = BY_NAME[kind].pause(), raw, set()  # type: ignore[arg-type]
    holds = holding.begin(raw, wanted, "v", Cause(PAUSE)) != []
    for step, by in (*taken, *((holding.end, by) for by in ends)):
        held = with_defaults(stepped(held, wanted, step, by), kind)
        assert stepped(held, wanted, step, by) == held, "twice is as once"
        causes = causes | {by} if step is holding.begin else causes - {by}
        assert holding.is_own(held, wanted) == bool(causes and holds)
        seen = holding.with_own_fields(held, wanted)
        assert {**seen, "metadata": {}} == {**raw, "metadata": {}}, "the values of the user are known at any time"
    assert held == raw


@given(found=specs, first=steps, then=steps, written=st.sampled_from([False, True]))
def test_field_that_somebody_else_writes_stays(found: Any, first: Any, then: Any, written: bool) -> None:
    """Somebody writes the field. Whatever is held and released then, the field returns to this value."""
    kind, spec = found
    raw: dict[str, Any] = {"metadata": {"annotations": {}}, "spec": spec}
    wanted = BY_NAME[kind].pause()
    for step, by in first:
        raw = stepped(raw, wanted, step, by)
    by_hand = {"Deployment": {"paused": False}, "CloneSet": {"updateStrategy": {"paused": False, "partition": 1}}}.get(
        kind, {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}
    )
    held: Any = {**raw, "spec": by_hand}
    for step, by in (*then, *((holding.end, by) for by in ("a", "b", PAUSE))):
        held = stepped(held, wanted, step, by)
        assert holding.with_own_fields(held, wanted)["spec"] == by_hand
    assert held == {"metadata": {"annotations": {}}, "spec": by_hand}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda each: st.lists(each) | st.dictionaries(st.text(), each),
)
rolling_updates = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("partition", "maxUnavailable", "maxSurge"), json_values)
)
field_values = json_values | st.fixed_dictionaries({"type": json_values, "rollingUpdate": rolling_updates})


@given(value=field_values, kind=st.sampled_from(sorted(BY_NAME)))
def test_any_value_of_a_field_in_the_annotation_lets_the_workload_be_read(value: Any, kind: str) -> None:
    adapter = BY_NAME[kind]
    held = objects.manifest(kind)
    held = paused(held, adapter.pause())
    (path,) = (str(each["path"]) for each in adapter.pause())
    forged = {"version": "v", "causes": [{"by": PAUSE}], "fields": {path: value}}
    held["metadata"]["annotations"][ROLLOUT] = json.dumps(forged)
    data = msgspec.json.encode(held)
    found, in_force = adapter.read(data), adapter.read_in_force(data)
    assert found.held
    assert found.in_force == in_force
    assert (found.fingerprint, found.replicas) == (in_force.fingerprint, in_force.replicas)
    for amount in (found.max_unavailable, found.max_surge):
        assert isinstance(amount, int) or amount.removesuffix("%").isdecimal()
    holding.end(held, adapter.pause(), PAUSE)


ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("Deployment", {"replicas": 4, "strategy": {"rollingUpdate": {"maxUnavailable": 2}}}),
        ("StatefulSet", {"replicas": 4, "updateStrategy": {"rollingUpdate": {"maxUnavailable": 2, "partition": 1}}}),
        ("DaemonSet", {"updateStrategy": ROLLING}),
        ("CloneSet", {"replicas": 4, "updateStrategy": {"maxUnavailable": 2, "partition": 1}}),
    ],
)
def test_held_workload_is_read_with_the_values_of_the_user_and_those_in_force(kind: str, spec: Any) -> None:
    adapter = BY_NAME[kind]
    raw = objects.manifest(kind, status={"desiredNumberScheduled": 4}, **spec)
    plain = adapter.read(msgspec.json.encode(raw))
    held = adapter.read(msgspec.json.encode(paused(raw, adapter.pause(), version="1" * 32)))
    assert msgspec.structs.replace(held, hold=None) == plain
    assert (held.held, held.held_version, held.max_unavailable) == (True, "1" * 32, 2)
    now = held.in_force
    assert (now.held, now.held_version) == (True, "1" * 32)
    assert (now.paused, now.strategy, now.reach, now.max_unavailable) == {
        "Deployment": (True, Strategy.ROLLING, 4, 2),
        "StatefulSet": (False, Strategy.ROLLING, 0, 1),
        "DaemonSet": (False, Strategy.ON_DELETE, None, 1),
        "CloneSet": (True, Strategy.ROLLING, 3, 2),
    }[kind]
    assert plain.in_force is plain


def test_values_of_a_person_who_continued_are_those_of_the_user() -> None:
    adapter = BY_NAME["Deployment"]
    held = paused(objects.manifest("Deployment"), DEPLOYMENT)
    held["spec"]["paused"] = False
    found = adapter.read(msgspec.json.encode(held))
    assert found.held
    assert found.in_force is found
    held = managed(paused(objects.manifest("Deployment"), DEPLOYMENT), kubectl=IS_PAUSED)
    assert adapter.read(msgspec.json.encode(held)).paused


def test_hold_of_other_causes_is_no_pause() -> None:
    adapter = BY_NAME["Deployment"]
    found = adapter.read(msgspec.json.encode(paused(objects.manifest("Deployment"), DEPLOYMENT, "steps")))
    assert found.hold is not None
    assert (found.held, found.held_version, found.paused, found.in_force.paused) == (False, "", False, True)


def test_annotation_that_cannot_be_read_counts_as_a_pause() -> None:
    made = objects.manifest("Deployment", metadata={"annotations": {ROLLOUT: "?"}})
    found = BY_NAME["Deployment"].read(msgspec.json.encode(made))
    assert (found.held, found.held_version) == (True, "")


def test_workload_without_annotation_is_not_changed() -> None:
    assert holding.end({"metadata": {}, "spec": {"paused": True}}, DEPLOYMENT, PAUSE) == []


def test_every_kind_can_be_paused() -> None:
    for adapter in BY_NAME.values():
        assert all(each["op"] == "add" for each in adapter.pause())
