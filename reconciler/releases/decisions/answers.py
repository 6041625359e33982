"""The answers to requests of persons: they are added to the `actions` of the status. Pure functions."""

import msgspec

from altershield.api.workload_requests import MAX_ACTIONS, Action, Request, Result, Verb
from altershield.releases import rolled_back
from altershield.releases.release import version_of
from altershield.workloads.pods import clip
from altershield.workloads.workload import Workload
from kube_base.times import rfc3339
from reconciler.cluster.release import Release
from reconciler.releases.terms.draft import Draft, begin, with_update_time
from reconciler.releases.terms.effects import After, Announce, Before, Decision

UNCHANGED = "nothing was changed"
"""The end of an answer to a request that has no effect."""

_MAX_OUTCOME = 1000  # characters


def answered(
    draft: Draft,
    request: Request,
    result: Result,
    outcome: str,
    before: list[Before] | None = None,
    *,
    announced: bool = True,
) -> Decision:
    """The decision that removes the request and adds the answer."""
    outcome = outcome[:_MAX_OUTCOME]
    action = Action(request.verb, request.by, request.reason, "", result, outcome)
    draft = with_action(draft.replace(request=None), action)
    done = Announce("RequestCarriedOut", text(action), warning=False)
    after: tuple[After, ...] = (done if result is Result.DONE else Announce("RequestNotCarriedOut", text(action)),)
    return Decision(
        with_update_time(draft.status, draft.now),
        tuple(before or ()),
        after if announced else (),
        requeue_after=0.0,
    )


def not_current(release: Release, workload: Workload, request: Request, now: float) -> Decision:
    """The answer to a request about a version that is not the current one."""
    own, present = version_of(release), workload.version or "none"
    outcome = f"version {own} is not the current version, which is {present}; {UNCHANGED}"
    if request.verb == Verb.ROLLBACK and rolled_back(release):
        outcome = f"version {own} was rolled back already, and the current version is {present}; {UNCHANGED}"
    return answered(begin(release, now), request, Result.UNCHANGED, outcome)


def with_action(draft: Draft, action: Action) -> Draft:
    """The draft with the action, which gets the time of the draft."""
    action = msgspec.structs.replace(action, time=rfc3339(draft.now))
    return draft.replace(actions=(*draft.status.actions, action)[-MAX_ACTIONS:])


def text(action: Action) -> str:
    """The answer to a request, in an Event."""
    request = f"{action.verb} by {action.by or 'an unnamed user'}" + (f" ({action.reason})" if action.reason else "")
    return clip(f"{request}: {action.outcome}", 1000)
