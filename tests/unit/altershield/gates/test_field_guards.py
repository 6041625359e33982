"""What a FieldGuard finds in a release: by paths, by changes, and against what the releaser wrote last."""

import copy
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api.change_workload import Written, releaser
from altershield.api.gates.field_guards import FieldChange, FieldGuard, FieldGuardSpec, FieldGuardStatus, FieldRule
from altershield.api.gates.field_guards import GuardAction as Action
from altershield.api.gates.rules import GateMode
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.released_by import ReleasedBy
from altershield.gates.field_guards import in_force
from altershield.gates.fields.changes import Fields
from altershield.gates.fields.paths import parse
from altershield.gates.fields.written import followed, written
from altershield.gates.judge import judge
from altershield.gates.release import Closed
from altershield.gates.texts import sentence
from kube_base.meta import ObjectMeta
from tests.unit.altershield.gates.placed import Objects, guard, labelled, release, rule

Object = dict[str, Any]

ANY = (FieldChange.CHANGED, FieldChange.ADDED, FieldChange.REMOVED)
MEMORY = "spec.containers[*].resources.limits.memory"


def template(*containers: Object, **spec: Any) -> Object:
    return {"metadata": None, "spec": {"containers": list(containers), **spec}}


def app(name: str = "app", memory: str | None = "1Gi", **fields: Any) -> Object:
    limits = {} if memory is None else {"limits": {"memory": memory}}
    return {"name": name, "image": "app:1", "resources": limits, **fields}


def found(old: Object | None, new: Object, *rules: FieldRule, last: Written | None = None) -> list[Closed]:
    fields = Fields(old, new)
    asked = release(fields=lambda: fields, written=lambda: last)
    return list(judge(asked, Objects(guard(*rules)), SYSTEM_NAMESPACE, 0))


def texts(old: Object | None, new: Object, *rules: FieldRule, last: Written | None = None) -> list[str]:
    return [each.what for each in found(old, new, *rules, last=last)]


def test_a_text_names_the_field_and_both_values() -> None:
    old, new = template(app()), template(app(memory="512Mi"))
    path = "spec.containers[app].resources.limits.memory"
    assert texts(old, new, rule(MEMORY)) == [f"{path} changes from 1Gi to 512Mi"]
    assert texts(old, new, rule(MEMORY, FieldChange.DECREASED)) == [f"{path} decreases from 1Gi to 512Mi"]
    assert texts(new, old, rule(MEMORY, FieldChange.INCREASED)) == [f"{path} increases from 512Mi to 1Gi"]
    assert texts(old, new, rule(MEMORY, FieldChange.INCREASED)) == []
    assert texts(old, template(app(memory=None)), rule(MEMORY)) == [f"{path} is removed; it is 1Gi now"]
    assert texts(template(app(memory=None)), new, rule(MEMORY)) == [f"{path} is added: 512Mi"]
    (denied,) = found(old, new, rule(MEMORY, name="memory", message="ask the platform team"))
    assert sentence(denied) == (
        f"FieldGuard {SYSTEM_NAMESPACE}/g, rule memory: {path} changes from 1Gi to 512Mi: ask the platform team"
    )


def test_names_in_a_template_cannot_write_into_a_text() -> None:
    odd = app("a\n\x1b[31mdenied")
    (text,) = texts(template(odd), template({**odd, "image": "x"}), rule("spec.containers[*].image"))
    assert text.isprintable()


def test_several_fields_of_a_rule_are_one_text() -> None:
    old = template(*(app(each) for each in "abc"))
    new = template(*(app(each, "2Gi") for each in "abc"))
    assert texts(old, new, rule(MEMORY))[0].endswith("from 1Gi to 2Gi (and 2 more fields)")


def test_containers_are_compared_by_name() -> None:
    old, new = template(app("a"), app("b", "2Gi")), template(app("b", "2Gi"), app("a"))
    assert texts(old, new, rule(MEMORY), rule("spec.containers[*].image", name="i")) == []
    renamed = template(app("c"), app("b", "2Gi"))
    assert texts(old, renamed, rule(MEMORY, FieldChange.CHANGED)) == []
    assert texts(old, renamed, rule(MEMORY, FieldChange.REMOVED)) == [
        "spec.containers[a].resources.limits.memory is removed; it is 1Gi now"
    ]
    assert texts(old, renamed, rule(MEMORY, FieldChange.ADDED)) == [
        "spec.containers[c].resources.limits.memory is added: 1Gi"
    ]
    for path in ("spec.containers[name=b].image", "spec.containers[b].image"):
        changed = template(app("a", image="x"), app("b", "2Gi", image="x"))
        assert texts(old, changed, rule(path)) == ["spec.containers[b].image changes from app:1 to x"]


def test_two_containers_of_one_name_are_two_fields() -> None:
    old, new = template(app(), app()), template(app(), app(memory="2Gi"))
    assert len(texts(old, new, rule(MEMORY))) == 1
    assert texts(template(app()), template(app(), app()), rule(MEMORY, FieldChange.ADDED))


def test_keys_of_maps_are_written_in_brackets() -> None:
    old = template(app(resources={"limits": {"nvidia.com/gpu": 1}}))
    new = template(app(resources={"limits": {"nvidia.com/gpu": 2}}))
    expected = ["spec.containers[app].resources.limits[nvidia.com/gpu] increases from 1 to 2"]
    for last in ("limits[nvidia.com/gpu]", "limits[*]"):
        assert texts(old, new, rule(f"spec.containers[*].resources.{last}", FieldChange.INCREASED)) == expected
    annotated = {**template(app()), "metadata": {"annotations": {"a/b": "1"}}}
    assert texts(template(app()), annotated, rule("metadata.annotations[a/b]")) == [
        "metadata.annotations[a/b] is added"
    ]


def test_elements_without_a_name_are_compared_by_their_value_which_no_text_shows() -> None:
    old, new = template(app(args=["-a", "-b"])), template(app(args=["-b", "--password=x"]))
    (added,) = texts(old, new, rule("spec.containers[*].args[*]", FieldChange.ADDED))
    assert added.startswith("spec.containers[app].args[#")
    assert added.endswith("] is added")
    assert "password" not in added
    assert texts(old, template(app(args=["-b", "-a"])), rule("spec.containers[*].args[*]")) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {"terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst", "restartPolicy": "Always"}),
        ({}, {"securityContext": {}, "schedulerName": "default-scheduler", "tolerations": []}),
        ({"hostNetwork": None}, {}),
    ],
)
def test_what_the_api_server_adds_is_no_change(old: Object, new: Object) -> None:
    paths = ("spec.terminationGracePeriodSeconds", "spec.dnsPolicy", "spec.restartPolicy", "spec.hostNetwork")
    rules = [rule(each, name=f"r{number}") for number, each in enumerate((*paths, "spec.securityContext"))]
    for one, other in ((old, new), (new, old)):
        assert texts(template(app(), **one), template(app(), **other), *rules) == []
    probe: Object = {"httpGet": {"path": "/", "port": 80}}
    filled = {"httpGet": {**probe["httpGet"], "scheme": "HTTP"}, "periodSeconds": 10, "failureThreshold": 3}
    path = rule("spec.containers[*].readinessProbe")
    assert texts(template(app(readinessProbe=probe)), template(app(readinessProbe=filled)), path) == []
    added = {**app(), "terminationMessagePath": "/dev/termination-log", "resources": {}}
    assert texts(template(app(memory=None)), template(added), rule("spec.containers[*]")) == []


def test_a_default_that_changes_is_a_change_from_the_default() -> None:
    new = template(app(), terminationGracePeriodSeconds=5)
    assert texts(template(app()), new, rule("spec.terminationGracePeriodSeconds", FieldChange.DECREASED)) == [
        "spec.terminationGracePeriodSeconds decreases from 30 to 5"
    ]


def test_another_text_of_the_same_number_is_no_less() -> None:
    old, new = (template(app(env=[{"name": "A", "value": each}])) for each in ("1", "1.0"))
    path = "spec.containers[*].env[*].value"
    assert texts(old, new, rule(path, FieldChange.DECREASED, FieldChange.INCREASED)) == []
    assert texts(old, new, rule(path)) == ["spec.containers[app].env[A].value changes"]


def test_equal_quantities_are_no_change() -> None:
    for one, other in (("1Gi", "1024Mi"), ("0.5", "500m"), ("1e3", "1k")):
        assert texts(template(app(memory=one)), template(app(memory=other)), rule(MEMORY)) == []
        whole = rule("spec.containers[*].resources")
        assert texts(template(app(memory=one)), template(app(memory=other)), whole) == []


@pytest.mark.parametrize(
    "path",
    [
        "spec.containers[*].env[*].value",
        "spec.containers[*].env",
        "spec.containers[*].command",
        "spec.containers[*]",
        "metadata.annotations.token",
        "spec.containers[*].env[name=TOKEN].value",
    ],
)
def test_values_that_may_be_secrets_are_in_no_text(path: str) -> None:
    def of(value: str, memory: str) -> Object:
        env = [{"name": "TOKEN", "value": value}]
        found = template(app(memory=memory, env=env, command=["run", value]))
        return {**found, "metadata": {"annotations": {"token": value}}}

    old, new = of("12345678", "1Gi"), of("hunter2", "2Gi")
    last = written({path: parse(path)}, of("hunter2", "2Gi"), ReleasedBy("git", "", ""))
    for on, known in ((ANY, None), ((FieldChange.REVERTED,), last)):
        (text,) = texts(old, new, rule(path, *on), last=known)
        assert "hunter2" not in text
        assert "12345678" not in text
    assert "hunter2" not in str(last)


GIT = ReleasedBy("argocd", "2026-11-28T10:00:00Z", "", "argocd-controller")


def test_a_release_that_writes_its_own_old_value_over_anothers_is_a_revert() -> None:
    git, raised = template(app(memory="1Gi")), template(app(memory="2Gi"))
    last = written({MEMORY: parse(MEMORY)}, git, GIT)
    reverted = rule(MEMORY, FieldChange.REVERTED)
    assert texts(raised, git, reverted, last=last) == [
        "spec.containers[app].resources.limits.memory is 2Gi now, was 1Gi in the last release by argocd-controller "
        "(2026-11-28T10:00:00Z), and would be 1Gi again: somebody has changed it since"
    ]
    assert texts(raised, git, reverted) == [], "nothing is known of an earlier release"
    assert texts(raised, template(app(memory="3Gi")), reverted, last=last) == [], "a new value"
    assert texts(git, template(app(memory="2Gi")), reverted, last=last) == [], "nobody else has changed it"
    assert texts(raised, raised, reverted, last=last) == []
    other = written({"spec.hostNetwork": parse("spec.hostNetwork")}, git, GIT)
    assert texts(raised, git, reverted, last=other) == [], "this path is not known"


def test_a_field_that_another_added_and_that_is_removed_again_is_a_revert() -> None:
    git, raised = template(app(memory=None)), template(app(memory="2Gi"))
    last = written({MEMORY: parse(MEMORY)}, git, GIT)
    (text,) = texts(raised, git, rule(MEMORY, FieldChange.REVERTED), last=last)
    assert "is 2Gi now, was not set in the last release by argocd-controller" in text
    token = "metadata.annotations.token"
    secret = {**git, "metadata": {"annotations": {"token": "hunter2"}}}
    last = written({token: parse(token)}, git, GIT)
    (text,) = texts(secret, git, rule(token, FieldChange.REVERTED), last=last)
    assert text.startswith("metadata.annotations.token goes back to its value in the last release")


def test_a_new_default_of_the_api_server_is_no_revert() -> None:
    path = "spec.terminationGracePeriodSeconds"
    git = template(app())
    last = written({path: parse(path)}, template(app(), terminationGracePeriodSeconds=30), GIT)
    reverted = rule(path, FieldChange.REVERTED)
    raised = template(app(), terminationGracePeriodSeconds=60)
    assert len(texts(raised, git, reverted, last=last)) == 1
    assert texts(git, template(app(), terminationGracePeriodSeconds=30), reverted, last=last) == []


def test_what_is_kept_is_bounded() -> None:
    many = template(*(app(f"c{number}") for number in range(65)), app("long" * 100))
    known = written({MEMORY: parse(MEMORY), "spec.hostNetwork": parse("spec.hostNetwork")}, many, GIT)
    assert known.paths == ("spec.hostNetwork",)
    most = template(*(app(f"c{number}") for number in range(64)))
    assert len(written({MEMORY: parse(MEMORY)}, most, GIT).values) == 64
    few = written({MEMORY: parse(MEMORY)}, template(app(image="x" * 1000)), GIT)
    assert few.values == {"spec.containers[app].resources.limits.memory": '"1Gi"'}
    images = "spec.containers[*].image"
    assert len(str(written({images: parse(images)}, template(app(image="x" * 999)), GIT).values)) < 100


def test_rules_warn_or_deny_and_the_mode_of_the_guard_wins() -> None:
    old, new = template(app()), template(app(memory="2Gi"))
    rules = rule(MEMORY, name="a", action=Action.WARN), rule(MEMORY, name="b")
    assert [(each.rule, each.enforced) for each in found(old, new, *rules)] == [("b", True), ("a", False)]
    fields = Fields(old, new)
    warns = Objects(guard(*rules, mode=GateMode.WARN))
    assert [each.enforced for each in judge(release(fields=lambda: fields), warns, SYSTEM_NAMESPACE, 0)] == [
        False,
        False,
    ]


def test_fields_are_read_only_for_workloads_that_a_guard_selects_and_only_at_admission() -> None:
    def read() -> Fields:
        raise AssertionError

    selective = Objects(guard(rule(MEMORY), selector=labelled(team="shop")))
    assert judge(release({"team": "other"}, fields=read), selective, SYSTEM_NAMESPACE, 0) == ()
    assert judge(release({"team": "shop"}), selective, SYSTEM_NAMESPACE, 0) == (), "before a step"
    with pytest.raises(AssertionError):
        judge(release({"team": "shop"}, fields=read), selective, SYSTEM_NAMESPACE, 0)


def test_the_spec_that_was_accepted_is_in_force() -> None:
    right, wrong = FieldGuardSpec(rules=(rule(MEMORY),)), FieldGuardSpec(rules=(rule("spec.containers.image"),))
    metadata = ObjectMeta("g", "shop")
    assert in_force(FieldGuard(metadata, right)) is None
    found = in_force(FieldGuard(metadata, wrong, FieldGuardStatus(accepted=right)))
    assert found is not None
    assert found.rules is right
    assert in_force(FieldGuard(metadata, right, FieldGuardStatus(accepted=wrong))) is None


def test_creations_add_all_fields() -> None:
    assert texts(None, template(app()), rule(MEMORY)) == ["spec.containers[app].resources.limits.memory is added: 1Gi"]


def test_the_work_for_hostile_templates_is_bounded_and_the_release_denied() -> None:
    rules = tuple(
        FieldRule(f"r{number}", tuple(f"spec.containers[*].a{number}.b{each}" for each in range(20)))
        for number in range(50)
    )
    old = template(*({"name": str(each), "a1": each} for each in range(20_000)))
    new = template(*({"name": str(each), "a1": -each - 1} for each in range(20_000)))
    before = time.process_time()
    assert {each.what for each in found(old, new, *rules)} == {
        "the release changes more fields than can be compared with those that are guarded; split it"
    }
    nested: Any = "x"
    for _ in range(240):
        nested = {"a": [nested]}
    deep = template(app(a=nested))
    assert len(texts(template(app()), deep, rule("spec.containers[*]"), rule("spec.containers", name="b"))) == 2
    assert time.process_time() - before < 60  # a bound that only an endless computation exceeds


def test_fifty_rules_on_an_ordinary_release_cost_little_work() -> None:
    rules = tuple(
        FieldRule(f"r{number}", tuple(f"spec.containers[*].a{number}.b{each}" for each in range(20)))
        for number in range(50)
    )
    old = template(*(app(str(each)) for each in range(20)))
    new = copy.deepcopy(old)
    new["spec"]["containers"][3]["image"] = "other"
    fields = Fields(old, new, max_work=2_500)
    objects = Objects(guard(*rules))
    assert judge(release(fields=lambda: fields), objects, SYSTEM_NAMESPACE, 0) == ()


_NAMES = st.sampled_from("abc")
_MEMORIES = st.sampled_from([None, "1Gi", "1024Mi", "2Gi", "1500m", "1", "odd"])
_containers = st.dictionaries(_NAMES, _MEMORIES, max_size=3)


@given(_containers, _containers, _containers, st.sampled_from(list(FieldChange)), st.randoms())
def test_a_guard_finds_what_a_slow_and_obvious_one_finds(
    old: dict[str, str | None], new: dict[str, str | None], git: dict[str, str | None], on: FieldChange, random: Any
) -> None:
    amounts = {"1Gi": 2**30, "1024Mi": 2**30, "2Gi": 2**31, "1500m": 1.5, "1": 1}

    def of(memories: dict[str, str | None]) -> Object:
        items = list(memories.items())
        random.shuffle(items)
        return template(*(app(name, memory) for name, memory in items))

    def is_same(one: str | None, other: str | None) -> bool:
        return one == other or (one is not None and amounts.get(one, one) == amounts.get(other or "", other))

    expected = set()
    for name in "abc":
        before, after, last = (each.get(name) for each in (old, new, git))
        if is_same(before, after):
            continue
        meets = {
            FieldChange.ADDED: before is None,
            FieldChange.REMOVED: after is None,
            FieldChange.CHANGED: None not in (before, after),
            FieldChange.INCREASED: before in amounts and after in amounts and amounts[before] < amounts[after],
            FieldChange.DECREASED: before in amounts and after in amounts and amounts[before] > amounts[after],
            FieldChange.REVERTED: is_same(after, last) and not is_same(before, last),
        }
        if meets[on]:
            expected.add(f"spec.containers[{name}].resources.limits.memory")
    last = written({MEMORY: parse(MEMORY)}, of(git), GIT)
    shown = texts(of(old), of(new), rule(MEMORY, on), last=last)
    assert bool(shown) is bool(expected)
    if shown:
        assert shown[0].split(" ")[0] in expected
        more = {1: "fields)", 2: "(and another field)", 3: "(and 2 more fields)"}[len(expected)]
        assert len(expected) == 1 or shown[0].endswith(more)


_CLIENTS = [ReleasedBy(user, "", "", manager) for user in "abc" for manager in ("", "kubectl-set", "helm")]


@given(st.lists(st.tuples(st.sampled_from(_CLIENTS), _MEMORIES, st.booleans()), max_size=12))
def test_reverts_in_any_story_are_those_of_a_slow_and_obvious_model(
    story: list[tuple[ReleasedBy, str | None, bool]],
) -> None:
    kept: tuple[Written, ...] = ()
    live: str | None = None
    model: list[tuple[object, str | None]] = []  # who wrote what, the newest first
    for by, memory, is_seen in story:
        who = by.manager if by.manager == "helm" else (by.user, by.manager)
        last = next((each for each in kept if each.releaser == releaser(by.user, by.manager)), None)
        shown = texts(
            template(app(memory=live)), template(app(memory=memory)), rule(MEMORY, FieldChange.REVERTED), last=last
        )
        known = [value for name, value in model[:4] if name == who]
        same_amount = {frozenset({"1Gi", "1024Mi"})}
        reverts = [
            value
            for value in known
            if (memory == value or frozenset({memory, value}) in same_amount)
            and not (live == value or frozenset({live, value}) in same_amount)
        ]
        assert bool(shown) is bool(reverts)
        new = written({MEMORY: parse(MEMORY)}, template(app(memory=memory)), by) if is_seen else None
        kept = followed(kept, releaser(by.user, by.manager), new)
        model = [each for each in model[:4] if each[0] != who]
        model = [(who, memory), *model] if is_seen else model
        live = memory
