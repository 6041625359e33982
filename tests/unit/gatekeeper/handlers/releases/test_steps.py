"""Releases in steps at admission: what is patched, denied and said."""

import json
from typing import Any

import msgspec
import pytest

from altershield.api import labels
from altershield.api.annotations import ROLLOUT
from altershield.api.policy import Mode
from altershield.api.rollout import Rollout, Step
from altershield.api.selectors import Selector
from altershield.policies.selection import InForce
from altershield.policies.stored import Spec
from gatekeeper.dispatch import decide
from gatekeeper.errors import ReviewError
from tests.unit.gatekeeper.handlers.releases.workloads import STRATEGIES, hold_of, workload
from tests.unit.gatekeeper.reviews import (
    MUTATE,
    RECONCILER,
    VALIDATE,
    Object,
    StaticListers,
    StaticPolicies,
    about,
    ask,
    deployment,
    encode,
    kind,
    mutate,
    patched,
    review,
    rolling_back,
    route,
    validate,
    version_of,
)

pytestmark = pytest.mark.usefixtures("every_kind")

CANARY = {"kind": "Canary", "name": "c", "uid": "u", "controller": True}


def policy(mode: Mode = Mode.ENFORCE, **selector: str) -> InForce[Spec]:
    return InForce("default", "web", 3, Spec(Selector(selector), 0, mode, Rollout(pods=(1, "50%"))))


def stepped(*own: InForce[Spec], **options: Any) -> StaticListers:
    return StaticListers(policies=StaticPolicies(list(own or (policy(),))), **options)


def annotated(obj: Object, value: str | None) -> Object:
    others = {key: each for key, each in obj["metadata"]["annotations"].items() if key != ROLLOUT}
    new = {**others, ROLLOUT: value} if value is not None else others
    return {**obj, "metadata": {**obj["metadata"], "annotations": new}}


def held(image: str = "busybox:2") -> Object:
    found, _ = mutate(workload(image), workload(), stepped())
    return {**found, "status": {"desiredNumberScheduled": 5}}


def test_release_is_held_at_its_first_step() -> None:
    found = held()
    known = hold_of(found)
    assert (known.version, known.base) == (version_of(deployment("busybox:2")), version_of(deployment()))
    assert (known.policy, known.pods, known.replicas, known.write) == ("default/web@3", 1, 5, 1)
    assert known.rollout == Rollout(pods=(1, "50%"))
    strategy = found["spec"].get("strategy") or found["spec"]["updateStrategy"]
    expected = {
        "Deployment": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        "StatefulSet": {"type": "RollingUpdate", "rollingUpdate": {"partition": 4}},
        "DaemonSet": {"type": "OnDelete", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
        "CloneSet": {"type": "ReCreate", "partition": 4},
    }[about().kind]
    assert strategy == expected


def with_nodes(*more: Step, mode: Mode = Mode.ENFORCE) -> StaticListers:
    steps = Rollout(steps=(Step(node_selector={"pool": "canary"}), *more))
    return stepped(InForce("default", "web", 3, Spec(mode=mode, rollout=steps)))


def test_steps_with_node_selectors_are_for_daemonsets_and_those_with_pods_for_other_kinds() -> None:
    listers = with_nodes(Step(2, node_selector={"zone": "a"}), Step("80%"))
    known = hold_of(mutate(workload("busybox:2"), workload(), listers)[0])
    assert known.rollout is not None
    found = [(each.pods, each.node_selector) for each in known.rollout.steps]
    if about().kind == "DaemonSet":
        assert (known.pods, found) == (0, [(None, {"pool": "canary"}), (None, {"zone": "a"}), ("80%", {})])
    else:
        assert (known.pods, found) == (2, [(2, {}), ("80%", {})])


def test_policy_with_node_selectors_alone_holds_only_daemonsets() -> None:
    found, _ = mutate(workload("busybox:2"), workload(), with_nodes())
    response = ask(MUTATE, review(workload("busybox:2"), workload()), with_nodes())
    if about().kind == "DaemonSet":
        assert hold_of(found).pods == 0
    else:
        assert ROLLOUT not in found["metadata"]["annotations"]
        assert "have a nodeSelector and no pods" in response["auditAnnotations"]["not-in-steps"]
    assert validate(found, workload(), with_nodes())["allowed"] is True


def test_warning_names_the_nodes_of_the_first_step() -> None:
    response = ask(MUTATE, review(workload("busybox:2"), workload()), with_nodes(mode=Mode.WARN))
    warned = [each for each in response.get("warnings", ()) if "pool=canary" in each]
    assert bool(warned) is (about().kind == "DaemonSet")


def test_held_release_is_admitted_and_an_unheld_one_is_denied_for_now() -> None:
    assert validate(held(), workload(), stepped())["allowed"] is True
    stamped, _ = mutate(workload("busybox:2"), workload())
    response = validate(stamped, workload(), stepped())
    text = f"AlterShield: {kind()} sleep was not held at its first step, try again"
    assert response["status"]["message"] == text
    assert (response["status"]["code"], response["status"]["reason"]) == (429, "TooManyRequests")
    assert response["auditAnnotations"]["reason"] == text
    more = held()
    known = hold_of(more)
    cause = msgspec.structs.replace(known.causes[0], pods=5)
    forged = msgspec.json.encode(msgspec.structs.replace(known, causes=(cause,))).decode()
    assert validate(annotated(more, forged), workload(), stepped())["allowed"] is False


def test_second_call_changes_nothing() -> None:
    assert "patch" not in ask(MUTATE, review(held(), workload()), stepped())


def test_repair_begins_with_the_pods_of_the_failed_version() -> None:
    failed = workload(suspend="1787297390", ignored_suspend="true")
    failed["status"] |= {"updatedReplicas": 4, "updatedNumberScheduled": 4}
    repair = workload("busybox:2", suspend="1787297390", ignored_suspend="true")
    found, _ = mutate(repair, failed, stepped())
    known = hold_of(found)
    at_once = {"Deployment": 3}.get(about().kind, 4)  # the most that its own strategy replaces before one is available
    assert (known.at_least, known.pods) == (4, at_once)
    del failed["metadata"]["labels"][labels.SUSPEND], repair["metadata"]["labels"][labels.SUSPEND]
    found, _ = mutate(repair, failed, stepped())
    assert (hold_of(found).at_least, hold_of(found).pods) == (0, 1)


def test_resume_of_a_release_that_waits_before_its_first_pod_names_the_way_back() -> None:
    if about().kind != "Deployment":
        return
    before = held()
    known = hold_of(before)
    cause = msgspec.structs.replace(known.causes[0], pods=0)
    waiting = msgspec.json.encode(msgspec.structs.replace(known, causes=(cause,))).decode()
    before = annotated({**before, "spec": {**before["spec"], "paused": True, **STRATEGIES["Deployment"]}}, waiting)
    spec = {key: value for key, value in before["spec"].items() if key != "paused"}
    for resumed in (spec, {**spec, "paused": False}):
        found, warnings = mutate({**before, "spec": resumed}, before, StaticListers())
        assert found["spec"]["paused"] is True
        assert warnings == [
            "AlterShield: deployment sleep is released in steps, and waits before its first pod: "
            "altershield why -n default deployment/sleep says for what",
            "to go back to the version before, run: altershield rollback -n default deployment/sleep",
        ]


def test_denial_of_a_failed_release_names_the_way_back() -> None:
    failed = held()
    failed["metadata"]["labels"] |= {labels.SUSPEND: "1787297390", labels.DEFENSE_STATUS: labels.PROCESSED}
    response = validate(workload("busybox:3"), failed, stepped())
    assert response["allowed"] is False
    command = f"altershield rollback -n default {kind()}/sleep"
    assert f"to go back to the version before, run: {command}" in response["warnings"]


def test_workload_without_annotations_gets_both() -> None:
    new, old = workload("busybox:2"), workload()
    for each in (new, old):
        each["metadata"] = {**each["metadata"], "annotations": None}
    found, _ = mutate(new, old, stepped())
    assert set(found["metadata"]["annotations"]) == {ROLLOUT, "altershield.defense.antgroup.com/released-by"}


def test_audit_names_the_policy_or_the_obstacle() -> None:
    response = ask(MUTATE, review(workload("busybox:2"), workload()), stepped())
    assert response["auditAnnotations"]["in-steps"] == "default/web@3"
    owned = workload("busybox:2")
    owned["metadata"] = {
        **owned["metadata"],
        "ownerReferences": [{"kind": "Canary", "name": "c", "uid": "u", "controller": True}],
    }
    response = ask(MUTATE, review(owned, workload()), stepped())
    assert response["auditAnnotations"]["not-in-steps"] == "Canary c controls it"
    assert ROLLOUT not in patched(owned, response)["metadata"]["annotations"]
    assert validate(patched(owned, response), workload(), stepped())["allowed"] is True


@pytest.mark.parametrize(
    "change",
    [
        {"ownerReferences": [CANARY]},
        {"annotations": {"rollouts.kruise.io/in-progressing": "{}"}},
        {"annotations": {"batchrelease.rollouts.kruise.io/control-info": "{}"}},
    ],
)
def test_release_that_another_controller_makes_is_not_held(change: Object) -> None:
    new = workload("busybox:2")
    new["metadata"] = {**new["metadata"], **change}
    found, warnings = mutate(new, workload(), stepped())
    assert ROLLOUT not in found["metadata"]["annotations"]
    assert warnings == []
    assert validate(found, workload(), stepped())["allowed"] is True


def test_new_workload_and_one_without_pods_are_not_held() -> None:
    created, _ = mutate(workload(), None, stepped())
    assert ROLLOUT not in created["metadata"]["annotations"]
    old, new = workload(), workload("busybox:2")
    for each in (old, new):
        each["spec"].pop("replicas", None)
        if about().kind != "DaemonSet":
            each["spec"]["replicas"] = 0
        each["status"] = {"desiredNumberScheduled": 0}
    found, _ = mutate(new, old, stepped())
    assert ROLLOUT not in found["metadata"]["annotations"]


def test_modes_that_do_not_enforce_hold_nothing() -> None:
    for mode, expected in ((Mode.OBSERVE, 0), (Mode.WARN, 1)):
        found, warnings = mutate(workload("busybox:2"), workload(), stepped(policy(mode)))
        assert ROLLOUT not in found["metadata"]["annotations"]
        assert len(warnings) == expected
        assert all("would reach 1 of 5 pods first" in each for each in warnings)


def test_policy_is_selected_by_the_labels_of_users() -> None:
    other = stepped(policy(app="other"))
    assert ROLLOUT not in mutate(workload("busybox:2"), workload(), other)[0]["metadata"]["annotations"]
    own = stepped(InForce("default", "a", 1, Spec(Selector({labels.VERSION: "1"}))), policy(app="sleep"))
    found, _ = mutate(workload("busybox:2"), workload(), own)
    assert ROLLOUT in found["metadata"]["annotations"]
    assert validate(found, workload(), own)["allowed"] is True


def test_releases_wait_until_the_policies_are_known() -> None:
    listers = StaticListers(policies=StaticPolicies(filled=False))
    for which in (MUTATE, VALIDATE):
        served = route(which)
        with pytest.raises(ReviewError) as caught:
            decide(served, served.decode(encode(review(workload("busybox:2"), workload()))), listers)
        assert caught.value.code == 503
    labelled = workload()
    labelled["metadata"]["labels"]["a"] = "b"
    assert ask(VALIDATE, review(labelled, workload()), listers)["allowed"] is True


def test_base_ends_the_hold_without_a_policy_too() -> None:
    for listers in (stepped(), StaticListers()):
        found, warnings = mutate(annotated(workload(), held()["metadata"]["annotations"][ROLLOUT]), held(), listers)
        assert ROLLOUT not in found["metadata"]["annotations"]
        assert {**found["spec"], "template": None} == {**workload()["spec"], "template": None}
        assert not any(ROLLOUT in each for each in warnings)


def test_dropped_annotation_comes_back_with_a_warning() -> None:
    before = held()
    found, warnings = mutate(annotated(before, None), before, StaticListers())
    assert found == before
    assert warnings == [f"AlterShield: only AlterShield writes the annotation {ROLLOUT}: it came back"]
    copied, warnings = mutate(held(), None, stepped())
    assert ROLLOUT not in copied["metadata"]["annotations"]
    assert {**copied["spec"], "template": None} == {**workload()["spec"], "template": None}
    assert warnings == [f"AlterShield: only AlterShield writes the annotation {ROLLOUT}: it was removed"]


def test_edited_field_takes_effect_when_the_release_is_over() -> None:
    field, value, path = {
        "Deployment": ("minReadySeconds", 9, "spec.minReadySeconds"),
        "StatefulSet": (
            "updateStrategy",
            {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}},
            "spec.updateStrategy.rollingUpdate.partition",
        ),
        "DaemonSet": ("updateStrategy", {"type": "Other"}, "spec.updateStrategy.type"),
        "CloneSet": ("updateStrategy", {"type": "ReCreate", "partition": 2}, "spec.updateStrategy.partition"),
    }[about().kind]
    before = held()
    new = {**before, "spec": {**before["spec"], field: value}}
    found, warnings = mutate(new, before, StaticListers())
    assert warnings == [
        f"AlterShield: {kind()} sleep is released in steps: {path} takes effect when the release is over"
    ]
    assert hold_of(found).write == 2
    assert hold_of(found).pods == 1
    response = validate(new, before, StaticListers())
    assert response["status"]["message"] == (
        f"AlterShield: {kind()} sleep has other values than its release in steps gives it, try again"
    )


def test_reconciler_takes_the_next_step_and_ends_the_hold() -> None:
    known = hold_of(held())
    cause = msgspec.structs.replace(known.causes[0], pods=3)
    next_step = msgspec.json.encode(msgspec.structs.replace(known, causes=(cause,), write=2)).decode()
    new = annotated(held(), next_step)
    found, warnings = mutate(new, held(), stepped(), user=RECONCILER)
    assert (hold_of(found).pods, warnings) == (3, [])
    assert validate(found, held(), stepped(), user=RECONCILER)["allowed"] is True
    if about().kind != "DaemonSet":
        assert found["spec"] != held()["spec"]
        assert validate(new, held(), stepped(), user=RECONCILER)["allowed"] is False
    ended = {
        **annotated(held(), None),
        "spec": {**workload("busybox:2")["spec"], "template": held()["spec"]["template"]},
    }
    assert mutate(ended, held(), stepped(), user=RECONCILER)[0] == ended


def test_rollback_by_the_reconciler_is_not_held() -> None:
    listers = stepped(releases=rolling_back())
    found, _ = mutate(workload("busybox:2"), workload(), listers, user=RECONCILER)
    assert ROLLOUT not in found["metadata"]["annotations"]
    assert validate(found, workload(), listers, user=RECONCILER)["allowed"] is True


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("spec", "replicas"), "five"),
        (("spec", "strategy"), "fast"),
        (("spec", "updateStrategy"), [1]),
        (("spec", "minReadySeconds"), {}),
        (("metadata", "annotations"), {ROLLOUT: 7}),
        (("metadata", "ownerReferences"), "none"),
    ],
)
def test_field_of_another_type_is_refused(where: tuple[str, str], value: Any) -> None:
    new = json.loads(json.dumps(workload("busybox:2")))
    new[where[0]][where[1]] = value
    served = route(MUTATE)
    with pytest.raises(ReviewError) as caught:
        decide(served, served.decode(encode(review(new, workload()))), stepped())
    assert caught.value.code == 400
