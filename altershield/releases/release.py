"""The record of one version of a workload, as everybody reads it. Pure functions of what it says."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from altershield.api import names
from altershield.api.kinds import ConditionType, Giver, SourceRef, WorkloadRef, WorkloadState
from altershield.api.meta import Condition, ObjectMeta, find_condition
from altershield.workloads.workload import Workload


class FailedPod(Protocol):
    @property
    def pod(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def verdict(self) -> str: ...


class _Spec(Protocol):
    @property
    def workload_ref(self) -> WorkloadRef: ...
    @property
    def workload_generation(self) -> int: ...
    @property
    def create_time_unix(self) -> int: ...


class _Status(Protocol):
    @property
    def status(self) -> str: ...
    @property
    def entry_time_unix(self) -> int: ...
    @property
    def defense_check_fail_pods(self) -> Sequence[FailedPod]: ...
    @property
    def conditions(self) -> Sequence[Condition]: ...
    @property
    def source(self) -> SourceRef: ...


class Release(Protocol):
    """A ChangeWorkload, or what is kept of one."""

    @property
    def metadata(self) -> ObjectMeta: ...
    @property
    def spec(self) -> _Spec: ...
    @property
    def status(self) -> _Status: ...


class By(StrEnum):
    """Whose verdict failed a release, in a word."""

    NOBODY = ""
    PERSON = "person"
    SERVER = "server"
    HEALTH = "health"


_BY = {Giver.PERSON: By.PERSON, Giver.SERVER: By.SERVER, Giver.HEALTH: By.HEALTH}


def version(release: Release) -> str:
    """Its version, by its name, which nobody can change as they could its label."""
    return names.version_of(release.metadata.name)


def is_current(release: Release, workload: Workload | None) -> bool:
    """Whether it is of the version that its workload says is released, and begun for this release.

    Records of other versions are history: they no longer change.
    """
    return (
        workload is not None
        and not workload.metadata.deleting
        and release.metadata.deletion_timestamp is None
        and workload.version == version(release)
        and workload.processed
    )


def state(release: Release) -> WorkloadState:
    """Its state; what is none that we know counts as not begun."""
    try:
        return WorkloadState(release.status.status)
    except ValueError:
        return WorkloadState.INIT


def since(release: Release) -> int:
    """When it entered its state, Unix seconds."""
    return release.status.entry_time_unix or release.spec.create_time_unix


def passed(release: Release) -> bool:
    """Whether it may be gone back to: every pod of it passed at one moment, and nothing was said against it since."""
    return state(release) == WorkloadState.SUCCESS


def rolled_back(release: Release) -> bool:
    """Whether it was undone, or is about to be: its template may be back before the record says so."""
    condition = find_condition(release.status.conditions, ConditionType.ROLLED_BACK)
    return state(release) == WorkloadState.ROLLBACK or (condition is not None and condition.is_true)


def is_of_template(release: Release, fingerprint: str) -> bool:
    """Whether it is of the template with this fingerprint. Since it was made, an API server with other defaults may
    show that template otherwise."""
    return fingerprint in (version(release), release.status.source.fingerprint)


def failures(release: Release) -> Sequence[FailedPod]:
    """The pods that failed."""
    return release.status.defense_check_fail_pods


def failed_by(release: Release) -> By:
    """Whose verdict failed it."""
    condition = find_condition(release.status.conditions, ConditionType.VERIFIED)
    if condition is None or condition.status != "False":
        return By.NOBODY
    return next((by for giver, by in _BY.items() if giver == condition.reason), By.NOBODY)


def stalled(release: Release) -> Condition | None:
    """Why it does not go on, where that is not its own fault."""
    return _true(release, ConditionType.STALLED)


def ungated(release: Release) -> Condition | None:
    """Why it is known that the gate did not see it."""
    return _true(release, ConditionType.UNGATED)


def wants_attention(release: Release, workload: Workload | None) -> bool:
    """Whether it has not succeeded and is still of interest: the present release, or one that is denied since it was
    rolled back."""
    match state(release):
        case WorkloadState.SUCCESS:
            return False
        case WorkloadState.FAILED:
            return workload is not None and rolled_back(release)
        case _:
            return is_current(release, workload)


def _true(release: Release, type_: ConditionType) -> Condition | None:
    condition = find_condition(release.status.conditions, type_)
    return condition if condition is not None and condition.is_true else None
