"""A check by PromQL, without I/O: the times of its samples, the samples that fail, and the result for the batch.

Everything follows from the start of the check, the policy and the answers of Prometheus. So a restarted reconciler
comes to the same result.

- Sample k (from 1) is the value at `start + initialDelaySeconds + k * intervalSeconds`. One interval passes before the
  first sample, so that there is data of the new pods.
- A sample is read when it is `lagSeconds` old, because Prometheus' clock may differ and a scrape takes time.
- A sample that is not known counts neither as a pass nor as a failure. A later one takes its place.
- The check fails with the first sample that exceeds `failureLimit`. It passes when `samples` samples are known.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from altershield.api.check_specs import CheckSpec, PrometheusCheck
from reconciler.checks import promql
from reconciler.checks.check import Fail, Pass, Pending, PollAnswer, Unknown
from reconciler.checks.compare import expanded
from reconciler.checks.prometheus_answers import Reading

MAX_TIMES = 1000
"""The maximum number of times at which samples are taken. Later ones are not taken."""

_COUNT = "minSamples and count of compare need each other"
_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)


class Sample(NamedTuple):
    """The readings at one time. Readings of queries that the check does not have are None."""

    value: Reading
    baseline: Reading | None = None
    events: Reading | None = None
    """Of `countQuery`."""
    baseline_events: Reading | None = None


@dataclass(frozen=True, slots=True)
class Bounds:
    """The numbers that a sample is compared with."""

    min: float | None
    max: float | None
    max_increase: float | None
    max_ratio: float | None
    min_count: int
    compares: bool = False
    """Whether the check has `compare`, whose fields have other names."""


@dataclass(frozen=True, slots=True)
class _Failed:
    reason: str


@dataclass(frozen=True, slots=True)
class _NotKnown:
    reason: str


_PASSED = None
_Judgement = _Failed | _NotKnown | None


def problem(check: CheckSpec) -> str:
    """The reason why a check by PromQL cannot be accepted, as a sentence; empty if it can."""
    spec = check.prometheus
    if spec is None:
        return ""
    return next(_problems(check, spec), "")


def bounds_of(check: PrometheusCheck) -> Bounds:
    """ValueError, as a sentence, if a number is not one."""
    return Bounds(
        min=_decimal("min", check.min),
        max=_decimal("max", check.max),
        max_increase=_decimal("maxIncrease", check.max_increase),
        max_ratio=_decimal("maxRatio", check.max_ratio),
        min_count=check.min_count,
        compares=check.compare is not None,
    )


def first_time(check: PrometheusCheck, started: float) -> float:
    """When the first sample is taken, in Unix seconds."""
    return started + check.initial_delay_seconds + check.interval_seconds


def times_until(check: PrometheusCheck, started: float, now: float, deadline: float) -> int:
    """The number of samples that can be read at the time `now`. A sample that is not old enough at the deadline is
    never read, even if a reconciler comes back later."""
    age = min(now, deadline) - check.lag_seconds - first_time(check, started)
    return 0 if age < 0 else min(MAX_TIMES, int(age // check.interval_seconds) + 1)


def conclude(check: PrometheusCheck, samples: Sequence[Sample], *, last: bool) -> PollAnswer:
    """The result of the samples so far, in their order."""
    bounds = bounds_of(check)
    known = failed = 0
    doubt = "no sample is old enough"
    for sample in samples:
        judgement = judge(bounds, sample)
        if isinstance(judgement, _NotKnown):
            doubt = judgement.reason
            continue
        known += 1
        if isinstance(judgement, _Failed):
            failed += 1
            if failed > check.failure_limit:
                return Fail(f"{judgement.reason} ({_many(failed, 'sample')} failed, {check.failure_limit} may fail)")
        if known == check.samples:
            return Pass(f"{known - failed} of {_many(known, 'sample')} passed")
    if known < len(samples) or not samples:
        missing = f"; the last one that is not: {doubt}" if samples else f"; {doubt}"
    else:
        missing = ""
    progress = f"{known} of {_many(check.samples, 'sample')} are known{missing}"
    return Unknown(progress) if last else Pending(progress)


def judge(bounds: Bounds, sample: Sample) -> _Judgement:
    """Whether a sample passes."""
    count = _enough("count of the new pods" if bounds.compares else "countQuery", sample.events, bounds)
    if count is not _PASSED:
        return count
    if isinstance(sample.value, str):
        return _NotKnown(f"{'new pods' if bounds.compares else 'query'}: {sample.value}")
    if bounds.min is not None and sample.value < bounds.min:
        return _Failed(f"{sample.value:g} is below min {bounds.min:g}")
    if bounds.max is not None and sample.value > bounds.max:
        return _Failed(f"{sample.value:g} is above max {bounds.max:g}")
    if sample.baseline is None:
        return _PASSED
    name = "count of the old version" if bounds.compares else "baselineCountQuery"
    count = _enough(name, sample.baseline_events, bounds)
    if count is not _PASSED:
        return count
    if isinstance(sample.baseline, str):
        return _NotKnown(f"{'old version' if bounds.compares else 'baselineQuery'}: {sample.baseline}")
    return _compare(bounds, sample.value, sample.baseline)


def _compare(bounds: Bounds, value: float, baseline: float) -> _Judgement:
    """Compare with the old version's value. If both bounds are set, a sample fails that exceeds both.

    A baseline of 0 or less has no meaningful multiple: there, `maxIncrease` decides alone.
    """
    if bounds.max_increase is not None and value - baseline <= bounds.max_increase:
        return _PASSED
    if bounds.max_ratio is not None:
        if baseline > 0 and value <= baseline * bounds.max_ratio:
            return _PASSED
        if baseline <= 0 and bounds.max_increase is None:
            if baseline == 0 and value <= 0:
                return _PASSED
            return _NotKnown(f"the old version's value is {baseline:g}, which has no multiple: set maxIncrease too")
    return _Failed(f"{value:g} is too far above the old version's {baseline:g}")


def _enough(name: str, count: Reading | None, bounds: Bounds) -> _NotKnown | None:
    if count is None:
        return None
    if isinstance(count, str):
        return _NotKnown(f"{name}: {count}")
    if count >= bounds.min_count:
        return None
    least = "minSamples" if bounds.compares else "minCount"
    return _NotKnown(f"{name}: {count:g} is less than {least} {bounds.min_count}")


def _problems(check: CheckSpec, spec: PrometheusCheck) -> Iterator[str]:
    if "?" in spec.url or "#" in spec.url:
        yield "url has a query or a fragment"
    yield from _problems_of_queries(spec)
    if spec.compare is not None and (foreign := _bounds_beside(spec)):
        yield f"compare has its own bounds and no other queries: remove {foreign}"
    spec = expanded(spec)
    try:
        bounds = bounds_of(spec)
    except ValueError as error:
        yield str(error)
        return
    yield from _problems_of_bounds(bounds, has_baseline=bool(spec.baseline_query))
    if bool(spec.count_query) != (spec.min_count > 0):
        yield "countQuery and minCount need each other" if spec.compare is None else _COUNT
    if bool(spec.baseline_count_query) != bool(spec.baseline_query and spec.count_query):
        yield "with baselineQuery and countQuery there has to be baselineCountQuery, and only then"
    yield from _problems_of_times(check, spec)


def _problems_of_queries(spec: PrometheusCheck) -> Iterator[str]:
    if spec.compare is not None:
        for name, query in (("compare.metric", spec.compare.metric), ("compare.count", spec.compare.count)):
            if query and (sentence := promql.problem(query, of_pods=True)):
                yield f"{name}: {sentence}"
        if not spec.compare.metric.strip():
            yield "compare.metric is empty"
        return
    if not spec.query.strip():
        yield "query is empty"
    queries = (
        ("query", spec.query),
        ("baselineQuery", spec.baseline_query),
        ("countQuery", spec.count_query),
        ("baselineCountQuery", spec.baseline_count_query),
    )
    for name, query in queries:
        if sentence := promql.problem(query):
            yield f"{name}: {sentence}"


def _bounds_beside(spec: PrometheusCheck) -> str:
    """The name of a field that has no meaning beside `compare`; empty if there is none."""
    fields = {
        "query": spec.query,
        "min": spec.min,
        "max": spec.max,
        "baselineQuery": spec.baseline_query,
        "maxIncrease": spec.max_increase,
        "maxRatio": spec.max_ratio,
        "countQuery": spec.count_query,
        "baselineCountQuery": spec.baseline_count_query,
        "minCount": spec.min_count,
    }
    return next((name for name, value in fields.items() if value), "")


def _problems_of_bounds(bounds: Bounds, *, has_baseline: bool) -> Iterator[str]:
    compared = bounds.max_increase is not None or bounds.max_ratio is not None
    if bounds.min is None and bounds.max is None and not compared:
        yield "there is no bound: set min, max, maxIncrease or maxRatio"
    if bounds.min is not None and bounds.max is not None and bounds.min > bounds.max:
        yield "min is above max"
    if compared and not has_baseline:
        yield "maxIncrease and maxRatio need baselineQuery"
    if has_baseline and not compared:
        yield "baselineQuery needs maxIncrease or maxRatio"
    if bounds.max_increase is not None and bounds.max_increase < 0:
        yield "maxIncrease is negative"
    if bounds.max_ratio is not None and bounds.max_ratio <= 0:
        yield "maxRatio is not above 0"


def _problems_of_times(check: CheckSpec, spec: PrometheusCheck) -> Iterator[str]:
    if spec.failure_limit >= spec.samples:
        yield "failureLimit is not below samples, so that the check can never fail"
    needed = spec.initial_delay_seconds + spec.samples * spec.interval_seconds + spec.lag_seconds
    if check.timeout_seconds is not None and needed > check.timeout_seconds:
        yield f"the samples take {needed} s, which is longer than timeoutSeconds {check.timeout_seconds}"
    if spec.samples > MAX_TIMES:
        yield f"samples is above {MAX_TIMES}"


def _decimal(name: str, text: str) -> float | None:
    """The number in a decimal text; None if the text is empty. The same type as Prometheus' values: the decimal 0.1 is
    the value that Prometheus writes as 0.1."""
    if not text:
        return None
    value = float(text) if _DECIMAL.fullmatch(text) else math.inf
    if math.isinf(value):
        raise ValueError(f"{name}: {text[:32]!r} is not a decimal number such as 0.05")
    return value


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
