"""What counts for a ReleaseLimit: releases that began, releases that are under way, and first failures. Pure functions.

Releases also count if a limit lets them pass: those that go back, and AlterShield's own rollbacks.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from altershield.api.change_workload import WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.gates.limits import (
    MAX_FAILURES,
    CountedFailure,
    CountedRelease,
    ReleaseLimitSpec,
)
from altershield.api.gates.named_workload import NamedWorkload
from altershield.api.meta import find_condition
from altershield.api.policy import Mode
from altershield.api.rollout import Phase, WaitingFor
from altershield.releases import state, version_of
from kube_base.times import rfc3339, unix
from reconciler.cluster.release import Release

_UNDER_WAY = (WorkloadState.INIT, WorkloadState.RUNNING, WorkloadState.TIME_OUT_PRE_THRESHOLD)
_MOVING = ("", Phase.ROLLING, Phase.VERIFYING, Phase.SOAKING, Phase.FINISHING)
_BEGINS = (Phase.ROLLING, Phase.FINISHING)
"""The phases with which the first step begins, also after it was held."""
_AUTOMATIC = ("PodNotUp", "VerificationFailed")
"""The reasons of rollbacks that follow a failure."""

T = TypeVar("T", CountedRelease, CountedFailure)


@dataclass(frozen=True, slots=True)
class Found:
    """A release that a limit selects."""

    release: Release
    workload: NamedWorkload
    present: bool
    """Whether it is the present release of its workload."""
    judged: bool
    """Whether the limit judges it: most limits judge no creation of a workload. Its failure counts all the same."""
    held: bool = False
    """Whether it is held before its first pod, and its status does not say so yet."""


def is_under_way(release: Release) -> bool:
    """Whether it replaces pods, verifies them, or waits whether they stay verified."""
    status = release.status
    if state(release) not in _UNDER_WAY or status.rollout.phase not in _MOVING or status.rollout.waiting_for:
        return False
    waits = (find_condition(status.conditions, each) for each in (ConditionType.STALLED, ConditionType.NO_REPLICAS))
    return not any(each is not None and each.is_true for each in waits)


def began(release: Release) -> int:
    """When it began to replace pods, Unix seconds; 0: it is held before its first pod."""
    rollout, created = release.status.rollout, release.spec.create_time_unix
    if rollout.phase == Phase.HELD and not rollout.updated and not rollout.passed_steps:
        return 0
    if rollout.passed_steps:
        return max(created, rollout.passed_steps[0].begin_time_unix)
    if rollout.phase in _BEGINS:
        return max(created, rollout.step_time_unix, rollout.phase_time_unix)
    return max(created, rollout.step_time_unix)


def waits_for_turn(release: Release) -> bool:
    """Whether it has no pod yet, and waits for nothing else than limits."""
    rollout = release.status.rollout
    return rollout.phase == Phase.HELD and rollout.waiting_for == (WaitingFor.LIMIT,) and not began(release)


def has_failed_first(release: Release) -> bool:
    """Whether it failed before it succeeded, with a policy that enforces. A rollback that a person requests is no
    failure."""
    status = release.status
    if status.reached or release.spec.policy.mode is not Mode.ENFORCE:
        return False
    match state(release):
        case WorkloadState.SUSPEND:
            return True
        case WorkloadState.ROLLBACK | WorkloadState.FAILED:
            return status.rollback_reason in _AUTOMATIC
        case _:
            return False


def releases_begun(
    known: Sequence[CountedRelease], found: Iterable[Found], spec: ReleaseLimitSpec, now: float
) -> tuple[CountedRelease, ...]:
    """The releases that began in the period, the newest last. `known`: those of the status, whose ChangeWorkloads may
    not exist any more."""
    if spec.rate is None:
        return ()
    counted = list(known)
    last: dict[tuple[NamedWorkload, str], float] = {}
    for each in known:
        key = _workload(each), each.version
        last[key] = max(last.get(key, 0.0), unix(each.time))
    for one in found:
        at, version = began(one.release), version_of(one.release)
        if (
            one.judged
            and at
            and not one.held
            and last.get((one.workload, version), 0.0) < one.release.spec.create_time_unix
        ):
            counted.append(_counted(one, at))
    return _newest(counted, now - spec.rate.period_seconds, spec.rate.releases)


def releases_under_way(found: Iterable[Found], spec: ReleaseLimitSpec) -> tuple[CountedRelease, ...]:
    """The releases that are under way, the newest last; one more than may be, so that a release of one of these
    workloads is judged by the others."""
    if spec.concurrent is None:
        return ()
    counted = [
        _counted(one, began(one.release))
        for one in found
        if one.judged and one.present and not one.held and is_under_way(one.release)
    ]
    return _newest(counted, 0.0, spec.concurrent + 1)


def first_failures(
    known: Sequence[CountedFailure], found: Iterable[Found], spec: ReleaseLimitSpec, now: float
) -> tuple[CountedFailure, ...]:
    """The first failures in the period, the newest last: the last one of each workload, and each ChangeWorkload
    once."""
    if spec.fuse is None:
        return ()
    uids = {each.uid for each in known}
    new = [_failure(each) for each in found if has_failed_first(each.release) and each.release.metadata.uid not in uids]
    by_workload = {_workload(each): each for each in _sorted((*known, *new))}
    return _newest(list(by_workload.values()), now - spec.fuse.period_seconds, MAX_FAILURES)


def _failure(found: Found) -> CountedFailure:
    workload, release = found.workload, found.release
    return CountedFailure(
        workload.namespace,
        workload.api_version,
        workload.kind,
        workload.name,
        uid=release.metadata.uid,
        time=rfc3339(release.status.entry_time_unix),
    )


def _counted(found: Found, at: int) -> CountedRelease:
    workload = found.workload
    return CountedRelease(
        workload.namespace,
        workload.api_version,
        workload.kind,
        workload.name,
        version=version_of(found.release),
        time=rfc3339(at),
    )


def _workload(counted: CountedRelease | CountedFailure) -> NamedWorkload:
    return NamedWorkload(counted.namespace, counted.api_version, counted.kind, counted.name)


def _newest(counted: Sequence[T], after: float, most: int) -> tuple[T, ...]:
    return tuple(_sorted(each for each in counted if unix(each.time) > after)[-most:])


def _sorted(counted: Iterable[T]) -> list[T]:
    """In an order that depends on nothing else: a status that keeps the last ones only has to come to rest."""
    return sorted(counted, key=lambda each: (each.time, each.namespace, each.kind, each.name, _identity(each)))


def _identity(counted: CountedRelease | CountedFailure) -> str:
    return counted.version if isinstance(counted, CountedRelease) else counted.uid


def hours(period: int, now: float) -> Iterator[str]:
    """The values of the index of releases by the hour of their creation that the period needs."""
    for hour in range(int(now - period) // 3600, int(now) // 3600 + 1):
        yield str(hour)


def hour_of(release: Release) -> str:
    """The value of a release in this index."""
    return str(release.spec.create_time_unix // 3600)
