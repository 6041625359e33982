"""The dashboard AlterShield / Admission: decisions on changes of workloads, response times, errors."""

from dashboards.board import SYSTEM, Row, board
from dashboards.panels import GREEN, NEVER, ORANGE, RED, SELDOM, Column, Object, Query, graph, heatmap, stat, table
from dashboards.queries import CLUSTER, HOOKS, JUDGED, OURS, REAL, grown

_JUDGED = f"{JUDGED}, {OURS}"
_UNANSWERED = f'error_type="calling_webhook_error", {HOOKS}'


def dashboard() -> Object:
    return board(
        "Admission",
        "Can users release? How fast does AlterShield answer, which changes does it deny, and why?",
        "6h",
        [SYSTEM],
        [
            Row("Can users release?", 4, [_now()]),
            Row(
                "Decisions",
                8,
                [[_decisions(), _denials(), _bypasses()], [_outcomes()], [_denied_namespaces(), _errors()]],
            ),
            Row("Response times", 8, [[_quantiles(), _durations(), _in_flight()]]),
            Row("Metrics of the API servers (if Prometheus scrapes them)", 8, [[_calls(), _failures()]]),
        ],
    )


def _now() -> list[Object]:
    failed = f"sum(increase(altershield_admission_errors_total{{{OURS}}}[$__range]))"
    decided = f"sum(increase(altershield_admission_requests_total{{{OURS}}}[$__range]))"
    return [
        stat(
            "Gatekeepers up",
            "Number of gatekeepers that Prometheus reaches. At 0, API servers refuse releases (failurePolicy Fail) or "
            "let them pass without a decision (Ignore). At 1, the next restart is an outage.",
            f'count(altershield_build_info{{component="gatekeeper", {OURS}}}) or vector(0)',
            steps=((None, RED), (1, ORANGE), (2, GREEN)),
        ),
        stat(
            "Answered with an error",
            "Share of the requests in the time range that a gatekeeper answered with an error. API servers then do "
            "what failurePolicy says.",
            f"{failed} / clamp_min({failed} + {decided}, 1)",
            unit="percentunit",
            steps=((None, GREEN), (0.001, ORANGE), (0.01, RED)),
        ),
        stat(
            "Slowest 1 %",
            "99 % of the requests in the time range were answered within this time. By default, API servers wait for "
            "2 s (mutating) or 3 s (validating).",
            "histogram_quantile(0.99, sum by (le) "
            f"(increase(altershield_admission_duration_seconds_bucket{{{OURS}}}[$__range])))",
            unit="s",
            steps=((None, GREEN), (0.1, ORANGE), (1, RED)),
        ),
        stat(
            "Denied",
            "Number of changes that were denied in the time range. Repeated attempts count too.",
            f'sum(increase(altershield_admission_requests_total{{decision="denied", {REAL}, {_JUDGED}}}[$__range]))',
            steps=SELDOM,
        ),
        stat(
            "Passed unanswered",
            "Number of changes that API servers let pass in the time range, because no gatekeeper answered and "
            "failurePolicy is Ignore.",
            _failed_calls(f"apiserver_admission_webhook_fail_open_count{{{HOOKS}}}"),
            steps=NEVER,
        ),
        stat(
            "Refused unanswered",
            "Number of changes that API servers refused in the time range, because no gatekeeper answered and "
            "failurePolicy is Fail.",
            _failed_calls(f"apiserver_admission_webhook_rejection_count{{{_UNANSWERED}}}"),
            steps=NEVER,
        ),
    ]


def _failed_calls(counter: str) -> str:
    """PromQL for how much a counter of API servers grew in the time range.

    An API server exports such a counter only after its first failure, with the value 1. increase() ignores this value.
    So the whole value of a new series counts, if Prometheus scraped that API server before.
    """
    return (
        f"sum(({counter} unless {counter} offset $__range and on (cluster, job, instance) up offset $__range == 1) "
        f"or increase({counter}[$__range])) or vector(0)"
    )


def _decisions() -> Object:
    return graph(
        "Decisions per second",
        "Decisions on changes of workloads, by webhook. Each kind of workload has two webhooks: the mutating one (m) "
        "sets the version, the validating one (v) allows or denies.",
        Query(
            f"sum by (webhook, decision) (rate(altershield_admission_requests_total{{{OURS}}}[$__rate_interval]))",
            "{{webhook}} {{decision}}",
        ),
        unit="reqps",
        stacked=True,
    )


def _denials() -> Object:
    return graph(
        "Denials by reason",
        "suspended: the present version failed verification. rolled-back: the new version was rolled back before. An "
        "alert fires at 20 denials in ten minutes, if they are more than half of all changes.",
        Query(
            "60 * sum by (reason) "
            f'(rate(altershield_admission_requests_total{{decision="denied", {REAL}, {_JUDGED}}}[$__rate_interval]))',
            "{{reason}}",
        ),
        unit="cpm",
        steps=((None, GREEN), (2, ORANGE)),
    )


def _bypasses() -> Object:
    return graph(
        "Allowed exceptions",
        "Releases that passed although the workload is suspended, by reason and kind of user: rollbacks by the "
        "reconciler, repairs with the label ignored-suspend, the setting blocking switched off.",
        Query(
            f"60 * sum by (bypass, actor) (rate(altershield_admission_bypasses_total{{{OURS}}}[$__rate_interval]))",
            "{{bypass}} by {{actor}}",
        ),
        unit="cpm",
    )


def _denied_namespaces() -> Object:
    return graph(
        "Denials by namespace",
        "Number of denials in the last hour, for the ten namespaces with the most. (other): namespaces in which "
        "AlterShield has no release, and those after the first hundred.",
        Query(
            f"topk(10, sum by (namespace) ({grown(f'altershield_admission_denials_total{{{CLUSTER}}}', '1h')}))",
            "{{namespace}}",
        ),
        unit="short",
    )


def _outcomes() -> Object:
    labels = ("webhook", "operation", "decision", "reason", "dry_run")
    return table(
        "Results of requests",
        "All requests in the time range, by webhook, operation, decision and reason, and whether they are dry runs.",
        [
            Query(
                f"sum by ({', '.join(labels)}) (increase(altershield_admission_requests_total{{{OURS}}}[$__range])) > 0"
            )
        ],
        [
            *(Column(label, label.capitalize().replace("_", " ")) for label in labels),
            Column("Value", "Requests", "short"),
        ],
    )


def _errors() -> Object:
    return graph(
        "Requests without a decision",
        "Requests that a gatekeeper answered with an HTTP error, by status code. 4xx: the request was not a review of "
        "a workload (look at the webhook configurations). 408: it did not arrive in time. 500: a bug in the "
        "gatekeeper; its log has the traceback.",
        Query(
            f"60 * sum by (webhook, code) (rate(altershield_admission_errors_total{{{OURS}}}[$__rate_interval]))",
            "{{webhook}} {{code}}",
        ),
        unit="cpm",
        steps=((None, GREEN), (1, RED)),
    )


def _quantiles() -> Object:
    buckets = f"sum by (le, webhook) (rate(altershield_admission_duration_seconds_bucket{{{OURS}}}[$__rate_interval]))"
    return graph(
        "Response time",
        "Median and 99th percentile of the time from a request's header to the response. Gaps: there were no requests.",
        Query(f"histogram_quantile(0.5, {buckets})", "{{webhook}} median"),
        Query(f"histogram_quantile(0.99, {buckets})", "{{webhook}} 99 %"),
        unit="s",
        steps=((None, GREEN), (1, RED)),
    )


def _durations() -> Object:
    return heatmap(
        "Distribution of the response time",
        "Number of requests by response time, for all webhooks.",
        Query(
            f"sum by (le) (increase(altershield_admission_duration_seconds_bucket{{{OURS}}}[$__rate_interval]))",
            "{{le}}",
        ),
        unit="s",
    )


def _in_flight() -> Object:
    return graph(
        "Requests in flight",
        "Requests that a gatekeeper is answering now, by pod. The number follows the load. If it grows while the load "
        "does not, the gatekeeper hangs.",
        Query(f"altershield_admission_in_flight{{{OURS}}}", "{{pod}}"),
        unit="short",
        steps=((None, GREEN), (50, ORANGE)),
    )


def _calls() -> Object:
    return graph(
        "Calls of AlterShield's webhooks",
        "Calls by API servers, by status code of the response. 0: no response. 403: a denial.",
        Query(
            f"sum by (name, code) (rate(apiserver_admission_webhook_request_total{{{HOOKS}}}[$__rate_interval]))",
            "{{name}} {{code}}",
        ),
        unit="reqps",
        stacked=True,
    )


def _failures() -> Object:
    return graph(
        "Failed calls",
        "Calls by API servers that got no usable response. passed: failurePolicy is Ignore. refused: it is Fail. The "
        "first failed call of an API server is counted only in the numbers at the top.",
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
