"""Whether the pods of a step stayed ready in its soak. Pure functions. Times are Unix seconds."""

from altershield.api.rollout import RolloutStatus
from altershield.rollout.steps import is_last, steps_of
from reconciler.rollout.view import View


def is_steady(known: RolloutStatus, view: View, now: float) -> bool:
    """Whether a pod of the version stayed ready for the whole soak, which began with the phase. Single pods may restart
    or be replaced in it. A time in the future is one of a clock that is ahead."""
    return known.soak_end_time_unix <= known.phase_time_unix or not known.phase_time_unix < view.steady <= now


def all_replaced(known: RolloutStatus, view: View) -> bool:
    """Whether the pods of the version were all created after the soak had begun."""
    return view.oldest > known.phase_time_unix


def is_given_up(known: RolloutStatus, view: View, now: float) -> bool:
    """Whether a step fails if no pod has stayed ready for a whole soak until now. The last step has no deadline."""
    return now >= given_up_at(known, view) and not is_last(view.rollout, known.step)


def given_up_at(known: RolloutStatus, view: View) -> float:
    """When the step has had its deadline and one soak, without the time for which it waited."""
    soak = steps_of(view.rollout)[known.step - 1].soak_seconds
    return float(known.step_time_unix + known.stopped_seconds + soak + view.rollout.step_deadline_seconds)
