"""The queries of the caches: which budgets there are, what they count, and which one keeps pods from deletion."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from altershield.api.budgets import PodUnavailableBudget
from altershield.budget_caches.caches import BudgetCaches
from altershield.budget_caches.disruption_budgets import DisruptionBudget
from kube_base.access.client import Client
from kube_base.access.configuration import Configuration
from kube_base.resources import DEPLOYMENTS, REPLICA_SETS
from tests.unit.altershield.budgets.builders import DEPLOYMENT, LABELS, NAMESPACE, SET, budget, pod, scaled


@pytest.fixture
async def caches() -> AsyncIterator[BudgetCaches]:
    """They have a Deployment with three ready pods."""
    async with Client(Configuration(host="http://127.0.0.1")) as client:
        found = BudgetCaches(client, lambda namespace: True, lambda namespace: False)
        found.namespaces.has_budget = lambda namespace: True  # type: ignore[method-assign]
        found._scaled[DEPLOYMENTS].observe(scaled(DEPLOYMENT, 3))
        found._scaled[REPLICA_SETS].observe(scaled(SET, 3, above=DEPLOYMENT))
        for number in range(3):
            found.pods_informer.observe(pod(f"web-{number}"))
        yield found


def observed(caches: BudgetCaches, *budgets: PodUnavailableBudget) -> None:
    for each in budgets:
        caches.budgets_informer.observe(each)


def test_budgets_are_sorted_by_name_without_those_that_are_being_deleted(caches: BudgetCaches) -> None:
    going = budget(name="b", maxUnavailable=1)
    metadata = msgspec.structs.replace(going.metadata, deletion_timestamp="2027-01-15T08:00:00Z")
    going = msgspec.structs.replace(going, metadata=metadata)
    observed(caches, *(budget(name=name, maxUnavailable=1) for name in "ca"), going)
    assert [each.metadata.name for each in caches.budgets(NAMESPACE)] == ["a", "c"]


def test_pods_are_counted_again_after_a_change_of_the_budget_a_pod_or_a_workload(caches: BudgetCaches) -> None:
    of = budget(maxUnavailable=1)

    def numbers(each: PodUnavailableBudget) -> tuple[int, int, int]:
        found, _ = caches.counted(each)
        return found.total, found.desired, len(found.available)

    assert numbers(of) == (3, 2, 3)
    assert caches.counted(of)[0] is caches.counted(of)[0]
    caches.pods_informer.observe(pod("web-0", version=2, ready=False))
    assert numbers(of) == (3, 2, 2)
    caches._scaled[DEPLOYMENTS].observe(msgspec.structs.replace(scaled(DEPLOYMENT, 5), packed_version=2))
    assert numbers(of) == (5, 4, 2)
    assert numbers(budget(maxUnavailable=2)) == (5, 3, 2)


def test_sets_without_pods_are_not_kept(caches: BudgetCaches) -> None:
    old = msgspec.structs.replace(SET, name="web-old", uid="set-old")
    caches._scaled[REPLICA_SETS].observe(scaled(old, 0, above=DEPLOYMENT))
    assert caches.scales.of(NAMESPACE).get(old) is None
    assert caches.scales.of(NAMESPACE).get(SET) is not None


def test_budget_that_admits_no_deletion_of_the_pods_of_a_workload_is_named(caches: BudgetCaches) -> None:
    observed(caches, budget(name="free", maxUnavailable=1), budget(name="frozen", maxUnavailable=0))
    assert caches.exhausted_budget(NAMESPACE, DEPLOYMENT.uid) == "frozen"
    assert caches.exhausted_budget(NAMESPACE, "another") == ""
    assert caches.exhausted_budget("other", DEPLOYMENT.uid) == ""


def test_budgets_of_other_workloads_are_not_counted_to_find_the_budget_of_a_workload(
    caches: BudgetCaches, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = (
        budget(name=f"other-{number}", maxUnavailable=0, selector={"matchLabels": {"app": f"other-{number}"}})
        for number in range(3)
    )
    admitting = budget(name="admitting", maxUnavailable=0, mode="Warn")
    observed(caches, *others, admitting, budget(name="web", maxUnavailable=0))
    counted: list[str] = []
    count = caches.counted

    def recorded(each: PodUnavailableBudget) -> Any:
        counted.append(each.metadata.name)
        return count(each)

    monkeypatch.setattr(caches, "counted", recorded)
    assert caches.exhausted_budget(NAMESPACE, DEPLOYMENT.uid) == "web"
    assert counted == ["web"]
    assert caches.exhausted_budget(NAMESPACE, "another") == ""
    assert counted == ["web"]


@pytest.mark.parametrize(
    ("selector", "allowed", "blocks"),
    [
        ({"matchLabels": LABELS}, 0, True),
        ({}, 0, True),
        (None, 0, False),
        ({"matchLabels": LABELS}, 1, False),
        ({"matchLabels": {"app": "other"}}, 0, False),
    ],
)
def test_pod_disruption_budget_blocks_evictions_of_its_pods_while_it_allows_none(
    caches: BudgetCaches, selector: Any, allowed: int, blocks: bool
) -> None:
    made = {"metadata": {"name": "guard", "namespace": NAMESPACE, "uid": "g", "resourceVersion": "1"}}
    of: dict[str, Any] = {"spec": {"selector": selector}, "status": {"disruptionsAllowed": allowed}}
    caches.disruption_budgets.observe(msgspec.convert(made | of, DisruptionBudget))
    assert caches.blocking_pdb(pod()) == ("guard" if blocks else "")


def test_namespace_is_filled_once_its_pods_and_the_first_lists_are_there(caches: BudgetCaches) -> None:
    observed(caches, budget(maxUnavailable=1))
    assert not caches.is_filled(NAMESPACE)
    for informer in (*caches.required, *caches.counted_informers):
        informer._reflector.synced.set()
    assert caches.is_filled(NAMESPACE)
    other = budget(maxUnavailable=1)
    metadata = msgspec.structs.replace(other.metadata, namespace="other", uid="other")
    observed(caches, msgspec.structs.replace(other, metadata=metadata))
    assert not caches.is_filled("other"), "its pods are being listed"


@pytest.mark.parametrize(
    ("status", "policy", "phase", "blocks"),
    [
        ({}, None, "Running", True),
        ({}, "AlwaysAllow", "Running", False),
        ({}, None, "Pending", False),
        ({"disruptionsAllowed": 1}, None, "Running", False),
        ({"currentHealthy": 2, "desiredHealthy": 2}, None, "Running", False),
        ({"currentHealthy": 2, "desiredHealthy": 2}, "IfHealthyBudget", "Running", False),
        ({"currentHealthy": 1, "desiredHealthy": 2}, None, "Running", True),
    ],
)
def test_eviction_of_an_unready_pod_is_refused_as_by_the_api_server(
    status: dict[str, int], policy: str | None, phase: str, blocks: bool
) -> None:
    made = {
        "metadata": {"name": "guard", "namespace": NAMESPACE, "uid": "g", "resourceVersion": "1"},
        "spec": {"selector": {"matchLabels": LABELS}, "unhealthyPodEvictionPolicy": policy},
        "status": status,
    }
    unready = pod(ready=False, phase=phase)
    assert msgspec.convert(made, DisruptionBudget).blocks_unready(unready) is blocks
