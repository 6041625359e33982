"""The comparison of new pods with the old version: its queries, and what follows from the answers."""

import dataclasses
import json
import subprocess
from pathlib import Path

import msgspec
import pytest

from altershield.api.change_workload import SourceRef
from altershield.api.check_specs import Against, CheckSpec, Compare, OnUnknown, PrometheusCheck
from reconciler.checks.check import Fail, Pass, Started, Subject, Unknown
from reconciler.checks.compare import queries_of
from reconciler.checks.samples import problem
from tests.support.tools import program
from tests.unit.altershield.releases.builders import NOW as RELEASED
from tests.unit.reconciler.checks.range_queries import Prometheus, poll, runner
from tests.unit.reconciler.checks.subjects import URL, subject

METRIC = 'sum(errors{namespace="$namespace", pod=~"$pods"})'
NEW = "sleep-7d4b9-abcde|sleep-7d4b9-fghij"
OLD = "sleep-5c6f8-[a-z0-9]{5}"
BEFORE = f"avg_over_time(((%s\n) > -Inf < Inf)[3600s:60s] @ {RELEASED})"
NO_PREVIOUS = SourceRef()


def compared(metric: str = METRIC, **fields: object) -> CheckSpec:
    compare = Compare(metric, **{"max_ratio": "1.2", **fields})  # type: ignore[arg-type]
    return CheckSpec("errors", timeout_seconds=120, prometheus=PrometheusCheck(URL, compare=compare, samples=1))


def batch(check: CheckSpec, *, old: tuple[str, ...] = (OLD,), **fields: object) -> Subject:
    return dataclasses.replace(subject(check, **fields), old_pods=old)  # type: ignore[arg-type]


def queries(of: Subject) -> dict[str, str]:
    assert of.check.prometheus is not None
    return queries_of(of.check.prometheus, of)


def metric(pods: str) -> str:
    return METRIC.replace("$namespace", "default").replace("$pods", pods)


def test_one_query_is_asked_about_the_new_pods_and_about_the_old_ones() -> None:
    check = compared(count='sum(requests{pod=~"$pods"})', min_samples=100)
    assert queries(batch(check)) == {
        "value": metric(NEW),
        "baseline": metric(OLD),
        "events": f'sum(requests{{pod=~"{NEW}"}})',
        "baseline_events": f'sum(requests{{pod=~"{OLD}"}})',
    }


@pytest.mark.parametrize(
    ("against", "old"), [(Against.BEFORE, (OLD,)), (Against.BEFORE, ()), (Against.OLD, ())], ids=str
)
def test_before_and_without_old_pods_the_baseline_is_the_average_of_the_hour_before_the_release(
    against: Against, old: tuple[str, ...]
) -> None:
    found = queries(batch(compared(against=against), old=old))
    assert found == {"value": metric(NEW), "baseline": BEFORE % metric(OLD)}


def test_workload_that_names_its_pods_itself_is_compared_with_all_its_pods_of_the_hour_before() -> None:
    found = queries(batch(compared(against=Against.BEFORE), kind="StatefulSet"))
    assert found["baseline"] == BEFORE % metric("sleep-[a-z0-9]+")
    assert queries(batch(compared(), kind="StatefulSet", old=("sleep-0", "sleep-1")))["baseline"] == metric(
        "sleep-0|sleep-1"
    )


@pytest.mark.parametrize(
    ("new", "old", "wanted"),
    [
        (1.2, 1.0, Pass("1 of 1 sample passed")),
        (1.3, 1.0, Fail("1.3 is too far above the old version's 1 (1 sample failed, 0 may fail)")),
        (0.0, 0.0, Pass("1 of 1 sample passed")),
    ],
)
async def test_new_pods_fail_if_they_exceed_the_ratio(new: float, old: float, wanted: Pass | Fail) -> None:
    prometheus = Prometheus(lambda query, time: new if NEW in query else old)
    assert await poll(runner(prometheus), batch(compared()), 20) == wanted


async def test_too_few_samples_of_either_side_are_unknown_and_hold() -> None:
    check = compared(count='sum(requests{pod=~"$pods"})', min_samples=100)
    assert check.if_unknown is OnUnknown.HOLD
    assert msgspec.structs.replace(check, on_unknown=OnUnknown.PASS).if_unknown is OnUnknown.PASS
    for few, text in ((NEW, "count of the new pods"), (OLD, "count of the old version")):
        prometheus = Prometheus(lambda query, time, few=few: (7 if few in query else 500) if "requests" in query else 1)  # type: ignore[misc]
        answer = await poll(runner(prometheus), batch(check), 119, last=True)
        assert isinstance(answer, Unknown)
        assert f"{text}: 7 is less than minSamples 100" in answer.reason


async def test_first_release_has_nothing_to_be_compared_with_and_passes() -> None:
    checks = runner(Prometheus(lambda query, time: 1))
    first = await checks.start(batch(compared(), previous=NO_PREVIOUS, old=()))
    assert first == Pass("there is no version before this one to compare it with")
    assert await checks.start(batch(compared(), previous=NO_PREVIOUS)) == Started("queries")


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (compared("sum(errors)"), "compare.metric: it has no $pods"),
        (compared('sum(errors{pod="$pods"})'), "compare.metric: $pods is a regular expression"),
        (compared(count='x{pod=~"$new_pods"}', min_samples=5), "compare.count: it has no $pods"),
        (compared(min_samples=5), "minSamples and count of compare need each other"),
        (compared(max_ratio=""), "there is no bound"),
        (compared(max_ratio="0"), "maxRatio is not above 0"),
        (compared(" "), "compare.metric"),
    ],
)
def test_comparison_that_cannot_run_is_a_problem(check: CheckSpec, text: str) -> None:
    assert text in problem(check)


@pytest.mark.parametrize("beside", ["query", "min", "max", "baseline_query", "max_ratio", "count_query"])
def test_comparison_has_no_other_query_and_bound_beside_it(beside: str) -> None:
    check = compared()
    assert problem(check) == ""
    prometheus = msgspec.structs.replace(check.prometheus, **{beside: "1"})
    assert "remove " in problem(msgspec.structs.replace(check, prometheus=prometheus))


def test_prometheus_evaluates_the_hour_before_without_values_that_are_no_number(tmp_path: Path) -> None:
    expression = queries(batch(compared('errors{pod=~"$pods"} / total{pod=~"$pods"}  # share', against=Against.BEFORE)))
    # until the release at 91 min, half of the hour has 0 / 0
    rule = {
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": 'errors{pod="sleep-5c6f8-abcde"}', "values": "0x60 1x30 9x60"},
                    {"series": 'total{pod="sleep-5c6f8-abcde"}', "values": "0x60 4x30 9x60"},
                ],
                "promql_expr_test": [
                    {
                        "expr": expression["baseline"].replace(str(RELEASED), str(91 * 60)),
                        "eval_time": "2h",
                        "exp_samples": [{"labels": '{pod="sleep-5c6f8-abcde"}', "value": 0.25}],
                    }
                ],
            }
        ],
    }
    path = tmp_path / "test.json"
    path.write_text(json.dumps(rule))
    subprocess.run([program("promtool"), "test", "rules", str(path)], check=True, timeout=60)
