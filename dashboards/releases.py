"""What is going on, what is suspended, since when, and by whom?"""

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
_SLIPPED = f"altershield_slipped_releases_total{{{_OURS}}}"
_DAY = 24 * 3600

_WORKLOADS = namespaces(
    "workload_namespace",
    "Workload's namespace",
    "altershield_release_entered_timestamp_seconds",
    "Where the Deployments are. For the tables; counters know no namespaces.",
)


def dashboard() -> Object:
    return board(
        "Releases",
        "What is going on, what is suspended, since when, and by whom?",
        "24h",
        [GATE, _WORKLOADS],
        [
            Row("Now, and in the time range", 4, [_now()]),
            Row(
                "Which",
                8,
                [
                    [_suspended(), _under_way()],
                    [_rolled_back(), _states()],
                ],
            ),
            Row("Verdicts", 8, [[_verifications(), _ends(), _durations()], [_rollbacks(), _slipped()]]),
        ],
    )


def _count(states: str) -> str:
    """Every replica tells of the same records."""
    return f"sum(max by (state) (altershield_releases{{{states}, {_OURS}}})) or vector(0)"


def _now() -> list[Object]:
    return [
        stat(
            "Under way",
            "Releases that are being verified or rolled back, in all namespaces.",
            _count(_UNDER_WAY),
            steps=((None, BLUE),),
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
        stat(
            "Longest suspension",
            "How long the oldest of the suspended releases has been so. From a day on there is an alert.",
            "time() - min(altershield_release_entered_timestamp_seconds"
            '{state="Suspend", namespace=~"$workload_namespace"}) or vector(0)',
            unit="s",
            steps=((None, GREEN), (3600, ORANGE), (_DAY, RED)),
        ),
        stat(
            "Rollbacks",
            "Rollbacks that were begun in the time range.",
            f"sum({grown(_ROLLBACKS, '$__range')})",
            steps=SELDOM,
        ),
        stat(
            "Slipped past the gate",
            "Releases in the time range that no gatekeeper had seen.",
            f"sum({grown(_SLIPPED, '$__range')})",
            steps=NEVER,
        ),
    ]


def _list(title: str, description: str, states: str, late: Steps, *more: Column) -> Object:
    labels = [
        Column("namespace", "Namespace"),
        Column("deployment", "Deployment"),
        Column("version", "Version"),
        *more,
    ]
    entered = (
        f"max by ({', '.join(label.source for label in labels)}) (altershield_release_entered_timestamp_seconds"
        f'{{{states}, namespace=~"$workload_namespace"}})'
    )
    return table(
        title,
        description,
        [Query(f"1000 * {entered}"), Query(f"time() - {entered}")],
        [
            *labels,
            Column("Value #A", "Since", "dateTimeAsIso"),
            Column("Value #B", "For", "s", late),
        ],
    )


def _suspended() -> Object:
    return _list(
        "Suspended Deployments",
        "Deployments that nobody can release before the failed version is repaired, with who gave the verdict: a "
        "person or the AlterShield server. The person's name is in the API server's audit log: who wrote the status of "
        "the ChangePod. The 100 oldest.",
        'state="Suspend"',
        ((None, GREEN), (3600, ORANGE), (_DAY, RED)),
        Column("by", "Verdict by"),
    )


def _under_way() -> Object:
    return _list(
        "Releases under way",
        "Releases that are being verified or rolled back, with the state that they are in since. The 100 oldest of "
        "each state. More than an hour in one state is an alert, ten minutes of Rollback too.",
        _UNDER_WAY,
        ((None, GREEN), (600, ORANGE), (3600, RED)),
        Column("state", "State"),
    )


def _rolled_back() -> Object:
    return _list(
        "Rolled-back versions",
        "Versions that were undone. Each is denied until a newer one has succeeded; another template is another "
        "version, and passes. The 100 oldest.",
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
        "Rollbacks begun in the hour before. PodNotUp: a pod did not come up in time. Requested: a person asked for "
        "it.",
        Query(f"sum by (reason) ({grown(_ROLLBACKS, '1h')})", "{{reason}}"),
        unit="short",
        steps=((None, GREEN), (1, ORANGE)),
    )


def _slipped() -> Object:
    return graph(
        "Releases that slipped past the gate, by reason",
        "Noticed in the hour before. no-version: the gate did not stamp the release. version-reused: another template "
        "under a version that was known.",
        Query(f"sum by (reason) ({grown(_SLIPPED, '1h')})", "{{reason}}"),
        unit="short",
        steps=((None, GREEN), (1, RED)),
    )
