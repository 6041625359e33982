"""Which budgets can keep the controller of a workload from deleting pods."""

from typing import Any

import pytest

from altershield.budgets.exhausted import groups_of, keeps_from_deletion
from tests.unit.altershield.budgets.builders import DEPLOYMENT, budget, groups, pod, web


@pytest.mark.parametrize(
    ("spec", "wanted"), [({}, True), ({"mode": "Warn"}, False), ({"protectOperations": ["EVICT"]}, False)]
)
def test_only_an_enforced_budget_for_deletions_keeps_pods_from_deletion(spec: dict[str, Any], wanted: bool) -> None:
    own = list(groups([pod("web-1")]))
    assert keeps_from_deletion(budget(maxUnavailable=1, **spec), own, web(3)) is wanted


def test_budget_keeps_pods_of_a_workload_if_it_covers_one_of_them() -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    own = groups_of(DEPLOYMENT.uid, groups([pod("web-1")]), web(1))
    assert keeps_from_deletion(budget(maxUnavailable=0), own, web(1))
    assert keeps_from_deletion(budget(maxUnavailable=0, targetRef=target), own, web(1))
    assert groups_of("another", groups([pod("web-1")]), web(1)) == []
    assert not keeps_from_deletion(budget(maxUnavailable=0), [], web(1))
    ignoring = budget(maxUnavailable=0, ignoredPodSelector={"matchLabels": {"app": "web"}})
    assert not keeps_from_deletion(ignoring, own, web(1))
    unlabelled = groups_of(DEPLOYMENT.uid, groups([pod("x", labels={"app": "x"})]), web(1))
    assert not keeps_from_deletion(budget(maxUnavailable=0), unlabelled, web(1))
