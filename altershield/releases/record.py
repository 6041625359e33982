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


class Record(Protocol):
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


def version(record: Record) -> str:
    """Its version, by its name, which nobody can change as they could its label."""
    return names.version_of(record.metadata.name)


def is_current(record: Record, workload: Workload | None) -> bool:
    """Whether it is of the version that its workload says is released, and begun for this release.

    Records of other versions are history: they no longer change.
    """
    return (
        workload is not None
        and not workload.metadata.deleting
        and record.metadata.deletion_timestamp is None
        and workload.version == version(record)
        and workload.processed
    )


def state(record: Record) -> WorkloadState:
    """Its state; what is none that we know counts as not begun."""
    try:
        return WorkloadState(record.status.status)
    except ValueError:
        return WorkloadState.INIT


def since(record: Record) -> int:
    """When it entered its state, Unix seconds."""
    return record.status.entry_time_unix or record.spec.create_time_unix


def passed(record: Record) -> bool:
    """Whether it may be gone back to: every pod of it passed at one moment, and nothing was said against it since."""
    return state(record) == WorkloadState.SUCCESS


def rolled_back(record: Record) -> bool:
    """Whether it was undone, or is about to be: its template may be back before the record says so."""
    condition = find_condition(record.status.conditions, ConditionType.ROLLED_BACK)
    return state(record) == WorkloadState.ROLLBACK or (condition is not None and condition.is_true)


def is_of_template(record: Record, fingerprint: str) -> bool:
    """Whether it is of the template with this fingerprint. Since it was made, an API server with other defaults may
    show that template otherwise."""
    return fingerprint in (version(record), record.status.source.fingerprint)


def failures(record: Record) -> Sequence[FailedPod]:
    """The pods that failed."""
    return record.status.defense_check_fail_pods


def failed_by(record: Record) -> By:
    """Whose verdict failed it."""
    condition = find_condition(record.status.conditions, ConditionType.VERIFIED)
    if condition is None or condition.status != "False":
        return By.NOBODY
    return next((by for giver, by in _BY.items() if giver == condition.reason), By.NOBODY)


def stalled(record: Record) -> Condition | None:
    """Why it does not go on, where that is not its own fault."""
    return _true(record, ConditionType.STALLED)


def slipped(record: Record) -> Condition | None:
    """Why it is known that the gate did not see it."""
    return _true(record, ConditionType.SLIPPED)


def wants_attention(record: Record, workload: Workload | None) -> bool:
    """Whether it has not succeeded and is still of interest: the present release, or one that is denied since it was
    rolled back."""
    match state(record):
        case WorkloadState.SUCCESS:
            return False
        case WorkloadState.FAILED:
            return workload is not None and rolled_back(record)
        case _:
            return is_current(record, workload)


def _true(record: Record, type_: ConditionType) -> Condition | None:
    condition = find_condition(record.status.conditions, type_)
    return condition if condition is not None and condition.is_true else None
