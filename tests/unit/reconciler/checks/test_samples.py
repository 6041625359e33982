"""Which samples of a check by PromQL fail, and what follows from them."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api.check_specs import CheckSpec, PrometheusCheck
from reconciler.checks.check import Fail, Pass, Pending, Unknown
from reconciler.checks.prometheus_answers import NO_DATA, Reading
from reconciler.checks.samples import MAX_TIMES, Sample, conclude, first_time, problem, times_until
from tests.unit.reconciler.checks.subjects import STARTED, check

COMPARED = {"max": "", "baseline_query": "up"}


def spec(**fields: Any) -> PrometheusCheck:
    found = check(**fields).prometheus
    assert found is not None
    return found


def one(sample: Sample, **fields: Any) -> str:
    """`passes`, `fails` or the reason why the sample is not known."""
    answer = conclude(spec(samples=1, **fields), [sample], last=True)
    match answer:
        case Pass():
            return "passes"
        case Fail():
            return "fails"
        case _:
            return answer.reason


@pytest.mark.parametrize(
    ("value", "result"), [(0.1, "passes"), (0.1000001, "fails"), (0.05, "passes"), (0.0499, "fails"), (-1.0, "fails")]
)
def test_bounds_include_their_own_value(value: float, result: str) -> None:
    assert one(Sample(value), min="0.05", max="0.1") == result


@pytest.mark.parametrize(
    ("value", "baseline", "result"),
    [(1.0, 1.0, "passes"), (1.5, 1.0, "passes"), (1.51, 1.0, "fails"), (0.5, 0.0, "passes"), (-9.0, -8.0, "passes")],
)
def test_increase_over_the_old_version_is_bounded(value: float, baseline: float, result: str) -> None:
    assert one(Sample(value, baseline), max_increase="0.5", **COMPARED) == result


@pytest.mark.parametrize(
    ("value", "baseline", "result"),
    [(2.0, 1.0, "passes"), (2.01, 1.0, "fails"), (0.0, 0.0, "passes"), (0.0, 7.0, "passes"), (-1.0, 0.0, "passes")],
)
def test_ratio_to_the_old_version_is_bounded(value: float, baseline: float, result: str) -> None:
    assert one(Sample(value, baseline), max_ratio="2", **COMPARED) == result


@pytest.mark.parametrize(("value", "baseline"), [(0.01, 0.0), (0.01, -1.0), (-3.0, -1.0)])
def test_ratio_to_a_baseline_that_has_no_multiple_is_unknown(value: float, baseline: float) -> None:
    assert "which has no multiple: set maxIncrease too" in one(Sample(value, baseline), max_ratio="2", **COMPARED)


@pytest.mark.parametrize(
    ("value", "baseline", "result"),
    [
        (0.011, 0.001, "passes"),  # eleven times as much, but little
        (1.1, 1.0, "passes"),
        (3.0, 1.0, "fails"),
        (0.05, 0.0, "passes"),
        (0.2, 0.0, "fails"),
        (-0.5, -1.0, "fails"),
    ],
)
def test_with_both_bounds_a_sample_fails_that_exceeds_both(value: float, baseline: float, result: str) -> None:
    assert one(Sample(value, baseline), max_increase="0.1", max_ratio="2", **COMPARED) == result


def test_threshold_decides_also_where_the_old_version_is_unknown() -> None:
    fields = {**COMPARED, "max": "1", "max_ratio": "2"}
    assert one(Sample(5.0, NO_DATA), **fields) == "fails"
    assert "baselineQuery: no data" in one(Sample(0.5, NO_DATA), **fields)


@pytest.mark.parametrize(
    ("count", "baseline_count", "text"),
    [
        (99.0, 100.0, "countQuery: 99 is less than minCount 100"),
        (100.0, 99.0, "baselineCountQuery: 99 is less than minCount 100"),
        (NO_DATA, 100.0, "countQuery: no data"),
        (100.0, NO_DATA, "baselineCountQuery: no data"),
    ],
)
def test_sample_of_too_few_events_is_unknown(count: Reading, baseline_count: Reading, text: str) -> None:
    fields = {"max_ratio": "2", "count_query": "up", "baseline_count_query": "up", "min_count": 100, **COMPARED}
    assert text in one(Sample(9.0, 1.0, count, baseline_count), **fields)
    assert one(Sample(9.0, 1.0, 100.0, 100.0), **fields) == "fails"


def test_check_fails_with_the_first_sample_above_the_limit() -> None:
    bad, good = Sample(2.0), Sample(0.0)
    limited = spec(samples=4, failure_limit=1)
    assert conclude(limited, [bad], last=False) == Pending("1 of 4 samples are known")
    assert conclude(limited, [bad, good, bad], last=False) == Fail("2 is above max 1 (2 samples failed, 1 may fail)")
    assert conclude(limited, [bad, good, good], last=True) == Unknown("3 of 4 samples are known")
    assert conclude(limited, [bad, good, good, good, bad], last=False) == Pass("3 of 4 samples passed")


def test_unknown_sample_is_replaced_by_a_later_one() -> None:
    good, unknown = Sample(0.0), Sample(NO_DATA)
    assert conclude(spec(samples=2), [unknown, good], last=False) == Pending(
        "1 of 2 samples are known; the last one that is not: query: no data"
    )
    assert conclude(spec(samples=2), [unknown, good, unknown, good], last=True) == Pass("2 of 2 samples passed")


def test_check_without_samples_is_unknown_at_the_deadline() -> None:
    assert conclude(spec(), [], last=True) == Unknown("0 of 3 samples are known; no sample is old enough")
    assert isinstance(conclude(spec(), [Sample(NO_DATA)] * 9, last=True), Unknown)


READINGS = st.none() | st.just(NO_DATA) | st.floats(-3, 3)
SAMPLES = st.lists(st.builds(Sample, st.just(NO_DATA) | st.floats(-3, 3), READINGS, READINGS, READINGS), max_size=20)
CHECKS = st.builds(
    lambda ratio, increase, samples, limit: spec(
        samples=samples, failure_limit=limit, max_ratio=ratio, max_increase=increase, baseline_query="up"
    ),
    st.sampled_from(("", "0.5", "2")),
    st.sampled_from(("", "0", "1")),
    st.integers(1, 6),
    st.integers(0, 3),
)


@given(CHECKS, SAMPLES)
def test_later_samples_never_change_a_result(definition: PrometheusCheck, samples: list[Sample]) -> None:
    answers = [conclude(definition, samples[:count], last=False) for count in range(len(samples) + 1)]
    for earlier, later in pairwise(answers):
        assert isinstance(earlier, Pending) or later == earlier


@given(CHECKS, SAMPLES)
def test_unknown_samples_have_no_part_in_a_result(definition: PrometheusCheck, samples: list[Sample]) -> None:
    def is_known(sample: Sample) -> bool:
        return isinstance(conclude(spec_of_one(definition), [sample], last=True), Pass | Fail)

    known = [sample for sample in samples if is_known(sample)]
    answer = conclude(definition, samples, last=True)
    if isinstance(answer, Unknown):
        assert isinstance(conclude(definition, known, last=True), Unknown)
        assert len(known) < definition.samples
    else:
        assert conclude(definition, known, last=True) == answer
        assert not isinstance(answer, Pass) or len(known) >= definition.samples


def spec_of_one(definition: PrometheusCheck) -> PrometheusCheck:
    return msgspec.structs.replace(definition, samples=1, failure_limit=0)


def test_samples_are_read_when_they_are_old_enough() -> None:
    definition = spec(interval_seconds=10, initial_delay_seconds=30, lag_seconds=5)
    assert first_time(definition, STARTED) == STARTED + 40
    deadline = STARTED + 120.0
    expected = {0: 0, 44.9: 0, 45: 1, 54: 1, 55: 2, 115: 8, 120: 8, 9999: 8}
    assert {
        after: times_until(definition, STARTED, STARTED + after, deadline) for after in expected
    } == expected  # after the deadline, no more samples are read
    assert times_until(definition, STARTED, STARTED - 1e9, deadline) == 0
    assert times_until(spec(interval_seconds=1), STARTED, STARTED + 86400, STARTED + 86400.0) == MAX_TIMES


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"query": " "}, "query is empty"),
        ({"query": "{{x}}"}, "query: {{x}} is not a placeholder"),
        ({"count_query": "{{x}}", "min_count": 1}, "countQuery: {{x}} is not a placeholder"),
        ({"baseline_query": "{{x}}", "max_ratio": "2"}, "baselineQuery: {{x}} is not a placeholder"),
        ({"max": "1e3"}, "max: '1e3' is not a decimal number"),
        ({"min": "NaN"}, "min: 'NaN' is not"),
        ({"min": "Infinity"}, "min:"),
        ({"min": "٣"}, "min:"),
        ({"min": "+1"}, "min:"),
        ({"min": "1_0"}, "min:"),
        ({"min": "1."}, "min:"),
        ({"min": " 1"}, "min:"),
        ({"min": "1\n"}, "min:"),
        ({"max": ""}, "there is no bound"),
        ({"min": "2", "max": "1"}, "min is above max"),
        ({"max_ratio": "2"}, "maxIncrease and maxRatio need baselineQuery"),
        ({"baseline_query": "up"}, "baselineQuery needs maxIncrease or maxRatio"),
        ({"baseline_query": "up", "max_increase": "-1"}, "maxIncrease is negative"),
        ({"baseline_query": "up", "max_ratio": "0"}, "maxRatio is not above 0"),
        ({"count_query": "up"}, "countQuery and minCount need each other"),
        ({"min_count": 1}, "countQuery and minCount need each other"),
        ({"count_query": "up", "min_count": 1, "baseline_query": "up", "max_ratio": "2"}, "baselineCountQuery"),
        ({"baseline_count_query": "up"}, "baselineCountQuery"),
        ({"failure_limit": 3}, "failureLimit is not below samples"),
        ({"timeout": 34}, "the samples take 35 s, which is longer than timeoutSeconds 34"),
        ({"url": "http://prometheus.svc/?x="}, "url has a query or a fragment"),
        ({"url": "http://prometheus.svc/#x"}, "url has a query or a fragment"),
    ],
)
def test_check_that_cannot_work_is_refused_with_the_reason(fields: dict[str, Any], text: str) -> None:
    assert text in problem(check(**fields))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"min": "-0.5", "max": ""},
        {"timeout": 35},
        {"baseline_query": "up", "max_ratio": "1.5", "max_increase": "0", "max": ""},
        {"count_query": "up", "min_count": 1, "baseline_query": "up", "baseline_count_query": "up", "max_ratio": "2"},
    ],
)
def test_check_that_can_work_is_accepted(fields: dict[str, Any]) -> None:
    assert problem(check(**fields)) == ""


def test_other_checks_have_no_problem_here() -> None:
    assert problem(CheckSpec(name="x")) == ""
