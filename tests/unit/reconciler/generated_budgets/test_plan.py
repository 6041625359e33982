"""Which budget the annotations of a workload and its Namespace ask for, and what is done about it."""

import json
from typing import Any

import msgspec
import pytest

from altershield.api import labels
from altershield.api.annotations import GENERATE, ROLLOUT
from altershield.api.budgets import PodUnavailableBudget
from altershield.workloads.workload import Workload
from kube_base.meta import ObjectMeta
from reconciler.generated_budgets.budget_plan import RESOURCES, Budget, DisruptionBudget, LiveWorkload, Plan, plan
from reconciler.generated_budgets.wanted import Amount, BudgetKind, Invalid, wanted_amount
from tests.support.workloads import BY_NAME
from tests.unit.altershield.workloads import objects

Object = dict[str, Any]
UID = "3f1c9a52-0d4e-4a43-8a30-1f6f3a1f0c11"
SELECTOR = {"matchLabels": {"app": "web"}}
HALF = Amount("maxUnavailable", "50%")
TYPES: dict[BudgetKind, Any] = {BudgetKind.PUB: PodUnavailableBudget, BudgetKind.PDB: DisruptionBudget}


def workload(kind: str = "Deployment", generate: Object | None = None, **spec: Any) -> Workload:
    annotations = {f"{GENERATE}{key}": value for key, value in (generate or {}).items()}
    return objects.workload(kind, metadata={"annotations": annotations}, **spec)


def asked(generate: Object, default: Object | None = None) -> Amount | Invalid | None:
    return wanted_amount(BudgetKind.PUB, workload(generate=generate, strategy={"type": "Recreate"}), default or {})


@pytest.mark.parametrize(
    ("generate", "default", "wanted"),
    [
        ({}, {}, None),
        ({"pdb": "true"}, {}, None),
        ({"pub": "true"}, {}, Amount("maxUnavailable", 1)),
        ({"pub": "true", "pub-maxUnavailable": "20%"}, {}, Amount("maxUnavailable", "20%")),
        ({"pub": "true", "pub-maxUnavailable": "0"}, {}, Amount("maxUnavailable", 0)),
        ({"pub": "true", "pub-minAvailable": "3", "pdb-maxUnavailable": "1"}, {}, Amount("minAvailable", 3)),
        ({}, {"pub": "true", "pub-minAvailable": "80%"}, Amount("minAvailable", "80%")),
        ({"pub-maxUnavailable": "2"}, {"pub": "true", "pub-minAvailable": "80%"}, Amount("maxUnavailable", 2)),
        ({"pub": "false"}, {"pub": "true"}, None),
        ({"pub": "true", "pub-minAvailable": "123456789"}, {}, Amount("minAvailable", 123456789)),
    ],
)
def test_annotations_of_the_workload_have_precedence_over_those_of_the_namespace(
    generate: Object, default: Object, wanted: Amount | None
) -> None:
    assert asked(generate, default) == wanted


@pytest.mark.parametrize(
    ("generate", "message"),
    [
        ({"pub": "yes"}, 'generate-pub is "yes": write'),
        ({"pub": "true", "pub-maxUnavailable": "1", "pub-minAvailable": "1"}, "are set: remove one of them"),
        ({"pub": "true", "pub-maxUnavailable": "101%"}, 'generate-pub-maxUnavailable is "101%": write a number'),
        ({"pub": "true", "pub-minAvailable": "1234567890"}, "write a number"),
        ({"pub": "true", "pub-minAvailable": "-1"}, 'generate-pub-minAvailable is "-1": write a number'),
        ({"pub": "true", "pub-minAvailable": "٣"}, "write a number"),
    ],
)
def test_wrong_annotations_ask_for_no_budget_and_say_why(generate: Object, message: str) -> None:
    found = asked(generate)
    assert isinstance(found, Invalid)
    assert message in found.message
    own = budget(BudgetKind.PUB, HALF, owner=UID)
    assert plan(BudgetKind.PUB, found, live(), [own]) == Plan(None, None, (own,), "BudgetInvalid", found.message)


@pytest.mark.parametrize(
    ("kind", "spec", "amount"),
    [
        ("Deployment", {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}}}, "25%"),
        # 0 would block every drain
        ("Deployment", {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}}}, 1),
        ("Deployment", {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "0%"}}}, 1),
        ("StatefulSet", {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}}, 1),
        ("StatefulSet", {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}}, 2),
        ("StatefulSet", {"updateStrategy": {"type": "OnDelete"}}, 1),
        ("DaemonSet", {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}}}, "10%"),
        ("CloneSet", {}, "20%"),
        ("CloneSet", {"updateStrategy": {"maxUnavailable": 3}}, 3),
    ],
)
def test_amount_is_that_of_the_update_strategy(kind: str, spec: Object, amount: int | str) -> None:
    assert wanted_amount(BudgetKind.PDB, workload(kind, {"pdb": "true"}, **spec), {}) == Amount(
        "maxUnavailable", amount
    )


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_amount_of_a_held_workload_is_that_of_the_user(kind: str) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    adapter, hold = BY_NAME[kind], {"causes": [{"by": "pause"}], "fields": {"/spec/updateStrategy": strategy}}
    (paused,) = adapter.pause()
    annotations = {f"{GENERATE}pdb": "true", ROLLOUT: json.dumps(hold)}
    held = objects.workload(kind, metadata={"annotations": annotations}, updateStrategy=paused["value"])
    assert held.in_force.max_unavailable == 1
    assert wanted_amount(BudgetKind.PDB, held, {}) == Amount("maxUnavailable", 2)


def live(*, replicas: int = 3, name: str = "web", **metadata: Any) -> LiveWorkload:
    resource = BY_NAME["Deployment"].resource
    return LiveWorkload(
        resource, ObjectMeta(name=name, namespace="shop", uid=UID, **metadata), replicas, SELECTOR, {"app": "web"}
    )


def budget(
    sort: BudgetKind,
    amount: Amount,
    *,
    name: str = "web",
    owner: str = "",
    by: str = labels.MANAGED_BY_VALUE,
    **spec: Any,
) -> Budget:
    """`owner`: the uid of its controller. `by`: who made one that has a controller."""
    references = [{"kind": "Deployment", "name": "web", "uid": owner, "controller": True}] if owner else []
    covered = spec or ({"selector": SELECTOR} if sort == BudgetKind.PDB else {"targetRef": reference("web")})
    metadata = {"name": name, "namespace": "shop", "uid": name, "ownerReferences": references}
    if owner:
        metadata["labels"] = {labels.MANAGED_BY: by}
    obj = {"metadata": metadata, "spec": {**covered, amount.field: amount.amount}}
    found: Budget = msgspec.convert(obj, TYPES[sort])
    return found


def reference(name: str, kind: str = "Deployment", api_version: str = "apps/v1") -> Object:
    return {"apiVersion": api_version, "kind": kind, "name": name}


@pytest.mark.parametrize("sort", BudgetKind)
def test_budget_is_created_once_and_follows_the_annotations(sort: BudgetKind) -> None:
    made = plan(sort, HALF, live(), []).create
    assert made is not None
    covered = {"selector": SELECTOR} if sort == BudgetKind.PDB else {"targetRef": reference("web")}
    assert made["spec"] == {**covered, "maxUnavailable": "50%"}
    assert (made["kind"], made["metadata"]["name"]) == (RESOURCES[sort].kind, "web")
    existing: Budget = msgspec.convert(made, TYPES[sort])
    assert plan(sort, HALF, live(), [existing]) == Plan()
    other = Amount("minAvailable", 2)
    assert plan(sort, other, live(), [existing]).replace == (existing, {**covered, "minAvailable": 2})


@pytest.mark.parametrize("sort", BudgetKind)
def test_no_budget_for_one_replica_or_a_workload_that_is_deleted_or_asks_for_none(sort: BudgetKind) -> None:
    own = budget(sort, HALF, owner=UID)
    for wanted, found in (
        (HALF, live(replicas=1)),
        (HALF, live(deletion_timestamp="2026-01-01T00:00:00Z")),
        (None, live()),
    ):
        assert plan(sort, wanted, found, [own]) == Plan(delete=(own,))
        assert plan(sort, wanted, found, []) == Plan()


@pytest.mark.parametrize(
    ("sort", "spec"),
    [
        (BudgetKind.PDB, {"selector": {}}),
        (BudgetKind.PDB, {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}),
        (BudgetKind.PUB, {"selector": SELECTOR}),
        (BudgetKind.PUB, {"targetRef": reference("web", api_version="apps/v1beta1")}),
    ],
)
def test_budget_of_a_user_has_precedence(sort: BudgetKind, spec: Object) -> None:
    own, users = budget(sort, HALF, owner=UID), budget(sort, HALF, name="mine", **spec)
    found = plan(sort, HALF, live(), [own, users])
    assert (found.create, found.replace, found.delete, found.reason) == (None, None, (own,), "BudgetSkipped")
    assert "mine of this namespace covers the pods already" in found.message


@pytest.mark.parametrize("sort", BudgetKind)
def test_budget_that_another_controller_made_for_the_workload_counts_as_one_of_a_user(sort: BudgetKind) -> None:
    other = budget(sort, Amount("maxUnavailable", 1), name="theirs", owner=UID, by="another")
    found = plan(sort, HALF, live(), [other])
    assert (found.create, found.replace, found.delete, found.reason) == (None, None, (), "BudgetSkipped")


@pytest.mark.parametrize(
    ("sort", "spec"),
    [
        (BudgetKind.PDB, {"selector": {"matchLabels": {"app": "other"}}}),
        (BudgetKind.PDB, {}),
        (BudgetKind.PDB, {"selector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}}),
        (BudgetKind.PUB, {"targetRef": reference("other")}),
        (BudgetKind.PUB, {"targetRef": reference("web", api_version="example.com/v1")}),
        (BudgetKind.PUB, {"targetRef": reference("web", kind="StatefulSet")}),
    ],
)
def test_budget_of_another_workload_only_takes_the_name(sort: BudgetKind, spec: Object) -> None:
    users = budget(sort, HALF, **(spec or {"selector": None}))
    made = plan(sort, HALF, live(), [users]).create
    assert made is not None
    assert made["metadata"]["name"] == "web-deployment-auto"
    long = "w" * 253
    taken = budget(sort, HALF, name=long, **(spec or {"selector": None}))
    made = plan(sort, HALF, live(name=long), [taken]).create
    assert made is not None
    assert len(made["metadata"]["name"]) == 253


@pytest.mark.parametrize("sort", BudgetKind)
def test_budget_of_a_user_who_copied_the_labels_of_a_generated_one_has_precedence(sort: BudgetKind) -> None:
    users = budget(sort, HALF, name="mine")
    generated = {labels.MANAGED_BY: labels.MANAGED_BY_VALUE}
    users = msgspec.structs.replace(users, metadata=msgspec.structs.replace(users.metadata, labels=generated))
    assert plan(sort, HALF, live(), [users]).reason == "BudgetSkipped"


def test_generated_budget_that_covers_other_pods_is_put_right_and_a_second_one_is_deleted() -> None:
    wrong = budget(BudgetKind.PUB, HALF, owner=UID, targetRef=reference("other"))
    surplus = budget(BudgetKind.PUB, HALF, name="second", owner=UID)
    found = plan(BudgetKind.PUB, HALF, live(), [wrong, surplus])
    assert found == Plan(replace=(wrong, {"targetRef": reference("web"), "maxUnavailable": "50%"}), delete=(surplus,))
