"""`compare` of a check by PromQL: one query, asked about the new pods and about the old version.

It is another way to write `query` and `baselineQuery`, `countQuery` and `baselineCountQuery`. So all that holds for
them holds here, too.
"""

import msgspec

from altershield.api.check_specs import Against, Compare, PrometheusCheck
from reconciler.checks import promql
from reconciler.checks.check import Subject
from reconciler.checks.placeholders import GROUP, Value, earlier_pods, values_of

BEFORE = 3600
"""Seconds before the release with which `against: before` compares."""

_STEP = 60  # seconds between the values of that hour


def expanded(check: PrometheusCheck) -> PrometheusCheck:
    """The check with the bounds of its comparison as its own. A check without one is returned as it is."""
    compare = check.compare
    if compare is None:
        return check
    return msgspec.structs.replace(
        check,
        query=compare.metric,
        baseline_query=compare.metric,
        count_query=compare.count,
        baseline_count_query=compare.count,
        max_ratio=compare.max_ratio,
        max_increase=compare.max_increase,
        min_count=compare.min_samples,
    )


def compares_nothing(subject: Subject) -> bool:
    """Whether the check compares with an old version, and there is none: it is the first release of the workload."""
    check, previous = subject.check.prometheus, subject.release.status.previous
    has_old = bool(subject.old_pods or previous.version or previous.name)
    return check is not None and check.compare is not None and not has_old


def queries_of(check: PrometheusCheck, subject: Subject) -> dict[str, str]:
    """The queries of a check with the values of a batch, by the field of `samples.Sample`. ValueError, as a sentence,
    if a placeholder has no value."""
    values = values_of(subject)
    if check.compare is not None:
        return _of_comparison(check.compare, subject)
    queries = {
        "value": check.query,
        "baseline": check.baseline_query,
        "events": check.count_query,
        "baseline_events": check.baseline_count_query,
    }
    return {name: promql.render(query, values) for name, query in queries.items() if query}


def _of_comparison(compare: Compare, subject: Subject) -> dict[str, str]:
    """Where no old pod is left, the release is compared with the hour before it."""
    values = values_of(subject)
    new, old = values["pods"], values.get("oldPods")
    before = compare.against is Against.BEFORE or not subject.old_pods
    if before:
        pattern = earlier_pods(subject)
        old = Value(pattern, pattern) if pattern else None
    if old is None:
        raise ValueError("the names of the old version's pods are not known")
    found = {}
    for name, baseline, query in (
        ("value", "baseline", compare.metric),
        ("events", "baseline_events", compare.count),
    ):
        if query:
            found[name] = promql.render(query, {**values, GROUP: new})
            text = promql.render(query, {**values, GROUP: old})
            found[baseline] = _before(text, subject.release.spec.create_time_unix) if before else text
    return found


def _before(query: str, released: int) -> str:
    """The average of a query over the hour before the release (Unix seconds). Values that are no finite number are left
    out. The newline ends a comment at the end of the query."""
    return f"avg_over_time((({query}\n) > -Inf < Inf)[{BEFORE}s:{_STEP}s] @ {released})"
