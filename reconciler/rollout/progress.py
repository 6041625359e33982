"""The phases of a release in steps. Pure functions.

A phase is stored before it is acted on: `progress` changes the status, or returns what the stored status asks for.
So a reconcile that runs twice, or a reconciler that is killed between two writes, does nothing twice.
"""

from collections.abc import Sequence

import msgspec

from altershield.api.meta import plain_time
from altershield.api.rollout import COUNTS, ENDED, PassedStep, Phase, RolloutStatus, WaitingFor
from altershield.releases.steps import labels_text, reasons, step_text
from altershield.rollout.steps import first_step, is_last, next_step, selects_nodes, steps_of
from altershield.workloads.hold import Hold
from reconciler.rollout.deadline import TIMED, deadline
from reconciler.rollout.draft import Draft, Progress
from reconciler.rollout.soaks import all_replaced, is_given_up, is_steady
from reconciler.rollout.targets import NewHold, lacks_nodes, new_hold_of, nodes_of, target_of
from reconciler.rollout.view import View

_REACHED = (Phase.SOAKING, Phase.WAITING_FOR_APPROVAL)
"""The phases in which the step has its pods, and they are verified."""
_NAMED = 3  # nodes and pods that an Event names


def progress(known: RolloutStatus, view: View, now: float) -> Progress:
    """What follows at `now` (Unix seconds). The same input gives the same result."""
    draft = Draft(known, now)
    draft.set(updated=view.pods, passed=view.passed)
    if not known.phase:
        return _begun(draft, view)
    if known.phase in ENDED:
        return Progress(draft.status, ends_hold=view.hold is not None)
    if view.failed:
        return _failed(draft, view)
    if known.phase == Phase.STOPPED:
        draft.set(
            failed_step=0,
            soak_end_time="",
            soak_end_time_unix=0,
            step_time_unix=int(now),
            stopped_seconds=0,
            waiting_since_unix=0,
        )
        if view.hold is None:
            draft.enter(Phase.VERIFYING)
        else:
            draft.enter(Phase.HELD if before_step(known, view) else Phase.ROLLING)
        return Progress(draft.status)
    if is_last(view.rollout, known.step) and known.phase != Phase.HELD:
        return _last(draft, view)
    if view.hold is None or view.let_go or _has_escaped(known, view):
        return _escaped(draft, view)
    return _held(draft, view, view.hold)


def _failed(draft: Draft, view: View) -> Progress:
    """What follows for a release that has failed: its hold stays, also if somebody changed the held fields while no
    gatekeeper answered. Else the version would go on to further pods."""
    known, hold = draft.status, view.hold
    if known.phase != Phase.STOPPED:
        _stop(draft)
        return Progress(draft.status)
    if hold is None or view.follows or view.let_go:
        draft.set(waiting_for=())
        return Progress(draft.status)
    return Progress(draft.status, NewHold(hold.version, hold.pods, hold.replicas, hold.surge))


def _stop(draft: Draft) -> None:
    """The release has failed, and waits for nothing."""
    draft.set(failed_step=draft.status.step, waiting_for=(), gates=())
    draft.enter(Phase.STOPPED)


def before_step(status: RolloutStatus, view: View) -> tuple[WaitingFor, ...]:
    """What the release waits for before its present step begins."""
    return view.waits.before(status.step, first=is_first(status))


def is_first(status: RolloutStatus) -> bool:
    """Whether the release has taken no step before the present one."""
    return not status.passed_steps


def promoted(known: RolloutStatus, view: View, by: str, now: float, *, full: bool) -> Progress | str:
    """What follows from the request to promote the release; why it cannot be promoted, if it cannot."""
    draft = Draft(known, now)
    held = bool(known.held_by)
    draft.set(held_by="", full=known.full or full)
    if known.phase == Phase.STOPPED:
        return "the release failed, and takes no further step"
    checked = known.phase != Phase.HELD or not before_step(known, view)
    skipped = checked and WaitingFor.NODE_SELECTOR in known.waiting_for
    if skipped or (known.phase in _REACHED and view.complete):
        _pass(draft, view, by)
        return Progress(draft.status, events=tuple(draft.events))
    if held or full:  # the release goes on as if nobody had held it
        return Progress(draft.status)
    if known.phase in _REACHED:
        return f"{view.passed} of the {known.pods} pods of step {known.step} are verified"
    if not checked:
        return f"{step_text(known)} has not begun, because a check has not passed; Approve goes on without it"
    return f"{view.passed} of the {known.pods} pods of step {known.step} are verified; it can be promoted after that"


def _begun(draft: Draft, view: View) -> Progress:
    """The first phase of a release whose first step the gatekeeper holds."""
    hold, rollout = view.hold, view.rollout
    if hold is not None:
        draft.set(base=hold.base)
    if hold is None or view.let_go:
        return _escaped(draft, view)
    draft.set(steps=len(steps_of(rollout)))
    _prepare(draft, view, first_step(rollout, hold.at_least, hold.replicas))
    if hold.pods:
        _begin(draft, view)
    else:
        draft.enter(Phase.HELD)
    return Progress(draft.status, events=tuple(draft.events), wake=draft.now)


def _prepare(draft: Draft, view: View, number: int) -> None:
    """Make this step the present one."""
    draft.set(
        step=number,
        pods=target_of(view, number),
        step_time_unix=int(draft.now),
        stopped_seconds=0,
        waiting_since_unix=0,
        waiting_for=(),
        soak_end_time="",
        soak_end_time_unix=0,
    )


def _begin(draft: Draft, view: View) -> None:
    """Let pods get the version. The step began after it waited: that does not count for its deadline either way."""
    number, known = draft.status.step, draft.status
    draft.set(step_time_unix=known.step_time_unix + known.stopped_seconds, stopped_seconds=0)
    draft.enter(Phase.FINISHING if is_last(view.rollout, number) else Phase.ROLLING)
    what = f"{draft.status.pods} of {view.replicas} pods get version {view.version}"
    if is_last(view.rollout, number):
        what = "the user's own strategy replaces the remaining pods"
    elif selects_nodes(view.rollout, number):
        what += f", those on nodes with the labels {labels_text(steps_of(view.rollout)[number - 1])}"
    draft.say("StepStarted", f"{step_text(draft.status)}: {what}")


def _clocks(draft: Draft, view: View, due: Sequence[WaitingFor], unready: Sequence[str] = ()) -> None:
    """Note since when the release waits, and for what. This time does not count for the deadline of the step. `due`:
    WRITE if the hold has to be written, EVICTION if a pod has to be evicted: the API server may have refused it before.
    """
    known, now = draft.status, int(draft.now)
    refused = (each for each in due if each in known.waiting_for)
    before = before_step(known, view) if known.phase == Phase.HELD else ()
    without = known.phase not in _REACHED and lacks_nodes(view, known.step)
    of_nodes = (*(WaitingFor.NODE,) * bool(unready), *(WaitingFor.NODE_SELECTOR,) * without)
    ends = view.terminating if known.phase in TIMED and known.phase != Phase.HELD else ()
    own = (*(WaitingFor.PERSON,) * bool(known.held_by), *of_nodes, *(WaitingFor.TERMINATION,) * bool(ends))
    draft.set(gates=view.gates if {*before} - {*COUNTS} else ())
    waiting = (*own, *view.waiting, *refused, *before)
    if waiting and not known.waiting_for:
        why = "; ".join(reasons(msgspec.structs.replace(draft.status, waiting_for=waiting)))
        names = (*unready, *ends)[:_NAMED]
        draft.say("StepHeld", f"{step_text(known)} waits: {why}" + (f" ({', '.join(names)})" if names else ""))
    stops = any(each not in COUNTS for each in waiting)
    if stops and not known.waiting_since_unix:
        draft.set(waiting_since_unix=now)
    elif not stops and known.waiting_since_unix:
        stopped = max(0, now - known.waiting_since_unix)
        draft.set(stopped_seconds=known.stopped_seconds + stopped, waiting_since_unix=0)
    draft.set(waiting_for=tuple(map(str, waiting)))


def _held(draft: Draft, view: View, hold: Hold) -> Progress:
    """A step of which the pods are held."""
    known, now = draft.status, draft.now
    target = target_of(view, known.step)
    draft.set(pods=target)
    new_hold = new_hold_of(view, hold, known, target)
    nodes = nodes_of(view, known.step)
    reached = (
        new_hold is None
        and hold.pods >= target
        and view.pods >= target
        and nodes.updated >= nodes.pods
        and not view.evictable
        and not lacks_nodes(view, known.step)
    )
    unready: tuple[str, ...] = ()
    if known.phase in TIMED and known.phase != Phase.HELD and new_hold is None and not view.evictable:
        unready = view.lost_nodes or (() if reached else view.kept_nodes)
    due = (*(WaitingFor.WRITE,) * (new_hold is not None), *(WaitingFor.EVICTION,) * bool(view.evictable))
    _clocks(draft, view, due, unready)
    match known.phase:
        case Phase.HELD if not draft.status.waiting_for:
            _begin(draft, view)
        case Phase.ROLLING if reached:
            draft.enter(Phase.VERIFYING)
        case Phase.VERIFYING if not reached:
            draft.enter(Phase.ROLLING)
        case Phase.VERIFYING if view.complete:
            _soak(draft, view)
        case phase if phase in _REACHED and view.evictable and not known.held_by:
            _roll_again(draft)
        case _:
            _after_soak(draft, view)
    if (draft.status.phase, draft.status.step) != (known.phase, known.step):
        return Progress(draft.status, events=tuple(draft.events), wake=now)
    overdue, overdue_at = deadline(draft.status, view, now)
    if overdue:
        _stop(draft)
        return Progress(draft.status, overdue=overdue)
    evicts = known.phase == Phase.ROLLING and new_hold is None and not {*draft.status.waiting_for} - {"eviction"}
    return Progress(
        draft.status,
        new_hold,
        evicts=view.evictable if evicts else (),
        events=tuple(draft.events),
        wake=_next(
            overdue_at,
            _soak_end(draft.status, now),
            view.opens_at if draft.status.gates else None,
            view.evictable_at if known.phase == Phase.ROLLING else None,
        ),
        checks_said=view.checks_said,
    )


def _roll_again(draft: Draft) -> None:
    """Go back from the soak: a node left with its pod, or the step selects a further node. The pods of the step soak
    anew, with a deadline that begins now."""
    draft.set(
        stopped_seconds=max(0, int(draft.now) - draft.status.step_time_unix), soak_end_time="", soak_end_time_unix=0
    )
    draft.enter(Phase.ROLLING)


def _after_soak(draft: Draft, view: View) -> None:
    """Go on after the soak, if it is over, and after the approval."""
    known = draft.status
    if not view.complete or known.held_by:
        return
    if known.phase == Phase.SOAKING and draft.now >= known.soak_end_time_unix:
        if not known.full and not is_steady(known, view, draft.now):
            _soak_again(draft, view)
        elif steps_of(view.rollout)[known.step - 1].approval and not known.full:
            draft.enter(Phase.WAITING_FOR_APPROVAL)
            draft.say("StepHeld", f"{step_text(known)} has passed, and waits until a person promotes the release")
        else:
            _pass(draft, view, "")
    elif known.phase == Phase.WAITING_FOR_APPROVAL and known.full:
        _pass(draft, view, "")


def _soak_again(draft: Draft, view: View) -> None:
    """Begin the soak anew: all pods restarted or were replaced in it. The deadline goes on, unless they were all
    replaced. When it is over, the soak does not begin anew, and the step fails."""
    known, now = draft.status, int(draft.now)
    if all_replaced(known, view):
        draft.set(stopped_seconds=max(0, now - known.step_time_unix))
    elif is_given_up(known, view, now):
        return
    _soak(draft, view)
    draft.set(phase_time=plain_time(now), phase_time_unix=now)
    until = draft.status.soak_end_time
    draft.say("StepHeld", f"{step_text(known)} soaks anew until {until} UTC: no pod stayed ready for the whole soak")


def _soak_end(known: RolloutStatus, now: float) -> float | None:
    """When the soak ends, Unix seconds; None if none is under way."""
    end = float(known.soak_end_time_unix)
    return end if known.phase == Phase.SOAKING and now < end else None


def _next(*times: float | None) -> float | None:
    return min((each for each in times if each is not None), default=None)


def _soak(draft: Draft, view: View) -> None:
    """Begin the soak of the step."""
    seconds = 0 if draft.status.full else steps_of(view.rollout)[draft.status.step - 1].soak_seconds
    end = int(draft.now) + seconds
    draft.set(soak_end_time=plain_time(end), soak_end_time_unix=end)
    draft.enter(Phase.SOAKING)


def _pass(draft: Draft, view: View, by: str) -> None:
    """The step has passed. Begin the next one, or end the rollout."""
    status, now = draft.status, int(draft.now)
    passed = PassedStep(status.step, status.pods, status.step_time_unix, now, by)
    draft.set(passed_steps=(*(each for each in status.passed_steps if each.step != status.step), passed))
    draft.say("StepPassed", f"{step_text(status)} has passed" + (f": promoted by {by}" if by else ""))
    if is_last(view.rollout, status.step):
        draft.enter(Phase.DONE)
        draft.say("StepsFinished", f"all steps of version {view.version} have passed")
        return
    _prepare(draft, view, next_step(view.rollout, status.step, view.replicas))
    if before_step(draft.status, view):
        draft.enter(Phase.HELD)
    else:
        _begin(draft, view)


def _last(draft: Draft, view: View) -> Progress:
    """The last step, which is not held."""
    known, now = draft.status, draft.now
    draft.set(pods=view.reach)
    _clocks(draft, view, (WaitingFor.WRITE,) * (view.hold is not None))
    has_own_fields = known.phase == Phase.FINISHING and view.hold is None
    if has_own_fields or known.phase == Phase.ROLLING:
        draft.enter(Phase.VERIFYING)
    else:
        if known.phase == Phase.VERIFYING and view.complete:
            _soak(draft, view)
        _after_soak(draft, view)
    return Progress(
        draft.status,
        ends_hold=view.hold is not None,
        frees_fields=has_own_fields,
        events=tuple(draft.events),
        wake=_next(_soak_end(draft.status, now), now if draft.status.phase != known.phase else None),
    )


def _has_escaped(known: RolloutStatus, view: View) -> bool:
    """Whether all pods have the version although the step has fewer: the workload was scaled to 0 and back, and its
    controller creates only pods of the version."""
    return not view.older and view.replicas > 0 and view.pods > target_of(view, known.step)


def _escaped(draft: Draft, view: View) -> Progress:
    """The version is not held any more. Its pods are verified all the same."""
    last = len(steps_of(view.rollout))
    draft.set(steps=last)
    if view.let_go:
        draft.set(held_by="")  # what a person held goes on, too
    _prepare(draft, view, last)
    _begin(draft, view)
    draft.events.clear()
    why = f" ({view.let_go})" if view.let_go else ""
    text = f"version {view.version} is no longer held at its step{why}: all pods have it, or get it; they are verified"
    draft.say("StepsEscaped", text, warning=True)
    return Progress(draft.status, events=tuple(draft.events), wake=draft.now)
