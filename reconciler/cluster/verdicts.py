"""The verdicts on the pods of a batch, and the condition Verified that follows from them. Pure functions."""

import msgspec

from altershield.api.change_pod import ChangePod, ChangePodStatus, PodState
from altershield.api.check_results import CheckResult, CheckState, SkipState
from altershield.api.check_specs import Phase
from altershield.api.condition_types import ConditionType, Giver
from altershield.api.meta import Condition, find_condition
from altershield.api.pod_verdicts import PodInfo, Verdict

HELD = "Held"
"""The reason of the condition Verified of a batch that waits for a person."""

IN_PROGRESS = "InProgress"
"""The reason of the condition Verified of a batch whose checks have no result yet."""

_MESSAGES = 250_000
"""Bytes of the messages of all verdicts in a batch: with the pods they must fit into one object (1.5 MiB in etcd)."""

_NAMED = 3  # pods that a message names
_UNREPORTED = (SkipState.REQUESTED, SkipState.SENT)
_WAITS = "; the batch waits for the verdict of a person"


def undecided(state: ChangePodStatus, change_pod: ChangePod) -> set[str]:
    """The names of the pods in the batch that have no explicit verdict."""
    decided = {result.pod for result in state.pod_results if result.verdict}
    return {pod.pod for pod in change_pod.spec.pod_infos} - decided


def with_initial_verdicts(state: ChangePodStatus, change_pod: ChangePod) -> ChangePodStatus:
    """Takes over the verdicts in the spec: a batch of pods that were not up in time is created with its verdicts."""
    known = {result.pod for result in state.pod_results if result.verdict}
    initial = [pod for pod in change_pod.spec.pod_infos if pod.verdict and pod.pod not in known]
    return msgspec.structs.replace(state, pod_results=(*state.pod_results, *initial)) if initial else state


def with_results(state: ChangePodStatus, change_pod: ChangePod, verdict: Verdict, message: str) -> ChangePodStatus:
    """The status with this verdict on every pod that has no explicit verdict yet."""
    message = fitting(message, change_pod)
    open_pods = undecided(state, change_pod)
    results: list[PodInfo] = [known for known in state.pod_results if known.pod not in open_pods]
    results += [
        msgspec.structs.replace(pod, verdict=verdict, message=message)
        for pod in change_pod.spec.pod_infos
        if pod.pod in open_pods
    ]
    return msgspec.structs.replace(state, pod_results=tuple(results))


def fitting(message: str, change_pod: ChangePod) -> str:
    """The message, cut so that the object has space for it in the verdict of each pod. The entries of checks keep the
    whole reason."""
    data, limit = message.encode(), _MESSAGES // max(1, len(change_pod.spec.pod_infos))
    return message if len(data) <= limit else data[: limit - 3].decode(errors="ignore") + "…"


def failed_by(state: ChangePodStatus, change_pod: ChangePod, by: Giver | None = None) -> Giver:
    """The `Giver` of the verdict that failed the batch first. The condition Verified stores it. The value has no
    meaning for a batch that has not failed.

    A person may write conditions too. The reason FailedByHealth is not valid for a batch that was created without
    verdicts, because AlterShield's own health checks write their verdicts into the spec.

    Without such a condition, the following applies. A batch that was created with verdicts has the verdicts of
    AlterShield's own health checks, or `spec.failedBy` says whose they are. The verdict of a check is stored together
    with its condition (`by`). Every other verdict was written by a person.
    """
    known = find_condition(state.conditions, ConditionType.VERIFIED)
    has_verdicts = any(pod.verdict for pod in change_pod.spec.pod_infos)
    if known is not None and known.status == "False":
        for giver in Giver:
            if known.reason == giver and (has_verdicts or giver is not Giver.HEALTH):
                return giver
    if has_verdicts:
        return next((each for each in Giver if each == change_pod.spec.failed_by), Giver.HEALTH)
    return by or Giver.PERSON


def verified(state: ChangePodStatus, change_pod: ChangePod, by: Giver, waiting: str = "") -> Condition:
    """The condition Verified. `waiting`: the reason why the batch waits for a person; empty if it does not wait."""
    pods = {pod.pod for pod in change_pod.spec.pod_infos}
    results = {result.pod: result for result in state.pod_results if result.verdict}
    failed = [result for name, result in results.items() if name in pods and result.verdict != Verdict.PASS]
    foreign = [name for name in results if name not in pods]
    if failed:
        named = "; ".join(f"{pod.pod} ({pod.message or pod.verdict})" for pod in failed[:_NAMED])
        status, reason, message = "False", str(by), f"{len(failed)} of {len(pods)} pods failed: {named}"
    elif waiting:
        status, reason, message = "Unknown", HELD, waiting_for_person(waiting)
    elif state.status != PodState.EXECUTE_DONE:
        status, reason, message = "Unknown", IN_PROGRESS, "the pods of this batch are being verified"
    elif pods <= results.keys():
        status, reason, message = "True", "PodsPassed", "all pods passed"
    else:
        status, reason, message = (
            "True",
            "NotChecked",
            "not all pods got a verdict; a pod without a verdict counts as passed",
        )
    if foreign:
        message += f"; these pods are not in this batch, and their results are ignored: {', '.join(foreign[:_NAMED])}"
    return Condition(
        ConditionType.VERIFIED, status, reason, message, observed_generation=change_pod.metadata.generation
    )


def waiting_for_person(why: str) -> str:
    """The message of the condition Verified of a batch that waits for a person."""
    return f"{why}{_WAITS}"


def why_waiting(change_pod: ChangePod) -> str:
    """The reason why the batch waits for a person, from its condition; empty if it does not wait."""
    known = find_condition(change_pod.status.conditions, ConditionType.VERIFIED)
    waits = known is not None and known.reason == HELD and change_pod.status.status != PodState.EXECUTE_DONE
    return known.message.removesuffix(_WAITS) if waits and known is not None else ""


def needs_work(change_pod: ChangePod) -> bool:
    """Whether the batch has not reached ExecuteDone, a check of it runs again, its condition does not match its
    results, or an approval is to be reported to an AlterShield server."""
    status = change_pod.status
    if status.status != PodState.EXECUTE_DONE:
        return True
    if any(each.state == CheckState.RUNNING for each in status.checks):
        return True  # it is repeated
    if any(each.skip is not None and each.skip.state in _UNREPORTED for each in status.checks):
        return True
    if change_pod.spec.phase:
        return False  # its condition is stored with its results
    known = find_condition(status.conditions, ConditionType.VERIFIED)
    wanted = verified(status, change_pod, failed_by(status, change_pod))
    return known is None or (known.status, known.reason, known.message) != (
        wanted.status,
        wanted.reason,
        wanted.message,
    )


def is_repeatable(change_pod: ChangePod) -> bool:
    """Whether the server can run its check before the batch again, and the batch failed or waits only because of this
    check.

    The server refuses a repetition after the batch was finished there. The batch is finished there if a poll found the
    failure, which then has no rules, and in the phase Post.
    """
    status = change_pod.status
    first = first_check(status)
    if first is None or not (first.state == CheckState.UNKNOWN or (first.state == CheckState.FAILED and first.rules)):
        return False
    if any(each.state != CheckState.PASSED or each.phase != Phase.PRE for each in status.checks if each is not first):
        return False
    if any(each.verdict not in ("", Verdict.PASS) for each in status.pod_results):
        return first.state == CheckState.FAILED and failed_by(status, change_pod) is Giver.SERVER
    return bool(why_waiting(change_pod))


def first_check(status: ChangePodStatus) -> CheckResult | None:
    """The entry of the server's check before the batch, if the batch has a node."""
    node = status.change_pod_id
    return next((each for each in status.checks if node and (each.phase, each.handle) == (Phase.PRE, node)), None)
