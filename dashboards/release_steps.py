"""Panels about releases in steps, in the dashboard AlterShield / Releases."""

from dashboards.panels import BLUE, GREEN, ORANGE, RED, SELDOM, Column, Object, Query, graph, stat
from dashboards.queries import OURS
from dashboards.release_tables import WHERE, listed, named

_WAITING = "altershield_release_step_waiting_timestamp_seconds"
_DAY = 24 * 3600


def numbers() -> list[Object]:
    return [
        stat(
            "In steps",
            "Number of releases in steps that have not ended, in all namespaces.",
            f"sum(max by (cluster, phase) (altershield_releases_in_steps{{{OURS}}})) or vector(0)",
            steps=((None, BLUE),),
        ),
        stat(
            "Waiting in a step",
            "Releases in steps that wait for a person, a quota, an eviction, a node, a pod that does not end, "
            "a write or a gate. After four hours (for people), three days (for gates) or half an hour an alert fires.",
            f"count({named(_WAITING, '')}) or vector(0)",
            steps=SELDOM,
        ),
        stat(
            "Oldest release in steps",
            "How long the oldest release in steps has been under way, in all namespaces. If no reconciler leads "
            "meanwhile, an alert fires.",
            f"max(altershield_oldest_held_release_seconds{{{OURS}}}) or vector(0)",
            unit="s",
            steps=((None, GREEN), (_DAY, ORANGE), (7 * _DAY, RED)),
        ),
    ]


def waiting() -> Object:
    return listed(
        "Releases that wait in a step",
        "Releases in steps that do not proceed now, and the reason. Both versions serve meanwhile. The 100 oldest and "
        "the 100 newest.",
        _WAITING,
        "",
        ((None, GREEN), (1800, ORANGE), (4 * 3600, RED)),
        Column("reason", "Reason"),
    )


def graphs() -> list[Object]:
    step = f"max by (cluster, namespace, kind, workload) (altershield_release_step{{{WHERE}}})"
    phases = f"sum by (phase) (max by (cluster, phase) (altershield_releases_in_steps{{{OURS}}}))"
    buckets = f"sum by (le) (increase(altershield_step_duration_seconds_bucket{{{OURS}}}[1h]))"
    return [
        graph(
            "Steps of present releases",
            "The number of the step of each release that is under way. The 100 oldest and the 100 newest.",
            Query(step, "{{namespace}}/{{workload}}"),
            unit="short",
        ),
        graph(
            "Releases in steps by phase",
            "Number of releases in steps that have not ended, by the phase of their step, in all namespaces.",
            Query(phases, "{{phase}}"),
            unit="short",
            stacked=True,
        ),
        graph(
            "Duration of steps",
            "Median and 90th percentile of the duration of steps that passed in the last hour, with their soaks. Gaps: "
            "none passed.",
            Query(f"histogram_quantile(0.5, {buckets})", "median"),
            Query(f"histogram_quantile(0.9, {buckets})", "90 %"),
            unit="s",
        ),
    ]
