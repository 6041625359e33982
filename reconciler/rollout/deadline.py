"""When a step is overdue. Pure functions. Times are Unix seconds."""

from altershield.api.rollout import Phase, RolloutStatus
from altershield.releases.steps import step_text
from reconciler.rollout.soaks import given_up_at, is_steady
from reconciler.rollout.view import View

TIMED = (Phase.HELD, Phase.ROLLING, Phase.VERIFYING, Phase.SOAKING)
"""The phases in which the deadline of the step runs."""


def deadline(status: RolloutStatus, view: View, now: float) -> tuple[str, float | None]:
    """Why the step is overdue, or empty; and when it will be, Unix seconds."""
    if status.waiting_since_unix or status.phase not in TIMED:
        return "", None
    seconds = view.rollout.step_deadline_seconds
    soaked = status.phase == Phase.SOAKING and view.complete and now >= status.soak_end_time_unix
    if soaked and not is_steady(status, view, now):  # else it would have begun anew, or passed
        return f"{step_text(status)}: no pod stayed ready for a whole soak within {seconds} s", None
    if status.phase == Phase.SOAKING:  # it may have waited in the soak, and after it
        due = max(float(status.soak_end_time_unix + seconds), given_up_at(status, view))
    else:
        due = float(status.step_time_unix + seconds + status.stopped_seconds)
    if now < due:
        return "", due
    if status.phase == Phase.HELD:
        said = view.checks_said or "its checks have no result yet"
        return f"{step_text(status)} has not begun within {seconds} s: {said}", None
    counts = f"{view.passed} of {status.pods} pods passed, {view.up} are up"
    why = f"; {view.trouble}" if view.trouble else ""
    return f"{step_text(status)} is not verified within {seconds} s: {counts}{why}", None
