"""The texts about a release that denials, Events and commands share."""

from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition
from altershield.releases.release import (
    NO_ROLLBACK_TARGET,
    OBSERVING,
    FailedPod,
    Release,
    failures,
    stalled,
    ungated,
    unsettled,
    version_of,
)

NOT_ROLLED_BACK = "; not rolled back: "
"""Between the reason of a failure and the reason why the release is not rolled back."""

ONLY_REPAIRS = "further releases are denied, except a repair"
"""What follows from a suspension."""

_NAMED = 3  # pods that a text names


def named(release: Release) -> str:
    """The failed pods, the first ones by name: `web-1, web-2 (find error); web-3 (no answer) and 3 more`.
    A message that several pods share appears once."""
    pods = failures(release)
    by_message: dict[str, list[str]] = {}
    for pod in pods[:_NAMED]:
        by_message.setdefault(why_failed(pod), []).append(pod.pod)
    text = "; ".join(f"{', '.join(shared)} ({message})" for message, shared in by_message.items())
    return f"{text} and {len(pods) - _NAMED} more" if len(pods) > _NAMED else text


def why_failed(pod: FailedPod) -> str:
    """Why a pod failed."""
    return pod.message or pod.verdict or "no message"


def suspended(kind: str, name: str) -> str:
    """The denial of a release of a suspended workload."""
    return f"{kind} {name} is suspended"


def was_rolled_back(release: Release, version: str = "") -> str:
    """`version`: how the text names it."""
    return f"version {version or version_of(release)} was rolled back"


def went_back(release: Release) -> str:
    """The answer to a request for a rollback that names no version, after the rollback of `release`."""
    return f"{was_rolled_back(release)} to the current version; to go back further, name a version"


def not_up(number: int, total: int, pod: str, words: str) -> str:
    """`2 of 5 pods do not come up: web-1: WORDS`. `words`: why the first pod, `pod`, is not up."""
    return f"{number} of {total} pods {'do' if number > 1 else 'does'} not come up: {pod}: {words}"


def why(release: Release, *, current: bool) -> str:
    """The reason for the state of a release, in one line; empty if there is none. `current`: it is the
    current release."""
    condition = ungated(release)
    prefix = f"ungated ({condition.reason}); " if condition is not None else ""
    return prefix + _why(release, current=current)


def _why(release: Release, *, current: bool) -> str:
    rolled_back = find_condition(release.status.conditions, ConditionType.ROLLED_BACK)
    failed = f"failed: {named(release)}" if failures(release) else ""
    if rolled_back is not None and rolled_back.message and rolled_back.reason != NO_ROLLBACK_TARGET:
        if not failed or rolled_back.is_true:
            return rolled_back.message
        # the message of a rollback that did not happen begins with the same pods
        _, marker, refusal = rolled_back.message.rpartition(NOT_ROLLED_BACK)
        return f"{failed}{marker}{refusal}" if marker else f"{failed}; {rolled_back.message}"
    if failed:
        return failed
    stalls = stalled(release)
    if stalls is not None:
        return f"{stalls.reason}: {stalls.message}"
    no_replicas = find_condition(release.status.conditions, ConditionType.NO_REPLICAS)
    if no_replicas is not None and no_replicas.is_true and no_replicas.message:
        return no_replicas.message
    verified = find_condition(release.status.conditions, ConditionType.VERIFIED)
    if verified is not None and verified.message:
        settling, waits = unsettled(release), find_condition(release.status.conditions, ConditionType.PODS_NOT_UP)
        more = [verified.message]
        if settling is not None and settling.reason != OBSERVING:
            more.append(f"not settled: {settling.message}")
        if waits is not None and waits.is_true:
            more.append(waits.message)
        return "; ".join(more)
    return "" if current else "superseded"
