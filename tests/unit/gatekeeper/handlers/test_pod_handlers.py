"""The handlers of requests about pods: what they ask budgets and flow controls, and how they answer."""

import inspect
import time
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from altershield.admission.registration import Operation as Verb
from altershield.api.budgets import BREAK_GLASS_GROUP, Operation, PodUnavailableBudgetSpec
from altershield.api.resources import POD_UNAVAILABLE_BUDGETS
from altershield.budgets import pods
from altershield.budgets.pods import Pod
from altershield.budgets.steps import Disruption, Passed, Refused
from altershield.flow_control.deletion import Deletion
from altershield.flow_control.texts import Hint
from gatekeeper.errors import ReviewError
from gatekeeper.handler import Handler
from gatekeeper.handlers.budgets import deletion, eviction, overlap, restart, update
from gatekeeper.handlers.budgets.reasons import Reason
from gatekeeper.handlers.flow_control import pods as counted
from gatekeeper.handlers.flow_control.reasons import Reason as CountedReason
from gatekeeper.records.flow_controls import Decided
from gatekeeper.request import Request, is_dry_run
from gatekeeper.response import NOTHING, Response
from gatekeeper.texts import PAGE_WARNING
from kube_base.access.errors import UnreachableError
from kube_base.resources import PODS, Resource
from tests.unit.altershield.budgets.builders import wire
from tests.unit.gatekeeper.reviews import RECONCILER, NoBudgets, NoFlowControls, StaticListers

Object = dict[str, Any]
ADMITTED = Passed(covered=True)
TERMINATING: Object = {"deleting": True}
GLASS: Object = {"groups": (BREAK_GLASS_GROUP,)}
EVICTION: Object = {"metadata": {"name": "web-1"}}
DRY: Object = {**EVICTION, "deleteOptions": {"dryRun": ["All"]}}


@dataclass
class StaticBudgets(NoBudgets):
    """Budgets that answer as a test says, and what they were asked."""

    verdict: Passed | Refused = ADMITTED
    cached: Pod | None = None
    live: Pod | None = None
    error: Exception | None = None
    full: bool = True
    other: str = ""
    asked: list[Disruption] = field(default_factory=list)

    def filled(self, namespace: str) -> bool:
        return self.full

    def protects(self, namespace: str) -> bool:
        return True

    def overlapping(self, namespace: str, spec: PodUnavailableBudgetSpec) -> str:
        return self.other

    def cached_pod(self, namespace: str, name: str) -> Pod | None:
        return self.cached

    async def read_pod(self, namespace: str, name: str) -> Pod | None:
        if self.error is not None:
            raise self.error
        return self.live

    def decide(self, disruption: Disruption) -> Passed | Refused | None:
        self.asked.append(disruption)
        return self.verdict


@dataclass
class StaticFlowControls(NoFlowControls):
    """Flow controls that answer as a test says, and what they were asked."""

    filled: bool = True
    exist: bool = True
    refuses: bool = False
    decided: Decided | None = None
    unread: Decided | None = None
    asked: list[tuple[Deletion, float]] = field(default_factory=list)

    def would_refuse(self, deletion: Deletion) -> bool:
        return self.refuses

    async def decide(self, deletion: Deletion, seconds: float) -> Decided | None:
        self.asked.append((deletion, seconds))
        return self.decided

    def decide_unread(self, pod: str) -> Decided | None:
        return self.unread


def read(**fields: Any) -> Pod:
    return pods.read(msgspec.json.encode(wire("web-1", **fields)))


async def answered(
    handler: Handler[Any],
    obj: Object,
    budgets: StaticBudgets | None = None,
    controls: StaticFlowControls | None = None,
    *,
    old: Object | None = None,
    resource: Resource = PODS,
    **fields: Any,
) -> Response:
    read = msgspec.convert(obj, handler.reads)
    about = {"user": "ann", "groups": (), "received": time.time(), **fields}
    about["dry_run"] = is_dry_run(about.get("dry_run"), read)
    request = Request(
        resource=resource,
        subresource="",
        operation=Verb.DELETE,
        name="web-1",
        namespace="shop",
        raw_options=msgspec.Raw(),
        object=read,
        old_object=msgspec.convert(old, handler.reads) if old is not None else None,
        memo={},
        **about,
    )
    listers = StaticListers(budgets=budgets or StaticBudgets(), flow_controls=controls or StaticFlowControls())
    found = handler.function(request, listers)
    return await found if inspect.isawaitable(found) else found


async def disrupted(handler: Handler[Any], obj: Object, old: Object | None = None, **fields: Any) -> list[Disruption]:
    """What the handler asks the budgets."""
    budgets = StaticBudgets(cached=read())
    await answered(handler, obj, budgets, old=old, **fields)
    return budgets.asked


async def counts(handler: Handler[Any], obj: Object, pod: Pod | None = None, **fields: Any) -> list[Deletion]:
    """What the handler asks the flow controls. `pod`: the pod that an eviction names."""
    controls = StaticFlowControls(refuses=True)
    await answered(handler, obj, StaticBudgets(live=pod), controls, **fields)
    return [asked for asked, _ in controls.asked]


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        (Passed(), None),
        (Passed(covered=True), Reason.ADMITTED),
        (Passed(("text",), only_warned=True, covered=True), Reason.WARNED),
        (Passed(("text",), broken_glass=True, only_warned=True, covered=True), Reason.BREAK_GLASS),
        (Refused("text"), Reason.EXCEEDED),
        (Refused("text", by_pdb=True), Reason.BLOCKED_BY_PDB),
    ],
)
async def test_reason_says_how_the_budgets_decided(verdict: Passed | Refused, reason: Reason | None) -> None:
    assert (await answered(deletion.judge, wire(), StaticBudgets(verdict))).reason == reason


@pytest.mark.parametrize(("handler", "code"), [(deletion.judge, 403), (eviction.judge, 429)])
async def test_refused_eviction_has_the_code_of_a_pod_disruption_budget_and_at_most_eight_warnings(
    handler: Handler[Any], code: int
) -> None:
    budgets = StaticBudgets(Refused("text", tuple(f"pod {number}" for number in range(20))), cached=read())
    found = await answered(handler, wire(), budgets)
    assert found.denial is not None
    causes = [each.reason for each in found.denial.causes]
    assert (found.denial.code, causes) == (code, ["DisruptionBudget"] if code == 429 else [])
    assert found.warnings[:1] == ("AlterShield: pod 0",)
    assert (len(found.warnings), found.warnings[-1]) == (9, PAGE_WARNING)


@pytest.mark.parametrize("handler", [deletion.judge, eviction.judge])
async def test_failure_policy_decides_while_the_budgets_are_not_known(handler: Handler[Any]) -> None:
    with pytest.raises(ReviewError) as error:
        await answered(handler, wire(), StaticBudgets(full=False))
    assert error.value.code == 503


async def test_disruption_has_the_user_and_whether_it_is_a_dry_run_or_break_glass() -> None:
    for handler, dry in ((deletion.judge, wire()), (eviction.judge, EVICTION)):
        (found,) = await disrupted(handler, dry)
        assert (found.by, found.dry_run, found.break_glass) == ("ann", False, False)
        (found,) = await disrupted(handler, dry, dry_run=True, **GLASS)
        assert (found.dry_run, found.break_glass) == (True, True)
    (found,) = await disrupted(eviction.judge, DRY)
    assert (found.operation, found.dry_run) == (Operation.EVICT, True)


async def test_terminating_pod_is_not_judged() -> None:
    assert await disrupted(deletion.judge, wire(**TERMINATING)) == []
    changed = wire(labels={"app": "other"})
    assert await disrupted(update.judge, changed, wire(**TERMINATING)) == []
    assert len(await disrupted(update.judge, changed, wire())) == 1


async def test_pod_has_the_namespace_of_the_request_if_its_metadata_has_none() -> None:
    obj = wire()
    del obj["metadata"]["namespace"]
    (found,) = await disrupted(deletion.judge, obj)
    assert found.pod.namespace == "shop"


async def test_update_is_asked_about_with_its_generation_if_it_can_disrupt_the_pod() -> None:
    before, after = wire(), wire(labels={"app": "other"})
    before["metadata"]["generation"], after["metadata"]["generation"] = 3, 4
    assert await disrupted(update.judge, before, before) == []
    (found,) = await disrupted(update.judge, after, before)
    assert (found.generation, found.pod.labels) == (4, {"app": "web"})


async def test_restart_names_its_containers_with_the_ids_that_it_has() -> None:
    containers = [
        {"name": "web", "statusContext": {"containerID": f"containerd://{'f' * 64}"}},
        {"name": "empty", "statusContext": {"containerID": ""}},
        {"name": "side"},
    ]
    spec = {"podName": "web-1", "containers": containers}
    (found,) = await disrupted(restart.judge, {"metadata": {"name": "again"}, "spec": spec})
    assert found.operation == Operation.RESTART
    assert (found.restarts, found.request_name) == (("web", "empty", "side"), "again")
    assert found.container_ids == (("web", "f" * 12),)
    assert await disrupted(restart.judge, {"metadata": {}, "spec": {**spec, "podName": ""}}) == []


@pytest.mark.parametrize(
    ("budgets", "user", "denied"),
    [
        (StaticBudgets(other="web covers pod web-1 too"), "ann", True),
        (StaticBudgets(other="web covers pod web-1 too"), RECONCILER, False),
        (StaticBudgets(other="web covers pod web-1 too", full=False), "ann", False),
        (StaticBudgets(), "ann", False),
    ],
)
async def test_budget_that_overlaps_is_denied_to_users_once_the_budgets_are_known(
    budgets: StaticBudgets, user: str, denied: bool
) -> None:
    found = await answered(overlap.deny, {"metadata": {}}, budgets, resource=POD_UNAVAILABLE_BUDGETS, user=user)
    assert (found.denial is not None) == denied


@pytest.mark.parametrize("refuses", [True, False])
async def test_flow_controls_decide_before_the_budgets_only_if_they_would_refuse(refuses: bool) -> None:
    for handler, obj in ((counted.refuse_deletion_early, wire()), (counted.refuse_eviction_early, EVICTION)):
        controls = StaticFlowControls(refuses=refuses, decided=Decided("guard", "full"))
        found = await answered(handler, obj, StaticBudgets(cached=read()), controls)
        assert (found.denial is not None, len(controls.asked)) == (refuses, int(refuses))
    for handler, obj in ((counted.count_deletion, wire()), (counted.count_eviction, EVICTION)):
        controls = StaticFlowControls(refuses=refuses, decided=Decided("guard"))
        assert (await answered(handler, obj, StaticBudgets(cached=read()), controls)).reason == CountedReason.COUNTED


@pytest.mark.parametrize("handler", [counted.count_deletion, counted.count_eviction])
async def test_failure_policy_decides_while_the_flow_controls_are_not_known(handler: Handler[Any]) -> None:
    with pytest.raises(ReviewError) as error:
        await answered(handler, wire(), controls=StaticFlowControls(filled=False))
    assert error.value.code == 503
    assert await answered(handler, wire(), controls=StaticFlowControls(exist=False)) is NOTHING


async def test_pods_that_are_gone_or_ending_are_not_counted() -> None:
    assert await counts(counted.count_deletion, wire(**TERMINATING)) == []
    assert await counts(counted.count_eviction, EVICTION, read(**TERMINATING)) == []
    assert await counts(counted.count_eviction, EVICTION) == []
    assert len(await counts(counted.count_eviction, EVICTION, read())) == 1


@pytest.mark.parametrize(
    ("condition", "ready", "exempt"),
    [
        ({}, False, True),
        ({}, True, False),
        ({"type": "Another"}, False, False),
        ({"status": "False"}, False, False),
        ({"reason": "PreemptionByScheduler"}, False, False),
    ],
)
async def test_taint_manager_is_not_refused_for_a_pod_that_does_not_serve(
    condition: Object, ready: bool, exempt: bool
) -> None:
    obj = wire(ready=ready)
    tainted = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
    obj["status"]["conditions"].append(tainted | condition)
    (found,) = await counts(counted.count_deletion, obj)
    assert (found.exempt, found.break_glass) == (exempt, False)


async def test_deletion_is_exempt_by_break_glass_and_a_dry_run_if_the_request_says_so() -> None:
    (found,) = await counts(counted.count_deletion, wire(), **GLASS)
    assert (found.exempt, found.break_glass) == (True, True)
    for obj, dry_run, wanted in ((EVICTION, False, False), (EVICTION, True, True), (DRY, False, True)):
        (found,) = await counts(counted.count_eviction, obj, read(), dry_run=dry_run)
        assert found.dry_run == wanted
    (found,) = await counts(counted.count_deletion, wire(), dry_run=True)
    assert found.dry_run


async def test_decision_has_the_time_that_the_request_has_left_and_a_little_at_least() -> None:
    for age, seconds in ((0, 4.5), (2, 2.5), (60, 0.5)):
        controls = StaticFlowControls()
        await answered(counted.count_deletion, wire(), controls=controls, received=time.time() - age)
        assert controls.asked[0][1] == pytest.approx(seconds, abs=0.4)


@pytest.mark.parametrize(("handler", "code"), [(counted.count_deletion, 403), (counted.count_eviction, 429)])
async def test_refusal_has_the_code_of_the_operation_and_says_whether_it_was_counted(
    handler: Handler[Any], code: int
) -> None:
    for busy, reason in ((False, CountedReason.BEYOND_LIMIT), (True, CountedReason.NOT_COUNTED)):
        refused = Decided("guard", "text", (Hint("run", "a command"),), busy=busy)
        found = await answered(handler, wire(), StaticBudgets(cached=read()), StaticFlowControls(decided=refused))
        assert found.denial is not None
        assert (found.denial.code, found.reason, found.audit) == (code, reason, {"flow-control": "guard"})
        assert found.warnings == ("AlterShield: run: a command", PAGE_WARNING)


async def test_break_glass_is_told_to_the_user_and_to_the_audit_log() -> None:
    controls = StaticFlowControls(decided=Decided("guard"))
    found = await answered(counted.count_deletion, wire(), controls=controls, **GLASS)
    assert (found.reason, found.audit) == (CountedReason.BREAK_GLASS, {"break-glass": "guard"})
    assert "break glass" in found.warnings[0]


async def test_eviction_of_a_pod_that_cannot_be_read_is_decided_without_it() -> None:
    unreachable = StaticBudgets(error=UnreachableError("down"))
    assert await answered(counted.count_eviction, EVICTION, unreachable) is NOTHING
    controls = StaticFlowControls(unread=Decided("guard", "text", busy=True))
    found = await answered(counted.count_eviction, EVICTION, unreachable, controls)
    assert found.reason == CountedReason.NOT_COUNTED
