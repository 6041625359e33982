"""What `altershield budgets` says about a budget."""

from typing import Any

import msgspec
import pytest

from altershield.api.budgets import BudgetCondition, DisruptionRecord, Operation, PodUnavailableBudgetStatus
from altershield.api.meta import Condition
from altershield.budget_caches.disruption_budgets import DisruptionBudget
from altershield.budgets.index import PodIndex
from altershield.budgets.numbers import Numbers
from altershield.views.budgets.documents import budget_list
from altershield.views.budgets.figures import Surroundings, detail, figures, record_line
from command.budgets.printing import lines, table
from kube_base.times import rfc3339
from tests.unit.altershield.budgets.builders import LABELS, NOW, budget, pod, web

FULL = PodUnavailableBudgetStatus(
    observed_generation=1, total_replicas=3, desired_available=2, current_available=3, unavailable_allowed=1
)


def record(name: str, operation: Operation = Operation.DELETE, ago: float = 12, by: str = "ann") -> DisruptionRecord:
    return DisruptionRecord(name, operation, rfc3339(NOW - ago), by)


def around(*pods: Any, pdbs: Any = (), troubles: Any = None) -> Surroundings:
    return Surroundings(PodIndex(pods), web(3), troubles or {}, pdbs)


def pdb(allowed: int, **labels: str) -> DisruptionBudget:
    obj = {
        "metadata": {"name": f"pdb-{allowed}", "namespace": "shop", "uid": "1"},
        "spec": {"selector": {"matchLabels": labels}},
        "status": {"disruptionsAllowed": allowed},
    }
    return msgspec.convert(obj, DisruptionBudget)


def test_numbers_of_a_status_that_nobody_has_written_are_unknown() -> None:
    shown = figures(budget(maxUnavailable=1), NOW)
    assert (shown.numbers, shown.exhausted) == (None, False)
    (problem,) = shown.problems
    assert problem.startswith("no reconciler has counted its pods yet: check that the reconciler runs and that the ")
    assert table([shown], namespaces=True, wide=False)[1].split()[:4] == ["shop", "web", "Enforce", "<unknown>"]
    assert budget_list([shown]).items[0].allowed is None


def test_status_of_an_older_spec_and_conditions_are_problems() -> None:
    conditions = (
        Condition(BudgetCondition.OVERLAPPING, "True", "CoversTheSamePods", "other budgets cover pods of this one: b"),
        Condition(BudgetCondition.ALLOWED, "False", "InsufficientPods", "too few pods are available"),
    )
    status = msgspec.structs.replace(FULL, conditions=conditions)
    edited = budget(status, maxUnavailable=1)
    edited = msgspec.structs.replace(edited, metadata=msgspec.structs.replace(edited.metadata, generation=2))
    assert figures(edited, NOW).problems == (
        "the status does not describe the present spec yet",
        "other budgets cover pods of this one: b",
        "too few pods are available",
    )


@pytest.mark.parametrize(
    ("mode", "current", "exhausted"), [("Enforce", 2, True), ("Enforce", 3, False), ("Warn", 2, False)]
)
def test_only_an_enforced_budget_without_a_free_slot_is_exhausted(mode: str, current: int, exhausted: bool) -> None:
    status = msgspec.structs.replace(FULL, current_available=current)
    assert figures(budget(status, maxUnavailable=1, mode=mode), NOW).exhausted is exhausted


def test_detail_counts_anew_and_names_each_pod_that_is_away_and_why() -> None:
    status = msgspec.structs.replace(FULL, disrupted_pods={"uid-web-1": record("web-1")})
    shown = detail(
        budget(status, maxUnavailable="50%"),
        around(
            pod("web-1"),
            pod("web-2", ready=False),
            pod("web-3", labels={**LABELS, "apps.kruise.io/specified-delete": "true"}),
            pod("web-4", deleting=True),
            pod("web-5"),
            pod("other", labels={"app": "other"}, ready=False),
            troubles={"uid-web-2": "CrashLoopBackOff: back-off 10s"},
        ),
        NOW,
    )
    assert shown.figures.numbers == Numbers(3, 1, 1)
    assert shown.away == [
        ("web-1", f"DELETE by ann was admitted at {rfc3339(NOW - 12)}"),
        ("web-2", "CrashLoopBackOff: back-off 10s"),
        ("web-3", "a label takes it out of service"),
        ("web-4", "it is terminating"),
    ]
    assert shown.missing == 0


def test_pods_that_are_not_there_are_missing() -> None:
    shown = detail(budget(FULL, maxUnavailable=1), around(pod("web-1")), NOW)
    assert shown.missing == 2
    assert lines(shown, NOW, wide=False)[-1] == "Pods that should be there and are not: 2"


def test_disruption_budgets_that_allow_an_eviction_or_cover_other_pods_do_not_block() -> None:
    pdbs = [pdb(0, app="web"), pdb(1, app="web"), pdb(0, app="other")]
    shown = detail(budget(FULL, maxUnavailable=1), around(pod("web-1"), pdbs=pdbs), NOW)
    assert shown.blocking == ["pdb-0"]


@pytest.mark.parametrize(
    ("operation", "ago", "text"),
    [
        (Operation.DELETE, 12, "DELETE by ann 12s ago; the record runs out in 28s"),
        (Operation.EVICT, 60, "EVICT by ann 60s ago; the record has run out"),
        (Operation.UPDATE, 60, "UPDATE by ann 60s ago; the record runs out in 9m"),
    ],
)
def test_record_says_until_when_it_is_held(operation: Operation, ago: float, text: str) -> None:
    field = "unavailable_pods" if operation == Operation.UPDATE else "disrupted_pods"
    status = msgspec.structs.replace(FULL, **{field: {"uid-web-1": record("web-1", operation, ago)}})
    (found,) = figures(budget(status, maxUnavailable=1), NOW).records
    assert record_line(found, NOW) == text


def test_control_characters_do_not_reach_the_terminal() -> None:
    status = msgspec.structs.replace(FULL, disrupted_pods={"uid-web-1": record("web-1", by="ann\x1b[2J")})
    shown = lines(detail(budget(status, maxUnavailable=1), around(pod("web-1")), NOW), NOW, wide=False)
    assert "\x1b" not in "".join(shown)
