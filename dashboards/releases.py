"""What is going on, what is stalled or suspended, since when, why, and by whom?"""

from dashboards.board import GATE, Row, board, namespaces
from dashboards.panels import (
    BLUE,
    GREEN,
    NEVER,
    ORANGE,
    RED,
    SELDOM,
    Column,
    Object,
    Query,
    Steps,
    graph,
    stat,
    table,
)
from dashboards.queries import grown

_OURS = 'namespace=~"$namespace"'
_UNDER_WAY = 'state=~"Init|Running|TimeOutPreThreshold|Rollback"'
_ROLLBACKS = f"altershield_rollbacks_total{{{_OURS}}}"
_UNGATED = f"altershield_ungated_releases_total{{{_OURS}}}"
_WHERE = 'namespace=~"$workload_namespace"'
_ENTERED = "altershield_release_entered_timestamp_seconds"
_STALLED = "altershield_release_stalled_timestamp_seconds"
_DAY = 24 * 3600

_WORKLOADS = namespaces(
    "workload_namespace",
    "Workload's namespace",
    "altershield_release_entered_timestamp_seconds",
    "Where the workloads are. For what names workloads or their kinds; counters know no namespaces.",
)


def dashboard() -> Object:
    return board(
        "Releases",
        "What is going on, what is stalled or suspended, since when, why, and by whom?",
        "24h",
        [GATE, _WORKLOADS],
        [
            Row("Now, and in the time range", 4, [_now(), _trouble()]),
            Row("Which", 8, [[_suspended(), _under_way()], [_stalled(), _rolled_back()]]),
            Row("How many", 8, [[_states(), _kinds()], [_stalls(), _failed_by()]]),
            Row("Verdicts", 8, [[_verifications(), _ends(), _durations()], [_rollbacks(), _ungated()]]),
        ],
    )


def _count(states: str) -> str:
    """Every replica tells of the same records."""
    return f"sum(max by (state) (altershield_releases{{{states}, {_OURS}}})) or vector(0)"


def _named(metric: str, which: str, *labels: str) -> str:
    """The releases that a metric names, each once; every replica tells of the same ones."""
    selected = ", ".join(filter(None, (which, _WHERE)))
    return f"max by ({', '.join(('namespace', 'kind', 'workload', 'version', *labels))}) ({metric}{{{selected}}})"


def _now() -> list[Object]:
    return [
        stat(
            "Under way",
            "Releases that are being verified or rolled back, in all namespaces.",
            _count(_UNDER_WAY),
            steps=((None, BLUE),),
        ),
        stat(
            "Stalled",
            "Releases that do not go on for a reason that is not their own fault. From a quarter of an hour on there "
            "is an alert.",
            f"count({_named(_STALLED, '')}) or vector(0)",
            steps=SELDOM,
        ),
        stat(
            "Suspended",
            "Releases that failed verification and are not repaired yet, in all namespaces.",
            _count('state="Suspend"'),
            steps=SELDOM,
        ),
        stat(
            "Rolled back and denied",
            "Versions that were rolled back (or never begun), and are still on record, in all namespaces.",
            _count('state="Failed"'),
            steps=SELDOM,
        ),
    ]


def _trouble() -> list[Object]:
    suspended = f'{_ENTERED}{{state="Suspend", {_WHERE}}}'
    by_health = 'state="Suspend", by="health"'
    return [
        stat(
            "Suspended by health",
            "Releases whose pods were not up in time, and that were not rolled back: the workload may be down. From an "
            "hour on there is an alert.",
            f"count({_named(_ENTERED, by_health)}) or vector(0)",
            steps=NEVER,
        ),
        stat(
            "Longest suspension",
            "How long the oldest of the suspended releases has been so. From a day on there is an alert.",
            f"time() - min({suspended}) or vector(0)",
            unit="s",
            steps=((None, GREEN), (3600, ORANGE), (_DAY, RED)),
        ),
        stat(
            "Rollbacks",
            "Rollbacks in the time range.",
            f"sum({grown(_ROLLBACKS, '$__range')})",
            steps=SELDOM,
        ),
        stat(
            "Ungated releases",
            "Releases in the time range that no gatekeeper had seen.",
            f"sum({grown(_UNGATED, '$__range')})",
            steps=NEVER,
        ),
    ]


def _list(title: str, description: str, metric: str, which: str, late: Steps, *more: Column) -> Object:
    since = _named(metric, which, *(column.source for column in more))
    return table(
        title,
        description,
        [Query(f"1000 * {since}"), Query(f"time() - {since}")],
        [
            Column("namespace", "Namespace"),
            Column("kind", "Kind"),
            Column("workload", "Workload"),
            Column("version", "Version"),
            *more,
            Column("Value #A", "Since", "dateTimeAsIso"),
            Column("Value #B", "For", "s", late),
        ],
    )


def _suspended() -> Object:
    return _list(
        "Suspended workloads",
        "Workloads that nobody can release before the failed version is repaired, and who failed it: a person, the "
        "AlterShield server, or health (its pods were not up in time, and it was not rolled back). The person's name "
        "is in the API server's audit log: who wrote the status of the ChangePod. The 100 oldest.",
        _ENTERED,
        'state="Suspend"',
        ((None, GREEN), (3600, ORANGE), (_DAY, RED)),
        Column("by", "Failed by"),
    )


def _under_way() -> Object:
    return _list(
        "Releases under way",
        "Releases that are being verified or rolled back, and since when they are in their state. The 100 oldest of "
        "each state. More than an hour in one state is an alert, ten minutes of Rollback too. A release of a workload "
        "without pods is not shown.",
        _ENTERED,
        _UNDER_WAY,
        ((None, GREEN), (600, ORANGE), (3600, RED)),
        Column("state", "State"),
        Column("stalled", "Stalled"),
    )


def _stalled() -> Object:
    return _list(
        "Stalled releases",
        "Releases that do not go on for a reason that is not their own fault, with the reason of their condition "
        "Stalled. They are neither rolled back nor suspended. The runbook of AlterShieldReleaseStuck explains each "
        "reason. The 100 oldest.",
        _STALLED,
        "",
        ((None, GREEN), (300, ORANGE), (900, RED)),
        Column("reason", "Reason"),
    )


def _rolled_back() -> Object:
    return _list(
        "Rolled-back versions",
        "Versions that were undone. Each is denied until a newer one has succeeded; another template is another "
        "version, and passes. The 100 oldest.",
        _ENTERED,
        'state="Failed"',
        ((None, GREEN), (3600, ORANGE)),
    )


def _states() -> Object:
    return graph(
        "Releases by state",
        "Versions on record, by state, those that succeeded aside; in all namespaces.",
        Query(f'max by (state) (altershield_releases{{state!="Success", {_OURS}}})', "{{state}}"),
        unit="short",
        stacked=True,
    )


def _kinds() -> Object:
    return graph(
        "Releases by kind of workload",
        "Releases that have not succeeded, by kind of workload; at most 100 of each state are counted.",
        Query(f"count by (kind) ({_named(_ENTERED, '')})", "{{kind}}"),
        unit="short",
        stacked=True,
    )


def _stalls() -> Object:
    return graph(
        "Stalled releases by reason",
        "Releases that do not go on for a reason that is not their own fault. Many at once with one reason are the "
        "cluster's trouble.",
        Query(f"count by (reason) ({_named(_STALLED, '', 'reason')})", "{{reason}}"),
        unit="short",
        stacked=True,
    )


def _failed_by() -> Object:
    which = 'state="Suspend"'
    return graph(
        "Suspended releases by who failed them",
        "person: somebody wrote a verdict. server: the AlterShield server gave it. health: the pods were not up in "
        "time, and the release was not rolled back.",
        Query(f"count by (by) ({_named(_ENTERED, which, 'by')})", "{{by}}"),
        unit="short",
        stacked=True,
    )


def _verifications() -> Object:
    return graph(
        "Pods verified",
        "Pods verified per minute, by verdict.",
        Query(
            f"60 * sum by (verdict) (rate(altershield_verifications_total{{{_OURS}}}[$__rate_interval]))", "{{verdict}}"
        ),
        unit="cpm",
    )


def _ends() -> Object:
    return graph(
        "Releases that ended",
        "Releases that ended in the hour before, by how they did. One that is suspended and repaired ends twice.",
        Query(
            f"sum by (result) ({grown(f'altershield_release_duration_seconds_count{{{_OURS}}}', '1h')})",
            "{{result}}",
        ),
        unit="short",
    )


def _durations() -> Object:
    buckets = f"sum by (le, result) (increase(altershield_release_duration_seconds_bucket{{{_OURS}}}[1h]))"
    return graph(
        "Duration of releases",
        "From the release to its end, of those that ended in the hour before: median and the slowest tenth, by how "
        "they ended. Gaps: none did.",
        Query(f"histogram_quantile(0.5, {buckets})", "{{result}} median"),
        Query(f"histogram_quantile(0.9, {buckets})", "{{result}} 90 %"),
        unit="s",
        steps=((None, GREEN), (3600, RED)),
    )


def _rollbacks() -> Object:
    return graph(
        "Rollbacks by reason",
        "Rollbacks in the hour before. PodNotUp: pods were not up in time, or not any more. Requested: a person asked "
        "for it.",
        Query(f"sum by (reason) ({grown(_ROLLBACKS, '1h')})", "{{reason}}"),
        unit="short",
        steps=((None, GREEN), (1, ORANGE)),
    )


def _ungated() -> Object:
    return graph(
        "Ungated releases, by reason",
        "Noticed in the hour before. no-version: the gate did not stamp the release. version-reused: another template "
        "under a version that was known.",
        Query(f"sum by (reason) ({grown(_UNGATED, '1h')})", "{{reason}}"),
        unit="short",
        steps=((None, GREEN), (1, RED)),
    )
