"""The metrics of PodUnavailableBudgets and PodDeletionFlowControls."""

from typing import Any

import msgspec
import pytest
from prometheus_client.core import Metric

from altershield.api.budgets import PodUnavailableBudget, PodUnavailableBudgetStatus
from altershield.api.flow_control import BreakerMode, Mode, PodDeletionFlowControl
from reconciler.budgets import metrics as budget_metrics
from reconciler.flow_control import metrics as flow_control_metrics
from tests.unit.altershield.budgets.builders import budget
from tests.unit.altershield.flow_control.builders import NOW, asked, one, policy


def made(name: str = "web", *, generation: int = 1, **status: Any) -> PodUnavailableBudget:
    """A budget whose status describes generation 1."""
    found = budget(PodUnavailableBudgetStatus(observed_generation=1, **status), name=name, maxUnavailable=1)
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, generation=generation))


def samples(metric: Metric) -> dict[tuple[str, ...], float]:
    return {tuple(sample.labels.values()): sample.value for sample in metric.samples}


@pytest.mark.parametrize(
    ("of", "state"),
    [
        (made(desired_available=2, current_available=4, unavailable_allowed=2), "free"),
        (made(desired_available=2, current_available=2), "used-up"),
        (made(desired_available=2, current_available=1), "overdrawn"),
        (made(generation=2, desired_available=2, current_available=1), "not-reconciled"),
    ],
)
def test_budget_is_counted_in_one_state(of: PodUnavailableBudget, state: str) -> None:
    counts, _ = budget_metrics.families([of])
    assert {key for key, value in samples(counts).items() if value} == {(state,)}
    assert len(samples(counts)) == 4


def test_overdrawn_budgets_show_how_many_pods_they_lack_those_that_lack_most_first() -> None:
    many = [made(f"web-{number}", desired_available=number) for number in range(1, 301)]
    _, missing = budget_metrics.families([*many, made("free", unavailable_allowed=1)])
    assert samples(missing) == {("shop", f"web-{number}"): number for number in range(201, 301)}


def shown(of: PodDeletionFlowControl, now: float = NOW) -> tuple[str, float]:
    """The state of the breaker, and how much of the limit is used."""
    breakers, used, _ = map(samples, flow_control_metrics.families([of], now))
    assert len(breakers) == 3
    (state,) = (key[-1] for key, value in breakers.items() if value)
    return state, used["guard",]


def test_limit_and_breaker_are_shown_as_they_are_now_although_nobody_wrote_the_status_since() -> None:
    of = policy("1m/4", "10m/100", breaker=BreakerMode.AUTO, cooldown="5m")
    assert shown(of) == ("Closed", 0)
    of = asked(of, "a", "b", "c")
    assert shown(of) == ("Closed", 0.75)
    _, of = one(asked(of, "d"), "e")
    assert shown(of) == ("Open", 1)
    assert shown(of, NOW + 120) == ("Open", 0.04)
    assert shown(of, NOW + 300)[0] == "HalfOpen"
    assert shown(of, NOW + 400)[0] == "Closed"


def test_series_have_the_mode_and_the_share_of_the_warning_and_are_bounded() -> None:
    of = policy("10m/100", mode=Mode.WARN, warn_percent=70)
    breakers, _, warns = map(samples, flow_control_metrics.families([of], NOW))
    assert ("guard", "Warn", "Closed") in breakers
    assert warns == {("guard",): 0.7}
    many = [policy("10m/100", name=f"guard-{number:03}") for number in range(300)]
    assert [len(each.samples) for each in flow_control_metrics.families(many, NOW)] == [300, 100, 100]
