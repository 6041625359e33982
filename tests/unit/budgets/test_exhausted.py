"""Which budget keeps the controller of a workload from deleting pods."""

from typing import Any

import pytest

from altershield.budgets.exhausted import exhausted, protects_workload
from altershield.budgets.numbers import Numbers
from tests.unit.budgets.builders import DEPLOYMENT, budget, groups, pod, web


@pytest.mark.parametrize(
    ("spec", "current", "wanted"),
    [
        ({}, 2, True),
        ({}, 1, True),
        ({}, 3, False),
        ({"mode": "Warn"}, 2, False),
        ({"protectOperations": ["EVICT"]}, 2, False),
    ],
)
def test_only_an_enforced_budget_without_a_free_slot_keeps_pods_from_deletion(
    spec: dict[str, Any], current: int, wanted: bool
) -> None:
    assert exhausted(budget(maxUnavailable=1, **spec), Numbers(3, 2, current)) is wanted


def test_budget_protects_a_workload_if_it_covers_a_pod_of_it() -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    own = groups([pod("web-1")])
    assert protects_workload(budget(maxUnavailable=0), DEPLOYMENT.uid, own, web(1))
    assert protects_workload(budget(maxUnavailable=0, targetRef=target), DEPLOYMENT.uid, own, web(1))
    assert not protects_workload(budget(maxUnavailable=0), "another", own, web(1))
    ignoring = budget(maxUnavailable=0, ignoredPodSelector={"matchLabels": {"app": "web"}})
    assert not protects_workload(ignoring, DEPLOYMENT.uid, own, web(1))
    assert not protects_workload(
        budget(maxUnavailable=0), DEPLOYMENT.uid, groups([pod("x", labels={"app": "x"})]), web(1)
    )
