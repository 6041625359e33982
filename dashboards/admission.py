"""Can people release? How fast is the answer, what is denied, and why?"""

from dashboards.board import GATE, Row, board
from dashboards.panels import GREEN, NEVER, ORANGE, RED, SELDOM, Column, Object, Query, graph, heatmap, stat, table
from dashboards.queries import HOOKS, JUDGED

_OURS = 'namespace=~"$namespace"'
_JUDGED = f"{JUDGED}, {_OURS}"
_UNANSWERED = f'error_type="calling_webhook_error", {HOOKS}'


def dashboard() -> Object:
    return board(
        "Admission",
        "Can people release? How fast is the answer, what is denied, and why?",
        "6h",
        [GATE],
        [
            Row("Can people release?", 4, [_now()]),
            Row("What is decided", 8, [[_decisions(), _denials(), _bypasses()], [_outcomes(), _errors()]]),
            Row("How fast", 8, [[_quantiles(), _durations(), _in_flight()]]),
            Row("As the API servers see it (where Prometheus scrapes them)", 8, [[_calls(), _failures()]]),
        ],
    )


def _now() -> list[Object]:
    failed = f"sum(increase(altershield_admission_errors_total{{{_OURS}}}[$__range]))"
    decided = f"sum(increase(altershield_admission_requests_total{{{_OURS}}}[$__range]))"
    return [
        stat(
            "Gatekeepers up",
            "Gatekeepers that Prometheus reaches. At 0 releases are refused or pass unjudged, as failurePolicy says; "
            "at 1 the next restart is an outage.",
            f'count(altershield_build_info{{component="gatekeeper", {_OURS}}}) or vector(0)',
            steps=((None, RED), (1, ORANGE), (2, GREEN)),
        ),
        stat(
            "Not decided",
            "Share of the requests in the time range that a gatekeeper answered with an error, so that failurePolicy "
            "decided.",
            f"{failed} / clamp_min({failed} + {decided}, 1)",
            unit="percentunit",
            steps=((None, GREEN), (0.001, ORANGE), (0.01, RED)),
        ),
        stat(
            "Slowest 1 %",
            "Time within which 99 of 100 requests in the time range were answered. API servers wait 2 s (mutating) "
            "and 3 s (validating).",
            "histogram_quantile(0.99, sum by (le) "
            f"(increase(altershield_admission_duration_seconds_bucket{{{_OURS}}}[$__range])))",
            unit="s",
            steps=((None, GREEN), (0.1, ORANGE), (1, RED)),
        ),
        stat(
            "Denied",
            "Changes that were denied in the time range, repetitions counted.",
            f'sum(increase(altershield_admission_requests_total{{decision="denied", {_JUDGED}}}[$__range]))',
            steps=SELDOM,
        ),
        stat(
            "Passed unasked",
            "Changes that API servers let pass in the time range because the gate did not answer and failurePolicy is "
            "Ignore.",
            _failed_calls(f"apiserver_admission_webhook_fail_open_count{{{HOOKS}}}"),
            steps=NEVER,
        ),
        stat(
            "Refused for want of an answer",
            "Changes that API servers refused in the time range because the gate did not answer and failurePolicy is "
            "Fail.",
            _failed_calls(f"apiserver_admission_webhook_rejection_count{{{_UNANSWERED}}}"),
            steps=NEVER,
        ),
    ]


def _failed_calls(counter: str) -> str:
    """How much a counter of API servers grew in the time range. They show it from the first failure on only, at 1,
    which increase() does not see: hence all of a series that was not there before, though its API server was."""
    return (
        f"sum(({counter} unless {counter} offset $__range and on (job, instance) up offset $__range == 1) "
        f"or increase({counter}[$__range])) or vector(0)"
    )


def _decisions() -> Object:
    return graph(
        "Decisions",
        "Changes of workloads that were decided, by webhook and decision. Each kind of workload has two webhooks: the "
        "mutating one (m) stamps the version, the validating one (v) judges.",
        Query(
            f"sum by (webhook, decision) (rate(altershield_admission_requests_total{{{_OURS}}}[$__rate_interval]))",
            "{{webhook}} {{decision}}",
        ),
        unit="reqps",
        stacked=True,
    )


def _denials() -> Object:
    return graph(
        "Denials by reason",
        "suspended: the running version failed verification. rolled-back: this version was undone before. "
        "20 in ten minutes, and more than half of all changes, are a storm.",
        Query(
            "60 * sum by (reason) "
            f'(rate(altershield_admission_requests_total{{decision="denied", {_JUDGED}}}[$__rate_interval]))',
            "{{reason}}",
        ),
        unit="cpm",
        steps=((None, GREEN), (2, ORANGE)),
    )


def _bypasses() -> Object:
    return graph(
        "Let through all the same",
        "Releases that would have been denied, by what let them pass and by the kind of user: the reconciler's own "
        "rollbacks, a repair with the label ignored-suspend, the setting blocking switched off.",
        Query(
            f"60 * sum by (bypass, actor) (rate(altershield_admission_bypasses_total{{{_OURS}}}[$__rate_interval]))",
            "{{bypass}} by {{actor}}",
        ),
        unit="cpm",
    )


def _outcomes() -> Object:
    labels = ("webhook", "operation", "decision", "reason")
    return table(
        "What became of requests",
        "All requests in the time range, by webhook, operation, decision and reason.",
        [
            Query(
                f"sum by ({', '.join(labels)}) "
                f"(increase(altershield_admission_requests_total{{{_OURS}}}[$__range])) > 0"
            )
        ],
        [*(Column(label, label.capitalize()) for label in labels), Column("Value", "Requests", "short")],
    )


def _errors() -> Object:
    return graph(
        "Requests that could not be decided",
        "By the HTTP status they were answered with. 4xx: what came was no review of a workload (look at the webhook "
        "configurations). 408: it did not arrive in time. 500: a bug in the gate, its log has the traceback.",
        Query(
            f"60 * sum by (webhook, code) (rate(altershield_admission_errors_total{{{_OURS}}}[$__rate_interval]))",
            "{{webhook}} {{code}}",
        ),
        unit="cpm",
        steps=((None, GREEN), (1, RED)),
    )


def _quantiles() -> Object:
    buckets = f"sum by (le, webhook) (rate(altershield_admission_duration_seconds_bucket{{{_OURS}}}[$__rate_interval]))"
    return graph(
        "Time to answer",
        "Median and slowest 1 % of the requests, from their header to the response. Gaps: nothing was asked.",
        Query(f"histogram_quantile(0.5, {buckets})", "{{webhook}} median"),
        Query(f"histogram_quantile(0.99, {buckets})", "{{webhook}} 99 %"),
        unit="s",
        steps=((None, GREEN), (1, RED)),
    )


def _durations() -> Object:
    return heatmap(
        "Distribution of the time to answer",
        "How many requests took how long, all webhooks together.",
        Query(
            f"sum by (le) (increase(altershield_admission_duration_seconds_bucket{{{_OURS}}}[$__rate_interval]))",
            "{{le}}",
        ),
        unit="s",
    )


def _in_flight() -> Object:
    return graph(
        "Requests in flight",
        "Requests being answered, by pod. It follows the load; what grows without it is a gatekeeper that hangs.",
        Query(f"altershield_admission_in_flight{{{_OURS}}}", "{{pod}}"),
        unit="short",
        steps=((None, GREEN), (50, ORANGE)),
    )


def _calls() -> Object:
    return graph(
        "Calls of the gate's webhooks",
        "Calls by API servers, by the status code that the gate answered with; 0 is none, 403 a denial.",
        Query(
            f"sum by (name, code) (rate(apiserver_admission_webhook_request_total{{{HOOKS}}}[$__rate_interval]))",
            "{{name}} {{code}}",
        ),
        unit="reqps",
        stacked=True,
    )


def _failures() -> Object:
    return graph(
        "Calls without an answer",
        "Calls by API servers that failed: passed where failurePolicy is Ignore, refused where it is Fail. The very "
        "first of an API server is not seen here, only in the numbers at the top.",
        Query(
            f"60 * sum by (name) (rate(apiserver_admission_webhook_fail_open_count{{{HOOKS}}}[$__rate_interval]))",
            "{{name}} passed",
        ),
        Query(
            "60 * sum by (name) "
            f"(rate(apiserver_admission_webhook_rejection_count{{{_UNANSWERED}}}[$__rate_interval]))",
            "{{name}} refused",
        ),
        unit="cpm",
        steps=((None, GREEN), (1, RED)),
    )
