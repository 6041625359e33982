"""Is the gate itself well? Leader, queues, watches, certificates, errors of the Kubernetes API."""

from dashboards.board import GATE, Row, board
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
from dashboards.queries import grown

_OURS = 'namespace=~"$namespace"'

_LEADS = f"and on (instance) (altershield_leader{{{_OURS}}} == 1)"
"""Followers' queues fill with all that they would work on if they led."""

_RENEWAL: Steps = ((None, RED), (1 / 12, ORANGE), (1 / 3, GREEN))
"""Shares of a certificate's life that are left: it is renewed at a third, and at a twelfth there is an alert."""


def dashboard() -> Object:
    return board(
        "Health",
        "Is the gate itself well? Leader, queues, watches, certificates, errors of the Kubernetes API.",
        "6h",
        [GATE],
        [
            Row("Now", 4, [_now()]),
            Row("Who is there", 6, [[_components(), _leader(), _webhooks()]]),
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
            "AlterShield's alerts that are firing, where Prometheus has its rules.",
            'count(ALERTS{alertname=~"AlterShield.+", alertstate="firing"}) or vector(0)',
            steps=NEVER,
        ),
        stat(
            "Leaders",
            "Reconcilers that lead: one. Without one nothing is verified, suspended or rolled back.",
            f"sum(altershield_leader{{{_OURS}}}) or vector(0)",
            steps=((None, RED), (1, GREEN), (2, RED)),
        ),
        stat(
            "Longest wait in a queue",
            "How long the oldest key of any of the leader's queues has waited for a worker; those that a new leader "
            "begins with, since its process was started.",
            f"max(altershield_queue_oldest_seconds{{{_OURS}}} {_LEADS})",
            unit="s",
            steps=((None, GREEN), (10, ORANGE), (60, RED)),
        ),
        stat(
            "Oldest watch",
            "Time since the API server last said anything, of the watch that heard least. At rest it says something "
            "every minute; the watch is made anew after 90 s.",
            f"max(altershield_watch_age_seconds{{{_OURS}}})",
            unit="s",
            steps=((None, GREEN), (100, ORANGE), (180, RED)),
        ),
        stat(
            "Certificate's life left",
            "How much of its life the certificate that is nearest to its end has before it, served or stored. Renewed "
            "at a third; at a twelfth there is an alert, at a ninetieth (a day of 90) a critical one.",
            f"min({_share_left('certificate')} or {_STORED})",
            unit="percentunit",
            steps=_RENEWAL,
        ),
        stat(
            "API errors",
            "Requests to the Kubernetes API that failed in the time range; conflicts (409) aside, which are tried "
            "again and no trouble.",
            f'sum(increase(altershield_api_errors_total{{code!="409", {_OURS}}}[$__range]))',
            steps=((None, GREEN), (10, ORANGE), (1000, RED)),
        ),
    ]


def _components() -> Object:
    return graph(
        "Processes",
        "Processes that Prometheus reaches, by component and version. Two versions for long are an upgrade that hangs.",
        Query(
            f"count by (component, version) (altershield_build_info{{{_OURS}}})",
            "{{component}} {{version}}",
        ),
        unit="short",
    )


def _leader() -> Object:
    return timeline(
        "Who leads",
        "Which reconciler led when. The Lease passes on within half a minute when the leader is lost.",
        Query(f"altershield_leader{{{_OURS}}}", "{{pod}}"),
        values={"0": ("follows", "text"), "1": ("leads", GREEN)},
    )


def _webhooks() -> Object:
    return timeline(
        "Are the gate's webhooks there",
        "Whether the release's webhook configurations exist and hold webhooks. Without, API servers ask nobody.",
        Query(f"min by (resource) (altershield_webhooks{{{_OURS}}}) > bool 0", "{{resource}}"),
        values={"0": ("missing or empty", RED), "1": ("there", GREEN)},
    )


def _depth() -> Object:
    return graph(
        "Keys waiting",
        "Keys in the leader's queues, by controller. It peaks when the leader changes, and has to fall again.",
        Query(f"max by (controller) (altershield_queue_depth{{{_OURS}}} {_LEADS})", "{{controller}}"),
        unit="short",
        steps=((None, GREEN), (5000, ORANGE)),
    )


def _oldest() -> Object:
    return graph(
        "Longest waiting key",
        "How long the oldest key of each of the leader's queues has waited; those that a new leader begins with, since "
        "its process was started.",
        Query(f"max by (controller) (altershield_queue_oldest_seconds{{{_OURS}}} {_LEADS})", "{{controller}}"),
        unit="s",
        steps=((None, GREEN), (60, RED)),
    )


def _wait() -> Object:
    def rate(part: str) -> str:
        return f"sum by (controller) (rate(altershield_queue_wait_seconds_{part}{{{_OURS}}}[$__rate_interval]))"

    return graph(
        "Mean wait",
        "Mean time that keys waited before a worker took them. Gaps: nothing was to do. Peaks: there is a new leader, "
        "and what it begins with has waited since its process was started.",
        Query(f"{rate('sum')} / {rate('count')}", "{{controller}}"),
        unit="s",
        steps=((None, GREEN), (10, RED)),
    )


def _durations() -> Object:
    return graph(
        "Time to reconcile",
        "Slowest 1 % of the reconciliations, by controller. Mostly it is the API server that takes it.",
        Query(
            "histogram_quantile(0.99, sum by (le, controller) "
            f"(rate(altershield_reconcile_duration_seconds_bucket{{{_OURS}}}[$__rate_interval])))",
            "{{controller}}",
        ),
        unit="s",
        steps=((None, GREEN), (5, ORANGE)),
    )


def _outcomes() -> Object:
    return graph(
        "Reconciliations",
        "By how they ended. conflict and throttled are tried again and no trouble while they are few; error is.",
        Query(
            f"sum by (outcome) (rate(altershield_reconciles_total{{{_OURS}}}[$__rate_interval]))",
            "{{outcome}}",
        ),
        unit="ops",
        stacked=True,
    )


def _ages() -> Object:
    return graph(
        "Age of watches",
        "Time since the API server last said anything about a resource, in the process that heard least. From 180 s on "
        "there is an alert.",
        Query(
            f"max by (component, resource) (altershield_watch_age_seconds{{{_OURS}}})",
            "{{component}} {{resource}}",
        ),
        unit="s",
        steps=((None, GREEN), (180, RED)),
    )


def _relists() -> Object:
    return graph(
        "Relists",
        "Times in the hour before that all objects of a resource were listed again. A few are normal; many are a load "
        "for the API server.",
        Query(
            f"sum by (component, resource) (increase(altershield_watch_relists_total{{{_OURS}}}[1h]))",
            "{{component}} {{resource}}",
        ),
        unit="short",
        steps=((None, GREEN), (20, ORANGE)),
    )


def _objects() -> Object:
    return graph(
        "Objects in caches",
        "Objects of governed workloads in each cache. Memory grows with them.",
        Query(
            f"max by (component, resource) (altershield_cached_objects{{{_OURS}}})",
            "{{component}} {{resource}}",
        ),
        unit="short",
    )


def _skipped() -> Object:
    return graph(
        "Objects that could not be read",
        "Objects received in the hour before and left out of the caches, in the process that met most: to AlterShield "
        "they do not exist. The log names them.",
        Query(
            f"max by (component, resource) ({grown(f'altershield_watch_skipped_total{{{_OURS}}}', '1h')})",
            "{{component}} {{resource}}",
        ),
        unit="short",
        steps=NEVER,
    )


def _share_left(kind: str, which: str = "") -> str:
    """Of their lives, what certificates of a kind still have before them; `which` compares their expiry, 0 where
    there is none."""
    expiry, life = (f"altershield_{kind}_{suffix}" for suffix in ("expiry_timestamp_seconds", "lifetime_seconds"))
    return f"clamp_min((({expiry}{{{_OURS}}}{which}) - time()) / {life}{{{_OURS}}}, 0)"


_STORED = _share_left("stored_certificate", " > 0")
"""The Secret need not have a CA of ours; a gatekeeper without a certificate has no life left."""


def _left() -> Object:
    return graph(
        "Life left",
        "How much of its life a certificate has before it: those that gatekeepers serve, the one in the Secret, and "
        "its CA. Renewed at a third; at a twelfth there is an alert.",
        Query(f"min by (pod) ({_share_left('certificate')})", "served by {{pod}}"),
        Query(f"min by (certificate) ({_STORED})", "stored: {{certificate}}"),
        unit="percentunit",
        steps=_RENEWAL,
    )


def _certificate_writes() -> Object:
    return graph(
        "Writes of the certificate and of the CA bundles",
        "In the hour before: of the Secret, all and by reason; of the CAs into webhook configurations, by kind. If "
        "these are many, somebody else writes them, too.",
        Query(
            f"sum by (reason) (increase(altershield_certificate_writes_total{{{_OURS}}}[1h])) > 0 or "
            f"sum(increase(altershield_certificate_writes_total{{{_OURS}}}[1h]))",
            "Secret {{reason}}",
        ),
        Query(f"sum by (kind) (increase(altershield_ca_bundle_writes_total{{{_OURS}}}[1h]))", "{{kind}}"),
        unit="short",
        steps=((None, GREEN), (20, ORANGE)),
    )


def _unusable() -> Object:
    return timeline(
        "Can the certificate be used",
        "Whether certgen finds a usable certificate, and can publish its CAs. Its log says why not.",
        Query(f"altershield_certificate_unusable{{{_OURS}}}", "{{pod}}"),
        values={"0": ("usable", GREEN), "1": ("unusable", RED)},
    )


def _api_errors() -> Object:
    return graph(
        "Errors of the Kubernetes API",
        "Requests and watches that failed, by component: all, and by HTTP status. 403: a permission is missing. "
        "429: throttled. unreachable: no answer.",
        Query(
            "60 * sum by (component, code) "
            f"(rate(altershield_api_errors_total{{{_OURS}}}[$__rate_interval])) > 0 or "
            f"60 * sum by (component) (rate(altershield_api_errors_total{{{_OURS}}}[$__rate_interval]))",
            "{{component}} {{code}}",
        ),
        unit="cpm",
        steps=((None, GREEN), (10, ORANGE)),
    )


def _api_writes() -> Object:
    return graph(
        "Writes to the Kubernetes API",
        "Writes that succeeded, by kind and verb. About four for each pod that is verified.",
        Query(
            f"sum by (kind, verb) (rate(altershield_api_writes_total{{{_OURS}}}[$__rate_interval]))",
            "{{verb}} {{kind}}",
        ),
        unit="wps",
        stacked=True,
    )


def _events() -> Object:
    return graph(
        "Events dropped",
        "Events that were not written in the hour before: too many waited, or the API server refused them.",
        Query(
            f"sum by (component) ({grown(f'altershield_events_dropped_total{{{_OURS}}}', '1h')})",
            "{{component}}",
        ),
        unit="short",
        steps=SELDOM,
    )
