"""The dashboard AlterShield / Releases: releases under way, stalled, suspended and rolled back; verdicts."""

from dashboards import release_steps
from dashboards.board import SYSTEM, Row, board
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
    graph,
    stat,
)
from dashboards.queries import OURS, grown
from dashboards.release_tables import WHERE, WORKLOADS, listed, named

_UNDER_WAY = 'state=~"Init|Running|TimeOutPreThreshold|Rollback"'
_UNGATED = f"altershield_ungated_releases_total{{{OURS}}}"
_ROLLBACKS = f"altershield_rollbacks_total{{{WHERE}}}"
_ENTERED = "altershield_release_entered_timestamp_seconds"
_STALLED = "altershield_release_stalled_timestamp_seconds"
_DAY = 24 * 3600


def dashboard() -> Object:
    return board(
        "Releases",
        "Which releases are under way, stalled, suspended or rolled back? Since when, why, and by whom?",
        "24h",
        [SYSTEM, WORKLOADS],
        [
            Row("Now, and in the time range", 4, [_now(), _trouble(), release_steps.numbers()]),
            Row("Workloads", 6, [[_releases()]]),
            Row("Releases in steps", 4, [[release_steps.waiting()]]),
            Row("Steps over time", 7, [release_steps.graphs()]),
            Row("Numbers of releases", 8, [[_states(), _kinds()], [_stalls(), _failed_by()]]),
            Row(
                "Verdicts",
                8,
                [[_verifications(), _ends(), _durations()], [_rollbacks(), _rollback_namespaces(), _ungated()]],
            ),
        ],
    )


def _count(states: str) -> str:
    """PromQL for the number of releases in `states`. `max`, because every replica shows the same releases."""
    return f"sum(max by (cluster, state) (altershield_releases{{{states}, {OURS}}})) or vector(0)"


def _now() -> list[Object]:
    return [
        stat(
            "Under way",
            "Number of releases that are being verified or rolled back, in all namespaces.",
            _count(_UNDER_WAY),
            steps=((None, BLUE),),
        ),
        stat(
            "Stalled",
            "Number of releases that do not continue, where the release itself is not the cause. After 15 minutes an "
            "alert fires.",
            f"count({named(_STALLED, '')}) or vector(0)",
            steps=SELDOM,
        ),
        stat(
            "Suspended",
            "Number of releases that failed verification and have not been repaired, in all namespaces.",
            _count('state="Suspend"'),
            steps=SELDOM,
        ),
        stat(
            "Rolled back and denied",
            "Number of versions that were rolled back, or whose report was refused, and that still have a "
            "ChangeWorkload, in all namespaces.",
            _count('state="Failed"'),
            steps=SELDOM,
        ),
    ]


def _trouble() -> list[Object]:
    suspended = f'{_ENTERED}{{state="Suspend", {WHERE}}}'
    by_health = 'state="Suspend", by="health"'
    return [
        stat(
            "Suspended by health",
            "Number of releases whose pods were not up in time, and that were not rolled back. The workload may be "
            "down. After an hour an alert fires.",
            f"count({named(_ENTERED, by_health)}) or vector(0)",
            steps=NEVER,
        ),
        stat(
            "Longest suspension",
            "Time since the oldest suspended release was suspended. After a day an alert fires.",
            f"time() - min({suspended}) or vector(0)",
            unit="s",
            steps=((None, GREEN), (3600, ORANGE), (_DAY, RED)),
        ),
        stat(
            "Rollbacks",
            "Number of rollbacks in the time range.",
            f"sum({grown(_ROLLBACKS, '$__range')}) or vector(0)",
            steps=SELDOM,
        ),
        stat(
            "Ungated releases",
            "Number of releases in the time range that no gatekeeper reviewed.",
            f"sum({grown(_UNGATED, '$__range')})",
            steps=NEVER,
        ),
    ]


def _releases() -> Object:
    return listed(
        "Releases that have not succeeded",
        "Suspend: the workload cannot be released until the failed version is repaired. Failed by: person, server (the "
        "AlterShield server), check (another check of a DefensePolicy), or health (pods were not up in time, and the "
        "release was not rolled back). Failed: the version was rolled back, and is denied until a newer one succeeds. "
        "Other states: the release is under way. Stalled: it does not continue, and is not the cause; the runbook of "
        "AlterShieldReleaseStuck explains each reason. Releases of workloads with 0 replicas are not shown. The 100 "
        "oldest and the 100 newest of each state.",
        _ENTERED,
        "",
        ((None, GREEN), (3600, ORANGE), (_DAY, RED)),
        Column("state", "State", colors={"Suspend": RED, "Rollback": ORANGE, "Failed": ORANGE}),
        Column("by", "Failed by"),
        Column("stalled", "Stalled"),
    )


def _states() -> Object:
    return graph(
        "Releases by state",
        "Number of ChangeWorkloads by state, without Success, in all namespaces.",
        Query(
            f'sum by (state) (max by (cluster, state) (altershield_releases{{state!="Success", {OURS}}}))', "{{state}}"
        ),
        unit="short",
        stacked=True,
    )


def _kinds() -> Object:
    return graph(
        "Releases by kind of workload",
        "Number of releases that have not succeeded, by kind of workload. At most 200 releases of each state count.",
        Query(f"count by (kind) ({named(_ENTERED, '')})", "{{kind}}"),
        unit="short",
        stacked=True,
    )


def _stalls() -> Object:
    return graph(
        "Stalled releases by reason",
        "Number of releases that do not continue, where the release itself is not the cause. Many releases with one "
        "reason at the same time point to a problem of the cluster.",
        Query(f"count by (reason) ({named(_STALLED, '', 'reason')})", "{{reason}}"),
        unit="short",
        stacked=True,
    )


def _failed_by() -> Object:
    which = 'state="Suspend"'
    return graph(
        "Suspended releases by who failed them",
        "Number of suspended releases. person: somebody wrote the verdict. server: the AlterShield server gave the "
        "verdict. check: another check of a DefensePolicy gave it. health: pods were not up in time, and the release "
        "was not rolled back.",
        Query(f"count by (by) ({named(_ENTERED, which, 'by')})", "{{by}}"),
        unit="short",
        stacked=True,
    )


def _verifications() -> Object:
    return graph(
        "Pods verified",
        "Pods verified per minute, by verdict.",
        Query(
            f"60 * sum by (verdict) (rate(altershield_verifications_total{{{OURS}}}[$__rate_interval]))", "{{verdict}}"
        ),
        unit="cpm",
    )


def _ends() -> Object:
    return graph(
        "Finished releases",
        "Number of releases that ended in the last hour, by result. A release that is suspended and then repaired "
        "counts twice.",
        Query(
            f"sum by (result) ({grown(f'altershield_release_duration_seconds_count{{{OURS}}}', '1h')})",
            "{{result}}",
        ),
        unit="short",
    )


def _durations() -> Object:
    buckets = f"sum by (le, result) (increase(altershield_release_duration_seconds_bucket{{{OURS}}}[1h]))"
    return graph(
        "Duration of releases",
        "Median and 90th percentile of the duration of releases that ended in the last hour, by result. Gaps: none "
        "ended.",
        Query(f"histogram_quantile(0.5, {buckets})", "{{result}} median"),
        Query(f"histogram_quantile(0.9, {buckets})", "{{result}} 90 %"),
        unit="s",
        steps=((None, GREEN), (3600, RED)),
    )


def _rollbacks() -> Object:
    return graph(
        "Rollbacks by reason",
        "Number of rollbacks in the last hour. PodNotUp: pods did not come up in time, or did not stay up. "
        "VerificationFailed: pods failed verification, and the DefensePolicy has onFailure: rollback. Requested: a "
        "person requested the rollback.",
        Query(f"sum by (reason) ({grown(_ROLLBACKS, '1h')})", "{{reason}}"),
        unit="short",
        steps=((None, GREEN), (1, ORANGE)),
    )


def _rollback_namespaces() -> Object:
    return graph(
        "Rollbacks by namespace",
        "Number of rollbacks in the last hour, for the ten namespaces with the most. (other): namespaces after the "
        "first hundred.",
        Query(f"topk(10, sum by (namespace) ({grown(_ROLLBACKS, '1h')}))", "{{namespace}}"),
        unit="short",
        steps=((None, GREEN), (1, ORANGE)),
    )


def _ungated() -> Object:
    return graph(
        "Ungated releases, by reason",
        "Number of releases found in the last hour that no gatekeeper reviewed. no-version: the release has no "
        "version. version-reused: its version belongs to another pod template.",
        Query(f"sum by (reason) ({grown(_UNGATED, '1h')})", "{{reason}}"),
        unit="short",
        steps=((None, GREEN), (1, RED)),
    )
