"""Whether a disruption is admitted: the order of the questions, the texts, and changes in place."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from altershield.api import labels
from altershield.api.budgets import (
    MAX_RECORDS,
    DisruptionRecord,
    Operation,
    PodUnavailableBudget,
    PodUnavailableBudgetStatus,
)
from altershield.budgets.changes import Changes, WireContainer, WireSpec, bounded, changes, shown, shows_of
from altershield.budgets.decision import charge, step
from altershield.budgets.index import PodIndex
from altershield.budgets.numbers import Counted, counted
from altershield.budgets.pods import Pod
from altershield.budgets.records import settled
from altershield.budgets.steps import AwaitPods, Disruption, Passed, ReadOwners, Refused, Reserve, Step
from altershield.workloads.meta import Owner
from kube_base.meta import OwnerReference
from kube_base.times import rfc3339
from tests.unit.altershield.budgets.builders import (
    DEPLOYMENT,
    LABELS,
    NAMESPACE,
    NOW,
    SET,
    Cluster,
    budget,
    pod,
    scaled,
    web,
)

EXCEEDED = "PodUnavailableBudget web: 3 of 3 pods are available and 3 must be (maxUnavailable 0)"


class World:
    """Three ready pods of a Deployment, unless a test gives others."""

    def __init__(
        self, *budgets: PodUnavailableBudget, pods: Sequence[Pod] | None = None, cluster: Cluster | None = None
    ) -> None:
        self.pods = [pod(f"web-{number}") for number in range(3)] if pods is None else list(pods)
        self.found = list(budgets)
        self.cluster = cluster or web(3)
        self.seen = 100
        self.pdb = ""
        self.terminating = False

    def scales(self, namespace: str) -> Cluster:
        return self.cluster

    def is_terminating(self, namespace: str) -> bool:
        return self.terminating

    def budgets(self, namespace: str) -> Sequence[PodUnavailableBudget]:
        return self.found

    def pod(self, namespace: str, name: str) -> Pod | None:
        return next((each for each in self.pods if each.name == name), None)

    def counted(self, budget: PodUnavailableBudget) -> tuple[Counted, int]:
        return counted(budget, PodIndex(self.pods).groups(NAMESPACE), self.cluster), self.seen

    def blocking_pdb(self, pod: Pod) -> str:
        return self.pdb


def asked(world: World, which: Pod | None = None, operation: Operation = Operation.DELETE, **fields: Any) -> Step:
    return step(Disruption(operation, which or world.pods[0], "ann", **fields), world, NOW)


def frozen(**spec: Any) -> PodUnavailableBudget:
    return budget(**{"maxUnavailable": 0, **spec})


def test_what_is_never_judged_passes_without_a_record() -> None:
    world = World(frozen())
    for fields in (
        {"deleting": True},
        {"phase": "Succeeded"},
        {"phase": "Failed"},
        {"annotations": {"kubernetes.io/config.mirror": "x"}},
        {"annotations": {"pub.kruise.io/no-protect": "true"}},
        {"labels": {"app": "other"}},
    ):
        assert asked(world, pod("web-0", version=2, **fields)) == Passed()
    assert asked(World(frozen(ignoredPodSelector={"matchLabels": LABELS}))) == Passed()
    assert asked(World(frozen(protectOperations=["EVICT"]))) == Passed()
    assert asked(World(frozen(), cluster=web(0))) == Passed(), "the workload is scaled to 0"
    assert asked(World(frozen(), cluster=Cluster(gone=["set-web"]))) == Passed(), "the garbage collector asks"
    world.terminating = True
    assert asked(world) == Passed()


def test_newer_of_cached_and_reviewed_pod_is_judged() -> None:
    world = World(frozen(), pods=[pod("web-0", version=5, deleting=True)])
    assert asked(world, pod("web-0", version=4)) == Passed()
    assert isinstance(asked(world, pod("web-0", version=6)), Refused)


def test_cached_pod_of_the_same_name_is_not_judged_in_place_of_the_pod_of_the_request() -> None:
    world = World(frozen(), pods=[pod("web-0", uid="other", version=5, deleting=True)])
    assert isinstance(asked(world, pod("web-0", version=4)), Refused)


def test_refusal_has_one_sentence_and_warnings_with_pods_and_the_way_out() -> None:
    assert asked(World(frozen())) == Refused(
        EXCEEDED,
        (
            "the budget allows no disruption at all: add pods, or raise maxUnavailable or lower minAvailable: "
            "kubectl edit pub web -n shop",
        ),
    )
    record = DisruptionRecord("web-1", Operation.EVICT, rfc3339(NOW), "bob")
    status = PodUnavailableBudgetStatus(disrupted_pods={"uid-web-1": record})
    pods = [pod("web-0"), pod("web-1"), pod("web-2", ready=False)]
    found = asked(World(budget(status, minAvailable="60%"), pods=pods))
    assert isinstance(found, Refused)
    assert found.message == "PodUnavailableBudget web: 1 of 3 pods are available and 2 must be (minAvailable 60%)"
    assert found.warnings == (
        "pod web-1 is not available: EVICT by bob at 2027-01-15T08:00:00Z",
        "pod web-2 is not available",
        "wait until other pods are available again, or raise maxUnavailable or lower minAvailable: "
        "kubectl edit pub web -n shop",
    )


def test_way_out_of_a_generated_budget_is_the_annotation_because_edits_are_put_back() -> None:
    owner = OwnerReference("Deployment", "web", "uid", "apps/v1", controller=True)
    way_out = "change the annotation policy.kruise.io/generate-pub-maxUnavailable or -minAvailable of Deployment web"
    for amount, text in (
        (0, f"the budget allows no disruption at all: add pods, or {way_out}"),
        (1, f"wait until other pods are available again, or {way_out}"),
    ):
        made = budget(maxUnavailable=amount)
        generated = {labels.MANAGED_BY: labels.MANAGED_BY_VALUE}
        metadata = msgspec.structs.replace(made.metadata, labels=generated, owner_references=(owner,))
        pods = [pod("web-0"), pod("web-1"), pod("web-2", ready=not amount)]
        found = asked(World(msgspec.structs.replace(made, metadata=metadata), pods=pods))
        assert isinstance(found, Refused)
        assert found.warnings[-1] == text


def test_pods_that_are_not_available_may_go_unless_the_budget_has_to_be_healthy() -> None:
    pods = [pod("web-0", ready=False), pod("web-1"), pod("web-2")]
    lax = frozen()
    assert asked(World(lax, pods=pods)) == Reserve(lax), "it may become ready before it is gone"
    assert asked(World(lax, pods=pods), dry_run=True) == Passed(covered=True)
    strict = frozen(unhealthyPodPolicy="IfHealthyBudget")
    found = asked(World(strict, pods=pods))
    assert isinstance(found, Refused)
    assert "2 of 3 pods are available and 3 must be" in found.message
    enough = budget(maxUnavailable=1, unhealthyPodPolicy="IfHealthyBudget")
    assert asked(World(enough, pods=pods)) == Reserve(enough)
    pending = [pod("web-0", ready=False, phase="Pending"), *pods[1:]]
    assert asked(World(strict, pods=pending)) == Reserve(strict), "it never served"


def test_record_of_a_pod_that_is_not_available_takes_no_slot_until_the_pod_becomes_available() -> None:
    pods = [pod("web-0", ready=False), pod("web-1"), pod("web-2")]
    free = budget(maxUnavailable=2)
    status, excesses = charge(free, [Disruption(Operation.DELETE, pods[0], "ann")], World(free, pods=pods), NOW)
    assert excesses == ("",)
    assert (status.current_available, status.unavailable_allowed) == (2, 1)
    became_ready = [pod("web-0", version=2), *pods[1:]]
    tight = budget(status, maxUnavailable=1)
    assert isinstance(asked(World(tight, pods=became_ready), became_ready[1]), Refused)


def test_eviction_that_a_pod_disruption_budget_blocks_is_not_reserved() -> None:
    world = World(budget(maxUnavailable=1))
    world.pdb = "guard"
    assert asked(world, operation=Operation.EVICT) == Refused(
        "Cannot evict pod as it would violate the pod's disruption budget guard.", by_pdb=True
    )
    assert isinstance(asked(world), Reserve), "a deletion asks no PodDisruptionBudget"


def test_pod_disruption_budget_is_not_asked_about_a_pod_that_is_not_available() -> None:
    """The API server decides about such a pod by the policy of the PodDisruptionBudget."""
    world = World(budget(maxUnavailable=1), pods=[pod("web-0", ready=False), pod("web-1"), pod("web-2")])
    world.pdb = "guard"
    assert asked(world, operation=Operation.EVICT) == Reserve(world.found[0])


def test_dry_run_gets_the_same_verdict_and_asks_for_no_record() -> None:
    assert asked(World(budget(maxUnavailable=1)), dry_run=True) == Passed(covered=True)
    assert isinstance(asked(World(frozen()), dry_run=True), Refused)


def test_break_glass_is_recorded_and_warned_about_and_mode_warn_only_warns() -> None:
    assert isinstance(asked(World(frozen()), break_glass=True), Reserve)
    _, excesses = charge(frozen(), [Disruption(Operation.DELETE, pod("web-0"), "ann", True)], World(frozen()), NOW)
    assert excesses == (EXCEEDED,)
    dry = asked(World(frozen()), break_glass=True, dry_run=True)
    assert dry == Passed((f"passed by break glass, and recorded: {EXCEEDED}",), broken_glass=True, covered=True)
    warned = asked(World(frozen(mode="Warn")))
    text = f"the budget has the mode Warn; with Enforce, this request would be refused: {EXCEEDED}"
    assert warned == Passed((text,), only_warned=True, covered=True)


def test_record_says_who_passed_the_budget_by_break_glass_also_after_the_request_is_repeated() -> None:
    of_ann = Disruption(Operation.DELETE, pod("web-0"), "ann", break_glass=True)
    status, _ = charge(frozen(), [of_ann], World(frozen()), NOW)
    (first,) = status.disrupted_pods.values()
    assert (first.by, first.break_glass) == ("ann", True)
    admits = budget(status, maxUnavailable=3)
    status, _ = charge(admits, [Disruption(Operation.DELETE, pod("web-0"), "bob")], World(admits), NOW + 20)
    (again,) = status.disrupted_pods.values()
    assert again == msgspec.structs.replace(first, time=rfc3339(NOW + 20))
    free = budget(maxUnavailable=1)
    status, _ = charge(free, [of_ann], World(free), NOW)
    assert [record.break_glass for record in status.disrupted_pods.values()] == [False], "the budget admits it anyway"


def test_record_names_the_user_who_passed_the_budget_by_break_glass_last() -> None:
    status, _ = charge(
        frozen(), [Disruption(Operation.DELETE, pod("web-0"), "ann", break_glass=True)], World(frozen()), NOW
    )
    again = frozen()
    again = msgspec.structs.replace(again, status=status)
    by_bob = Disruption(Operation.DELETE, pod("web-0"), "bob", break_glass=True)
    status, _ = charge(again, [by_bob], World(again), NOW + 20)
    assert [(record.by, record.break_glass) for record in status.disrupted_pods.values()] == [("bob", True)]


def test_break_glass_on_a_pod_that_is_not_available_is_recorded_if_the_budget_would_refuse_it() -> None:
    strict = frozen(unhealthyPodPolicy="IfHealthyBudget")
    down = pod("web-0", ready=False)
    world = World(strict, pods=[down, pod("web-1"), pod("web-2")])
    refused = asked(world)
    assert isinstance(refused, Refused)
    assert asked(world, break_glass=True) == Reserve(strict)
    status, excesses = charge(strict, [Disruption(Operation.DELETE, down, "ann", break_glass=True)], world, NOW)
    assert excesses == (refused.message,)
    assert [(record.by, record.break_glass) for record in status.disrupted_pods.values()] == [("ann", True)]
    assert status.current_available == 2
    lax = World(frozen(), pods=world.pods)
    assert asked(lax, break_glass=True) == Reserve(lax.found[0]), "nobody would refuse it"


def test_full_status_refuses_further_disruptions() -> None:
    record = DisruptionRecord("gone", Operation.DELETE, rfc3339(NOW))
    status = PodUnavailableBudgetStatus(disrupted_pods={f"u{number}": record for number in range(MAX_RECORDS)})
    found = asked(World(budget(status, maxUnavailable=1)))
    assert isinstance(found, Refused)
    assert "too many disruptions are under way" in found.message
    down = World(budget(status, maxUnavailable=1), pods=[pod("web-0", ready=False), pod("web-1"), pod("web-2")])
    assert asked(down) == Passed(covered=True), "a pod that does not serve is not kept for a record"
    strict = World(budget(status, maxUnavailable=0, unhealthyPodPolicy="IfHealthyBudget"), pods=down.pods)
    assert isinstance(asked(strict), Refused)


@pytest.mark.parametrize("allowed", [0, 1])
def test_break_glass_passes_a_full_status_and_leaves_no_record(allowed: int) -> None:
    record = DisruptionRecord("gone", Operation.DELETE, rfc3339(NOW))
    status = PodUnavailableBudgetStatus(disrupted_pods={f"u{number}": record for number in range(MAX_RECORDS)})
    full = budget(status, maxUnavailable=allowed)
    found = asked(World(full), break_glass=True)
    assert isinstance(found, Passed)
    assert found.broken_glass
    assert not found.only_warned
    assert "not recorded" in found.warnings[0]
    unchanged, excesses = charge(full, [Disruption(Operation.DELETE, pod("web-0"), "ann", True)], World(full), NOW)
    assert excesses == (None,)
    assert unchanged == status, "the API server refuses a status with more records"


def test_what_is_missing_is_read_first() -> None:
    assert asked(World(frozen(), cluster=Cluster())) == ReadOwners((SET,))
    status = PodUnavailableBudgetStatus(pods_resource_version="101")
    made = budget(status, maxUnavailable=1)
    assert asked(World(made)) == AwaitPods(made, 101)


def test_pod_is_not_counted_beside_its_predecessor_that_an_old_cache_has() -> None:
    of = budget(maxUnavailable=0)
    successor = pod("web-0", uid="other", version=101)
    assert asked(World(of), successor) == AwaitPods(of, 101)
    assert asked(World(of), pod("web-0", uid="other", version=101, ready=False)) == Reserve(of)


def test_all_budgets_of_a_pod_have_to_agree_and_nothing_is_reserved_before() -> None:
    free, full = budget(name="a", maxUnavailable=3), budget(name="b", maxUnavailable=0)
    assert isinstance(asked(World(free, full)), Refused)
    other = budget(name="b", maxUnavailable=1)
    world = World(free, other)
    first = asked(world)
    assert first == Reserve(free)
    second = step(Disruption(Operation.DELETE, world.pods[0], "ann"), world, NOW, reserved=frozenset({"budget-a"}))
    assert second == Reserve(other)


def test_pod_with_very_many_budgets_is_refused_without_asking_all_of_them_unless_they_only_warn() -> None:
    many = [budget(name=f"b{number:02}", maxUnavailable=1) for number in range(21)]
    text = "21 PodUnavailableBudgets cover the pod, and a pod can have at most 20: delete some of them"
    assert asked(World(*many)) == Refused(text)
    assert asked(World(*many[:20])) == Reserve(many[0])
    assert isinstance(asked(World(*many), break_glass=True), Reserve)
    warning = [budget(name=f"b{number:02}", maxUnavailable=0, mode="Warn") for number in range(21)]
    assert isinstance(asked(World(*warning)), Passed)
    assert asked(World(*warning, budget(maxUnavailable=0))) == asked(World(budget(maxUnavailable=0)))


def test_pod_with_as_many_budgets_as_it_can_have_is_decided_by_all_of_them() -> None:
    enforcing = [budget(name=f"b{number:02}", maxUnavailable=1) for number in range(20)]
    warning = budget(name="z", maxUnavailable=0, mode="Warn")
    found = asked(World(*enforcing[:19], warning), dry_run=True)
    assert isinstance(found, Passed)
    assert found.only_warned
    assert asked(World(*enforcing, warning)) == Reserve(enforcing[0])


def test_record_of_an_earlier_request_is_written_again_if_another_budget_decides_too() -> None:
    """The other budget may still refuse the earlier request, and its record would then be removed."""
    record = DisruptionRecord("web-0", Operation.DELETE, rfc3339(NOW))
    status = PodUnavailableBudgetStatus(disrupted_pods={"uid-web-0": record})
    first, other = budget(status, name="a", maxUnavailable=3), budget(name="b", maxUnavailable=3)
    assert asked(World(first)) == Passed(covered=True)
    assert asked(World(first, other)) == Reserve(first)


def test_full_status_has_room_for_the_pods_that_have_a_record_already() -> None:
    old = DisruptionRecord("web-0", Operation.DELETE, rfc3339(NOW - 20))
    others = {f"gone-{number}": old for number in range(MAX_RECORDS - 1)}
    full = budget(PodUnavailableBudgetStatus(disrupted_pods={"uid-web-0": old, **others}), maxUnavailable=1)
    assert asked(World(full)) == Reserve(full)


def test_charge_admits_waiting_requests_in_their_order_as_far_as_the_budget_goes() -> None:
    world = World(budget(maxUnavailable=1))
    waiting = [Disruption(Operation.DELETE, each, "x" * 300) for each in (world.pods[0], world.pods[0], world.pods[1])]
    status, excesses = charge(world.found[0], waiting, world, NOW)
    assert excesses == ("", "", None)
    assert (status.current_available, status.unavailable_allowed, status.pods_resource_version) == (2, 0, "1")
    (record,) = status.disrupted_pods.values()
    assert len(record.by) == 128


SPEC = {"containers": [{"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "1"}}}]}


def changed(before: Any = None, after: Any = None, **fields: Any) -> Changes:
    old, new = (msgspec.convert(each or SPEC, WireSpec) for each in (before, after))
    return changes(pod("web-0"), pod("web-0", version=2, **fields), old, new)


def resized(policy: str = "", **more: Any) -> Any:
    container: dict[str, Any] = {"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "2"}}}
    if policy:
        container["resizePolicy"] = [{"resourceName": "cpu", "restartPolicy": policy}]
    return {"containers": [container], **more}


LIMITED = {**SPEC["containers"][0], "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}
SIDE = {"name": "side", "image": "side:1"}


@pytest.mark.parametrize(
    ("made", "operation"),
    [
        ({}, None),
        ({"annotations": {"a": "b"}}, None),
        ({"labels": {**LABELS, "tier": "x"}}, None),
        ({"after": {**SPEC, "tolerations": [{"key": "x"}]}}, None),
        ({"after": {"containers": [{**SPEC["containers"][0], "image": "web:2"}]}}, Operation.UPDATE),
        ({"before": {**SPEC, "initContainers": [SIDE]}, "after": {**SPEC, "initContainers": [SIDE]}}, None),
        (
            {
                "before": {**SPEC, "initContainers": [SIDE]},
                "after": {**SPEC, "initContainers": [SIDE | {"image": "x"}]},
            },
            Operation.UPDATE,
        ),
        ({"after": {**SPEC, "activeDeadlineSeconds": 5}}, Operation.UPDATE),
        ({"before": {**SPEC, "activeDeadlineSeconds": 5}, "after": {**SPEC, "activeDeadlineSeconds": 5}}, None),
        (
            {"before": {**SPEC, "activeDeadlineSeconds": 5}, "after": {**SPEC, "activeDeadlineSeconds": 4}},
            Operation.UPDATE,
        ),
        ({"before": {**SPEC, "activeDeadlineSeconds": 5}}, None),
        ({"labels": {**LABELS, "unavailable-pod.kruise.io/x": ""}}, Operation.UPDATE),
        ({"labels": {**LABELS, "apps.kruise.io/specified-delete": "true"}}, Operation.UPDATE),
        ({"labels": {"app": "other"}}, Operation.UPDATE),
        ({"owner": None}, Operation.UPDATE),
        ({"after": resized()}, Operation.RESIZE),
        ({"after": {"containers": [LIMITED]}}, Operation.RESIZE),
        (
            {"before": {"containers": [*SPEC["containers"], SIDE]}, "after": {"containers": [LIMITED, SIDE]}},
            Operation.RESIZE,
        ),
        ({"after": resized("NotRequired")}, Operation.RESIZE),
        ({"after": resized("RestartContainer")}, Operation.UPDATE),
    ],
)
def test_update_is_judged_by_what_it_changes(made: Any, operation: Operation | None) -> None:
    for protected in (Operation.UPDATE, Operation.RESIZE):
        world = World(frozen(protectOperations=[protected]))
        found = asked(world, operation=Operation.UPDATE, changes=changed(**made))
        assert isinstance(found, Refused) == (protected == operation)


def test_update_of_a_pod_that_is_out_of_service_already_takes_it_out_no_second_time() -> None:
    out = {**LABELS, "unavailable-pod.kruise.io/x": ""}
    made = changes(pod(labels=out), pod(labels={**out, "tier": "x"}), WireSpec(), WireSpec())
    assert not made.disrupts


def test_pod_that_loses_its_controller_shows_that_it_has_left() -> None:
    assert shows_of(changed(owner=None), pod(), 2, left=False) == "left"


def test_record_has_room_for_changes_of_1024_characters() -> None:
    assert bounded("x" * 1024) == "x" * 1024
    assert bounded("x" * 1025) == "both"


def test_pod_that_leaves_its_workload_by_a_label_is_judged() -> None:
    cluster = Cluster(scaled(DEPLOYMENT, 3), scaled(SET, 3, above=DEPLOYMENT))
    target = frozen(targetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"})
    world = World(target, cluster=cluster)
    assert isinstance(asked(world, operation=Operation.UPDATE, changes=changed(labels={"app": "x"})), Refused)


def test_pod_that_its_workload_does_not_select_leaves_nothing_by_a_label() -> None:
    target = frozen(targetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"})
    odd = {"app": "odd"}
    made = changes(pod(labels=odd), pod(labels={**odd, "tier": "x"}), WireSpec(), WireSpec())
    assert asked(World(target), pod("web-0", labels=odd, version=2), Operation.UPDATE, changes=made) == Passed()


def test_record_of_a_restart_has_the_ids_that_the_request_has() -> None:
    """The cache may be older, and would show the restart before it happens."""
    world = World(budget(maxUnavailable=1))
    asked_for = Disruption(
        Operation.RESTART, world.pods[0], "ann", restarts=("web",), container_ids=(("web", "ffffffffffff"),)
    )
    status, _ = charge(world.found[0], [asked_for], world, NOW)
    (record,) = status.unavailable_pods.values()
    assert record.shows.startswith("restarted:web=ffffffffffff#")


@pytest.mark.parametrize(
    ("shows", "fields", "covered", "found"),
    [
        ("restarted:web=0123456789ab", {}, True, False),
        ("restarted:web=0123456789ab", {"containers": {"web": "f" * 64}}, True, True),
        ("restarted:web=0123456789ab", {"containers": {"web": "f" * 64}, "ready": False}, True, False),
        ("restarted:web=0123456789ab", {"containers": {}}, True, False),
        ("resized:3", {"observed": 2}, True, False),
        ("resized:3", {"observed": 3}, True, True),
        ("resized:3", {"observed": 3, "ready": False}, True, False),
        ("resized:3", {"observed": 3, "conditions": {"PodResizeInProgress": "True"}}, True, False),
        ("resized:3", {"observed": 3, "conditions": {"PodResizePending": "True"}}, True, False),
        ("resized:0", {"observed": 0}, True, False),
        ("labelled", {}, True, False),
        ("labelled", {"labels": {**LABELS, "unavailable-pod.kruise.io/x": ""}}, True, True),
        ("labelled", {"labels": {**LABELS, "apps.kruise.io/specified-delete": "true"}}, True, True),
        ("left", {}, True, False),
        ("left", {}, False, True),
        ("restarted:web=0123456789ab;left", {"containers": {"web": "f" * 64}}, True, False),
        ("ends", {}, True, False),
        ("", {}, True, False),
    ],
)
def test_change_in_place_shows_as_its_record_says(shows: str, fields: Any, covered: bool, found: bool) -> None:
    record = DisruptionRecord("web-0", Operation.UPDATE, rfc3339(NOW), "ann", shows)
    assert shown(record, pod("web-0", **fields), covered=covered) == found


def test_second_change_of_a_pod_is_added_to_its_record() -> None:
    first = DisruptionRecord("web-0", Operation.UPDATE, rfc3339(NOW), "ann", "restarted:web=000000000000")
    status = PodUnavailableBudgetStatus(unavailable_pods={"uid-web-0": first})
    made = Changes(restarted=("web",), digest="1")
    for fields in ({}, {"ready": False}):
        pods = [pod("web-0", **fields), pod("web-1"), pod("web-2")]
        world = World(budget(status, maxUnavailable=1), pods=pods)
        again = Disruption(Operation.UPDATE, pods[0], "ann", changes=made)
        written, _ = charge(world.found[0], [again], world, NOW)
        (record,) = written.unavailable_pods.values()
        assert record.shows == "restarted:web=000000000000;restarted:web=0123456789ab#1"


@pytest.mark.parametrize("ready", [True, False])
def test_second_restart_of_a_container_that_has_not_restarted_yet_is_held_until_its_record_runs_out(
    ready: bool,
) -> None:
    """Another container id shows the first restart only. The second one would take the pod away without a record."""
    first = DisruptionRecord("web-0", Operation.UPDATE, rfc3339(NOW), "ann", "restarted:web=0123456789ab#1")
    status = PodUnavailableBudgetStatus(unavailable_pods={"uid-web-0": first})
    pods = [pod("web-0", ready=ready), pod("web-1"), pod("web-2")]
    world = World(budget(status, maxUnavailable=1), pods=pods)
    again = Disruption(Operation.UPDATE, pods[0], "ann", changes=Changes(restarted=("web",), digest="2"))
    assert isinstance(step(again, world, NOW), Reserve)
    written, _ = charge(world.found[0], [again], world, NOW)
    (record,) = written.unavailable_pods.values()
    assert not shown(record, pod("web-0", containers={"web": "f" * 64}), covered=True)
    repeated = Disruption(Operation.UPDATE, pods[0], "ann", changes=Changes(restarted=("web",), digest="1"))
    assert step(repeated, world, NOW) == Passed(covered=True), "the API server asks again after a conflict"


def test_change_of_so_many_containers_that_the_record_cannot_name_them_is_held_until_it_runs_out() -> None:
    names = tuple(f"{number:063}" for number in range(20))
    before = pod("web-0", containers=dict.fromkeys(names, "0" * 64))
    after = pod("web-0", containers=dict.fromkeys(names, "f" * 64), version=2)
    world = World(budget(maxUnavailable=1), pods=[before, pod("web-1"), pod("web-2")])
    for disruption in (
        Disruption(Operation.UPDATE, before, "ann", changes=Changes(restarted=names, digest="1")),
        Disruption(Operation.RESTART, before, "ann", restarts=names),
    ):
        written, _ = charge(world.found[0], [disruption], world, NOW)
        (record,) = written.unavailable_pods.values()
        assert len(record.shows) <= 1024
        for now, kept in ((NOW + 599, 1), (NOW + 601, 0)):
            assert len(kept_records(written, after, now)) == kept


@pytest.mark.parametrize("shows", ["restarted:web", "restarted:,=,#", ";:", "resized:x"])
def test_record_of_a_change_that_cannot_be_read_runs_out(shows: str) -> None:
    record = DisruptionRecord("web-0", Operation.UPDATE, rfc3339(NOW), "ann", shows)
    status = PodUnavailableBudgetStatus(unavailable_pods={"uid-web-0": record})
    again = Disruption(Operation.UPDATE, pod("web-0"), "ann", changes=Changes(restarted=("web",), digest="1"))
    assert isinstance(step(again, World(budget(status, maxUnavailable=1)), NOW), Reserve)
    assert kept_records(status, pod("web-0"), NOW + 601) == {}


def kept_records(status: PodUnavailableBudgetStatus, known: Pod, now: float) -> dict[str, DisruptionRecord]:
    """The records of changes in place that the reconciler keeps. A live read shows the same pod."""
    live = {known.name: known}
    return settled(status, find=lambda _: known, covered=lambda _: True, seen=99, now=now, live=live).unavailable_pods


def test_restarts_to_other_images_or_by_other_requests_have_other_digests() -> None:
    before, one, two = (WireSpec(containers=(WireContainer("web", f"web:{each}"),)) for each in range(3))
    digests = [changes(pod(), pod(), before, after).digest for after in (one, one, two)]
    assert digests[0] == digests[1] != digests[2]
    assert changes(pod(), pod(), one, one).digest == ""


def test_records_of_pods_that_are_gone_or_replaced_are_dropped_with_the_version_that_shows_it() -> None:
    record = DisruptionRecord("web-0", Operation.DELETE, rfc3339(NOW))
    status = PodUnavailableBudgetStatus(disrupted_pods={"uid-web-0": record}, pods_resource_version="50")
    for cached, kept in (
        (None, 0), (pod("web-0", uid="another"), 0), (pod("web-0", deleting=True), 0), (pod("web-0"), 1),
    ):  # fmt: skip
        found = settled(
            status, find=lambda name, cached=cached: cached, covered=lambda _: True, seen=60, now=NOW, live={}
        )
        assert len(found.disrupted_pods) == kept
        assert found.pods_resource_version == ("50" if kept else "60")


@pytest.mark.parametrize("written", ["garbage", "", "2027-02-31T00:00:00Z", "2099-01-01T00:00:00Z"])
def test_record_with_a_time_that_is_none_or_in_the_future_runs_out_as_a_record_of_now(written: str) -> None:
    record = DisruptionRecord("web-0", Operation.DELETE, written)
    status = PodUnavailableBudgetStatus(disrupted_pods={"uid-web-0": record})
    world = World(budget(status, maxUnavailable=1))
    assert asked(world) == Reserve(world.found[0]), "the time is written again"
    assert isinstance(asked(world, world.pods[1]), Refused)
    alive = {"web-0": pod("web-0")}
    kept = settled(status, find=alive.get, covered=lambda _: True, seen=1, now=NOW, live=alive)
    assert kept.disrupted_pods["uid-web-0"].time == rfc3339(NOW)
    status = msgspec.structs.replace(status, disrupted_pods=kept.disrupted_pods)
    assert not settled(status, find=alive.get, covered=lambda _: True, seen=1, now=NOW + 41, live=alive).disrupted_pods


def test_pod_without_a_controller_that_gets_one_whose_pods_are_to_go_is_judged() -> None:
    bare = [pod(f"web-{number}", owner=None) for number in range(3)]
    gone = Owner("apps/v1", "ReplicaSet", "gone", "gone")
    world = World(budget(minAvailable=3), pods=bare, cluster=Cluster(*web(3).objects.values(), gone=["gone"]))

    def adopted(by: Owner) -> Step:
        made = changes(bare[0], pod("web-0", owner=by, version=2), WireSpec(), WireSpec())
        assert made.possible
        return asked(world, bare[0], Operation.UPDATE, changes=made)

    assert isinstance(adopted(gone), Refused), "the garbage collector would delete it"
    assert adopted(SET) == Passed()
    unknown = Owner("apps/v1", "ReplicaSet", "unknown", "unknown")
    assert adopted(unknown) == ReadOwners((unknown,))


def test_owner_is_read_before_labels_are_compared_with_its_selector() -> None:
    made = Changes(old_labels=LABELS, new_labels={"app": "web", "more": "x"})
    of = budget(selector={"matchLabels": LABELS}, maxUnavailable=0)
    assert asked(World(of, cluster=Cluster()), operation=Operation.UPDATE, changes=made) == ReadOwners((SET,))
