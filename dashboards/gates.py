"""The dashboard AlterShield / Gates: when releases may begin, which wait or are denied, and what was overridden."""

from dashboards.board import SYSTEM, Row, board
from dashboards.panels import BLUE, GREEN, ORANGE, RED, SELDOM, Column, Object, Query, graph, stat, timeline
from dashboards.queries import CLUSTER, OURS, REAL, grown
from dashboards.release_tables import WORKLOADS, listed, named

_GATES = f'{CLUSTER}, namespace=~"$workload_namespace|$namespace"'
"""Selects the gates of the chosen namespaces of workloads, and those of AlterShield's namespace, which are for all."""

_WAITING = "altershield_release_step_waiting_timestamp_seconds"
_FOR_A_GATE = 'reason=~"window|freeze|limit"'
_DENIED = f'altershield_admission_requests_total{{reason="gate-closed", {REAL}, {OURS}}}'
_OVERRIDDEN = f'altershield_admission_bypasses_total{{bypass="overridden", {OURS}}}'
_COMPUTED = f"altershield_release_windows_computed_seconds{{{OURS}}}"
_DAY = 24 * 3600


def dashboard() -> Object:
    return board(
        "Gates",
        "When may I release? Which windows and freezes are closed, which releases wait for them or were denied, and "
        "which passed by an override?",
        "7d",
        [SYSTEM, WORKLOADS],
        [
            Row("May releases begin now?", 4, [_closed(), _accepted()]),
            Row("When may I release?", 10, [[_times()]]),
            Row("Releases that wait", 4, [[_held()]]),
            Row("What was denied, and what passed", 8, [[_denials(), _overrides(), _left()]]),
        ],
    )


def _window(mode: str) -> str:
    """PromQL for the windows of a mode: 1, if releases may begin. `max`, because every replica shows them."""
    return f'max by (cluster, namespace, window) (altershield_release_window_open{{mode="{mode}", {_GATES}}})'


def _freeze(mode: str) -> str:
    """PromQL for the freezes of a mode that are in force: 1."""
    return f'max by (cluster, namespace, freeze) (altershield_release_freeze_in_force{{mode="{mode}", {_GATES}}})'


def _closed() -> list[Object]:
    return [
        stat(
            "Closed windows",
            "Number of ReleaseWindows that are closed now, of the mode enforce. A workload may be released if no other "
            "gate is closed for it: one of several windows of the type Allow is enough.",
            f"count({_window('enforce')} == 0) or vector(0)",
            steps=SELDOM,
        ),
        stat(
            "Freezes in force",
            "Number of ReleaseFreezes of the mode enforce that are in force now, in all namespaces.",
            f'sum(max by (cluster) (altershield_release_freezes{{mode="enforce", {OURS}}})) or vector(0)',
            steps=SELDOM,
        ),
        stat(
            "Held by a gate",
            "Number of releases that wait until a window opens, a freeze ends, or a limit has room. After three days "
            "an alert fires.",
            f"count({named(_WAITING, _FOR_A_GATE)}) or vector(0)",
            steps=((None, GREEN), (0.5, BLUE)),
        ),
        stat(
            "Denied by a gate",
            "Number of releases that were denied in the time range because a gate was closed. Repeated attempts count "
            "too.",
            f"sum({grown(_DENIED, '$__range')})",
            steps=((None, GREEN), (0.5, BLUE)),
        ),
    ]


def _accepted() -> list[Object]:
    return [
        stat(
            "Overrides used",
            "Number of requests that passed closed gates in the time range by a ReleaseOverride.",
            f"sum({grown(_OVERRIDDEN, '$__range')})",
            steps=SELDOM,
        ),
        stat(
            "Objects not accepted",
            "Number of gates, DefensePolicies, settings and PodDeletionFlowControls whose spec is wrong or was not "
            "worked out yet. Their last accepted spec stays in force. After ten minutes an alert fires.",
            f'sum(max by (cluster, kind, accepted) (altershield_objects{{accepted!="True", {OURS}}})) or vector(0)',
            steps=SELDOM,
        ),
        stat(
            "Schedules run out in",
            "Time until the times of a ReleaseWindow run out, of the window that runs out first. The reconciler works "
            "them out for 35 days. Below five days an alert fires. After the end, an Allow is closed.",
            f"min({_COMPUTED})",
            unit="s",
            steps=((None, RED), (_DAY, ORANGE), (5 * _DAY, GREEN)),
        ),
        stat(
            "Oldest freeze without an end",
            "How long the oldest ReleaseFreeze without an end has been in force. After seven days an alert fires: "
            "somebody may have forgotten it.",
            f"max(altershield_release_freeze_without_end_seconds{{{OURS}}}) or vector(0)",
            unit="s",
            steps=((None, GREEN), (_DAY, ORANGE), (7 * _DAY, RED)),
        ),
    ]


def _times() -> Object:
    return timeline(
        "Windows and freezes",
        "When releases may begin, as far as each window and freeze says. Those of AlterShield's namespace are for all "
        "namespaces that they select. Of several windows of the type Allow, one open is enough. would close: the mode "
        "is warn, so releases pass. A freeze that is over has no bar. For the next days, run altershield calendar.",
        Query(f"{_freeze('enforce')} - 1 or {_freeze('warn')} + 1", "freeze {{namespace}}/{{freeze}}"),
        Query(f"{_window('enforce')} or 2 - {_window('warn')}", "window {{namespace}}/{{window}}"),
        values={"0": ("closed", RED), "1": ("open", GREEN), "2": ("would close", ORANGE)},
    )


def _held() -> Object:
    return listed(
        "Releases held by a gate",
        "Releases that wait until a window opens, a freeze ends, or a limit has room. They go on by themselves. The "
        "100 oldest and the 100 newest.",
        _WAITING,
        _FOR_A_GATE,
        ((None, GREEN), (3 * _DAY, ORANGE)),
        Column("reason", "Waits for"),
    )


def _denials() -> Object:
    denials = f'altershield_admission_denials_total{{reason="gate-closed", {CLUSTER}}}'
    return graph(
        "Denials by gates",
        "Number of denials in the last hour because a gate was closed, for the ten namespaces with the most. "
        "(other): namespaces in which AlterShield has no release, and those after the first hundred.",
        Query(f"topk(10, sum by (namespace) ({grown(denials, '1h')}))", "{{namespace}}"),
        unit="short",
    )


def _overrides() -> Object:
    return graph(
        "Overrides by user",
        "Number of requests in the last hour that passed closed gates by a ReleaseOverride, of people and of service "
        "accounts. The Events OverrideUsed name the workloads.",
        Query(f"sum by (actor) ({grown(_OVERRIDDEN, '1h')})", "{{actor}}"),
        unit="short",
    )


def _left() -> Object:
    return graph(
        "Time until schedules run out",
        "Time until the times of a ReleaseWindow run out, of the window that runs out first. It is between 28 and 35 "
        "days while a reconciler leads, and less if a window has many times.",
        Query(f"min by (cluster) ({_COMPUTED})", "{{cluster}}"),
        unit="s",
        steps=((None, GREEN), (5 * _DAY, RED)),
    )
