"""What a wait for a release waits for. Pure functions."""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from altershield.releases import steps
from altershield.views.releases.model import Release, StatusError
from kube_base.errors import UsageError

_STEP = re.compile(r"step=([1-9][0-9]?)")


class What(StrEnum):
    DONE = "done"
    """The release is not under way any more."""
    VERIFIED = "verified"
    """All pods of the present step are verified; of a release without steps: as `DONE`."""
    STEP = "step"
    """A step has passed, or a later one."""


class Goal(NamedTuple):
    what: What = What.DONE
    step: int = 0
    """The number of the step, from 1."""


def parse_goal(text: str) -> Goal:
    """The goal of `step=2`, `verified` or `done`. UsageError: another text."""
    found = _STEP.fullmatch(text)
    if found is not None:
        return Goal(What.STEP, int(found[1]))
    if text in (What.DONE, What.VERIFIED):
        return Goal(What(text))
    raise UsageError(f'--for "{text}" is not known; write step=2, verified or done')


def reached(goal: Goal, release: Release) -> bool:
    """Whether this release, which is under way, has come as far as the goal."""
    if release.stored is None or release.pending or not release.present:
        return False
    status = release.stored.release.status.rollout
    match goal.what:
        case What.STEP:
            return bool(status.phase) and steps.has_passed(status, goal.step)
        case What.VERIFIED:
            return bool(status.phase) and steps.is_verified(status)
        case What.DONE:
            return False


def demand_step(goal: Goal, found: Sequence[Release]) -> None:
    """StatusError: a present release has no step of this number."""
    for release in found:
        if release.stored is None or release.pending or not release.present:
            continue
        status = release.stored.release.status.rollout
        if status.phase and goal.what is What.STEP and goal.step > status.steps:
            metadata = release.workload.metadata
            raise StatusError(
                f"the release of {release.workload.kind.lower()}/{metadata.name} has {status.steps} steps, so it never "
                f"passes step {goal.step}; name one of its steps, or wait with --for=done"
            )
