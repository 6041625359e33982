"""The dashboard AlterShield / Health: leader, queues, watches, certificates, errors of the Kubernetes API."""

from dashboards.board import SYSTEM, Row, board
from dashboards.panels import (
    GREEN,
    NEVER,
    ORANGE,
    RED,
    SELDOM,
    Object,
    Query,
    Steps,
    graph,
    stat,
    timeline,
)
from dashboards.queries import CLUSTER, OURS, grown

_LEADS = f"and on (cluster, instance) (altershield_leader{{{OURS}}} == 1)"
"""Selects the leader's series. The queues of followers fill with keys that only a leader works on."""

_COMPONENT = f"* on (cluster, instance) group_left (component) altershield_build_info{{{OURS}}}"
"""Adds the component to a metric of the process, which has no such label."""

_RENEWAL: Steps = ((None, RED), (1 / 12, ORANGE), (1 / 3, GREEN))
"""Thresholds for the share of a certificate's lifetime that is left. certgen renews it at a third. An alert fires at a
twelfth."""


def dashboard() -> Object:
    return board(
        "Health",
        "Does AlterShield itself work? Leader, queues, watches, certificates, errors of the Kubernetes API.",
        "6h",
        [SYSTEM],
        [
            Row("Now", 4, [_now()]),
            Row("Processes and webhooks", 6, [[_components(), _leader(), _webhooks()]]),
            Row("CPU and memory", 8, [[_cpu(), _memory(), _working_set()]]),
            Row("What a failure leads to", 6, [[_settings(), _policies()]]),
            Row("Queues", 8, [[_depth(), _oldest(), _wait()], [_durations(), _outcomes()]]),
            Row("Watches", 8, [[_ages(), _relists()], [_objects(), _skipped()]]),
            Row("Certificates", 8, [[_left(), _certificate_writes(), _unusable()]]),
            Row("Kubernetes API", 8, [[_api_errors(), _api_writes(), _events()]]),
        ],
    )


def _now() -> list[Object]:
    return [
        stat(
            "Alerts",
            "Number of AlterShield's alerts that are firing. Prometheus must have AlterShield's rules.",
            f'count(ALERTS{{alertname=~"AlterShield.+", alertstate="firing", {CLUSTER}}}) or vector(0)',
            steps=NEVER,
        ),
        stat(
            "Leaders",
            "Number of reconcilers that lead, in the cluster with the fewest. It must be 1. Without a leader, "
            "AlterShield does not verify, suspend or roll back releases.",
            f"min(sum by (cluster) (altershield_leader{{{OURS}}})) or vector(0)",
            steps=((None, RED), (1, GREEN), (2, RED)),
        ),
        stat(
            "Longest wait in a queue",
            "Time that the oldest key in the leader's queues has waited for a worker. After a change of the leader, "
            "keys have waited since the new leader's process started.",
            f"max(altershield_queue_oldest_seconds{{{OURS}}} {_LEADS})",
            unit="s",
            steps=((None, GREEN), (10, ORANGE), (60, RED)),
        ),
        stat(
            "Oldest watch",
            "Time since the API server last sent data, for the watch with the longest time. The API server sends a "
            "bookmark every minute. After 90 s without data, the client opens a new watch.",
            f"max(altershield_watch_age_seconds{{{OURS}}})",
            unit="s",
            steps=((None, GREEN), (100, ORANGE), (180, RED)),
        ),
        stat(
            "Certificate time left",
            "Share of the lifetime that is left, for the served or stored certificate with the smallest share. "
            "Certificates are renewed at a third. Alerts fire at a twelfth (warning) and at a ninetieth (critical; one "
            "day of 90).",
            f"min({_share_left('certificate')} or {_STORED})",
            unit="percentunit",
            steps=_RENEWAL,
        ),
        stat(
            "API errors",
            "Number of requests to the Kubernetes API that failed in the time range, without conflicts (409), which "
            "are normal and tried again.",
            f'sum(increase(altershield_api_errors_total{{code!="409", {OURS}}}[$__range]))',
            steps=((None, GREEN), (10, ORANGE), (1000, RED)),
        ),
    ]


def _components() -> Object:
    return graph(
        "Processes",
        "Processes that Prometheus reaches, by component and version. If there are two versions for a long time, an "
        "upgrade hangs.",
        Query(
            f"count by (component, version) (altershield_build_info{{{OURS}}})",
            "{{component}} {{version}}",
        ),
        unit="short",
    )


def _leader() -> Object:
    return timeline(
        "Leader",
        "The reconciler that leads, over time. If the leader is lost, another reconciler takes the Lease within half a "
        "minute.",
        Query(f"altershield_leader{{{OURS}}}", "{{pod}}"),
        values={"0": ("follows", "text"), "1": ("leads", GREEN)},
    )


def _webhooks() -> Object:
    return timeline(
        "Webhook configurations",
        "Whether AlterShield's webhook configurations exist and have webhooks. Without them, API servers do not call "
        "the gatekeepers.",
        Query(f"min by (resource) (altershield_webhooks{{{OURS}}}) > bool 0", "{{resource}}"),
        values={"0": ("missing or empty", RED), "1": ("present", GREEN)},
    )


def _cpu() -> Object:
    return graph(
        "CPU",
        "CPU that each process uses, in cores. A process uses little more than one core at most.",
        Query(
            f"sum by (component, pod) (rate(process_cpu_seconds_total{{{OURS}}}[$__rate_interval]) {_COMPONENT})",
            "{{component}} {{pod}}",
        ),
        steps=((None, GREEN), (0.9, ORANGE)),
    )


def _memory() -> Object:
    return graph(
        "Resident memory",
        "Memory of each process.",
        Query(
            f"sum by (component, pod) (process_resident_memory_bytes{{{OURS}}} {_COMPONENT})", "{{component}} {{pod}}"
        ),
        unit="bytes",
    )


def _working_set() -> Object:
    return graph(
        "Memory and its limit",
        "Memory that the kernel cannot free, and its limit, for the container of each kind with the most memory. The "
        "kernel kills a process of a container that reaches its limit. An alert fires at 90 %. 0: the container has no "
        "limit.",
        Query(f"max by (component) (altershield_memory_working_set_bytes{{{OURS}}})", "{{component}}"),
        Query(f"max by (component) (altershield_memory_limit_bytes{{{OURS}}})", "{{component}} limit"),
        unit="bytes",
    )


def _settings() -> Object:
    return timeline(
        "Settings",
        "Whether failed releases are suspended (blocking), and rolled back if their pods do not come up (rollback). "
        "After a setting has been off for 30 minutes, an alert fires.",
        Query(f'min by (setting) (altershield_setting_enabled{{setting=~"blocking|rollback", {OURS}}})', "{{setting}}"),
        values={"0": ("off", RED), "1": ("on", GREEN)},
    )


def _policies() -> Object:
    return graph(
        "DefensePolicies by mode",
        "observe and warn: releases are verified, and a failure has no consequences.",
        Query(f"sum by (mode) (max by (cluster, mode) (altershield_policies{{{OURS}}}))", "{{mode}}"),
        unit="short",
        stacked=True,
    )


def _depth() -> Object:
    return graph(
        "Keys waiting",
        "Number of keys in the leader's queues, by controller. After a change of the leader the number is high, and "
        "must fall again.",
        Query(f"max by (controller) (altershield_queue_depth{{{OURS}}} {_LEADS})", "{{controller}}"),
        unit="short",
        steps=((None, GREEN), (5000, ORANGE)),
    )


def _oldest() -> Object:
    return graph(
        "Longest wait by queue",
        "Time that the oldest key in each of the leader's queues has waited. After a change of the leader, keys have "
        "waited since the new leader's process started.",
        Query(f"max by (controller) (altershield_queue_oldest_seconds{{{OURS}}} {_LEADS})", "{{controller}}"),
        unit="s",
        steps=((None, GREEN), (60, RED)),
    )


def _wait() -> Object:
    def rate(part: str) -> str:
        return f"sum by (controller) (rate(altershield_queue_wait_seconds_{part}{{{OURS}}}[$__rate_interval]))"

    return graph(
        "Mean wait",
        "Mean time that keys waited for a worker. Gaps: there was nothing to do. Peaks: the leader changed, and keys "
        "have waited since the new leader's process started.",
        Query(f"{rate('sum')} / {rate('count')}", "{{controller}}"),
        unit="s",
        steps=((None, GREEN), (10, RED)),
    )


def _durations() -> Object:
    return graph(
        "Time to reconcile",
        "99th percentile of the duration of reconciliations, by controller. Most of it is time for API requests.",
        Query(
            "histogram_quantile(0.99, sum by (le, controller) "
            f"(rate(altershield_reconcile_duration_seconds_bucket{{{OURS}}}[$__rate_interval])))",
            "{{controller}}",
        ),
        unit="s",
        steps=((None, GREEN), (5, ORANGE)),
    )


def _outcomes() -> Object:
    return graph(
        "Reconciliations",
        "Reconciliations by outcome. conflict and throttled are normal in small numbers, and are repeated. error needs "
        "attention: see the reconciler's log.",
        Query(
            f"sum by (outcome) (rate(altershield_reconciles_total{{{OURS}}}[$__rate_interval]))",
            "{{outcome}}",
        ),
        unit="ops",
        stacked=True,
    )


def _ages() -> Object:
    return graph(
        "Age of watches",
        "Time since the API server last sent data about a resource, for the process with the longest time. An alert "
        "fires at 180 s.",
        Query(
            f"max by (component, resource) (altershield_watch_age_seconds{{{OURS}}})",
            "{{component}} {{resource}}",
        ),
        unit="s",
        steps=((None, GREEN), (180, RED)),
    )


def _relists() -> Object:
    return graph(
        "Relists",
        "How often all objects of a resource were listed again, in the last hour. A few times are normal. Many are a "
        "load for the API server.",
        Query(
            f"sum by (component, resource) (increase(altershield_watch_relists_total{{{OURS}}}[1h]))",
            "{{component}} {{resource}}",
        ),
        unit="short",
        steps=((None, GREEN), (20, ORANGE)),
    )


def _objects() -> Object:
    return graph(
        "Objects in caches",
        "Number of objects in each cache. The memory of a process grows with them.",
        Query(
            f"max by (component, resource) (altershield_cached_objects{{{OURS}}})",
            "{{component}} {{resource}}",
        ),
        unit="short",
    )


def _skipped() -> Object:
    return graph(
        "Objects that could not be read",
        "Objects that could not be decoded in the last hour, for the process with the largest number. They are not in "
        "the caches, so AlterShield ignores them. The log names them.",
        Query(
            f"max by (component, resource) ({grown(f'altershield_watch_skipped_total{{{OURS}}}', '1h')})",
            "{{component}} {{resource}}",
        ),
        unit="short",
        steps=NEVER,
    )


def _share_left(kind: str, which: str = "") -> str:
    """PromQL for the share of their lifetime that certificates of a kind have left. `which` is a comparison that
    selects series by their expiry. The expiry of a certificate that does not exist is 0."""
    expiry, life = (f"altershield_{kind}_{suffix}" for suffix in ("expiry_timestamp_seconds", "lifetime_seconds"))
    return f"clamp_min((({expiry}{{{OURS}}}{which}) - time()) / {life}{{{OURS}}}, 0)"


_STORED = _share_left("stored_certificate", " > 0")
"""The share of stored certificates that exist. In some modes the Secret has no CA of certgen. (A gatekeeper without a
certificate is not left out: its share is 0.)"""


def _left() -> Object:
    return graph(
        "Certificate lifetime left, by certificate",
        "Share of the lifetime that is left, for the certificates that gatekeepers serve, the certificate in the "
        "Secret, and its CA. Certificates are renewed at a third. An alert fires at a twelfth.",
        Query(f"min by (pod) ({_share_left('certificate')})", "served by {{pod}}"),
        Query(f"min by (certificate) ({_STORED})", "stored: {{certificate}}"),
        unit="percentunit",
        steps=_RENEWAL,
    )


def _named(label: str, value: str, total: str) -> str:
    """PromQL for a total, with a label that names it in the legend."""
    return f'label_replace({total}, "{label}", "{value}", "", "")'


def _certificate_writes() -> Object:
    return graph(
        "Writes of the certificate and of the CA bundles",
        "certgen's writes in the last hour: of the Secret, in all and by reason, and of the CA bundle, by kind of "
        "webhook configuration. If the numbers are high, another program changes these objects too.",
        Query(
            f"sum by (reason) (increase(altershield_certificate_writes_total{{{OURS}}}[1h])) > 0 or "
            + _named("reason", "all reasons", f"sum(increase(altershield_certificate_writes_total{{{OURS}}}[1h]))"),
            "Secret: {{reason}}",
        ),
        Query(f"sum by (kind) (increase(altershield_ca_bundle_writes_total{{{OURS}}}[1h]))", "{{kind}}"),
        unit="short",
        steps=((None, GREEN), (20, ORANGE)),
    )


def _unusable() -> Object:
    return timeline(
        "Is the certificate usable",
        "Whether certgen has a usable certificate and can publish its CAs. If it is unusable, certgen's log shows the "
        "cause.",
        Query(f"altershield_certificate_unusable{{{OURS}}}", "{{pod}}"),
        values={"0": ("usable", GREEN), "1": ("unusable", RED)},
    )


def _api_errors() -> Object:
    return graph(
        "Errors of the Kubernetes API",
        "Failed requests and watches, by component: in all, and by HTTP status code. 403: a permission is missing. "
        "429: throttled. unreachable: no response.",
        Query(
            "60 * sum by (component, code) "
            f"(rate(altershield_api_errors_total{{{OURS}}}[$__rate_interval])) > 0 or "
            + _named(
                "code",
                "all codes",
                f"60 * sum by (component) (rate(altershield_api_errors_total{{{OURS}}}[$__rate_interval]))",
            ),
            "{{component}} {{code}}",
        ),
        unit="cpm",
        steps=((None, GREEN), (10, ORANGE)),
    )


def _api_writes() -> Object:
    return graph(
        "Writes to the Kubernetes API",
        "Successful writes, by kind and verb. There are about four for each verified pod.",
        Query(
            f"sum by (kind, verb) (rate(altershield_api_writes_total{{{OURS}}}[$__rate_interval]))",
            "{{verb}} {{kind}}",
        ),
        unit="wps",
        stacked=True,
    )


def _events() -> Object:
    return graph(
        "Events dropped",
        "Events that were not written, in the last hour: too many were waiting, or the API server refused them.",
        Query(
            f"sum by (component) ({grown(f'altershield_events_dropped_total{{{OURS}}}', '1h')})",
            "{{component}}",
        ),
        unit="short",
        steps=SELDOM,
    )
