"""Reads the ChangeWorkload of a version. Pure functions, which all processes share."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from altershield.api import names
from altershield.api.change_workload import SourceRef, WorkloadRef, WorkloadState
from altershield.api.condition_types import ConditionType, Giver
from altershield.api.meta import Condition, find_condition
from altershield.workloads.workload import Workload
from kube_base.meta import ObjectMeta


class FailedPod(Protocol):
    """A pod that failed, as the status lists it."""

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
    @property
    def not_decided_by(self) -> str: ...


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
    """A ChangeWorkload, or a projection of one."""

    @property
    def metadata(self) -> ObjectMeta: ...
    @property
    def spec(self) -> _Spec: ...
    @property
    def status(self) -> _Status: ...


class By(StrEnum):
    """The giver of the verdict that failed a release, as a short label value."""

    NOBODY = ""
    PERSON = "person"
    SERVER = "server"
    CHECK = "check"
    HEALTH = "health"


_BY = {Giver.PERSON: By.PERSON, Giver.SERVER: By.SERVER, Giver.CHECK: By.CHECK, Giver.HEALTH: By.HEALTH}


def version_of(release: Release) -> str:
    """The version, from the name. Unlike the label, the name cannot be changed."""
    return names.version_in(release.metadata.name)


def is_current(release: Release, workload: Workload | None) -> bool:
    """Whether this is the ChangeWorkload of the workload's current release.

    The label `defense-status` of the workload must say that the current release has its ChangeWorkload. Other
    ChangeWorkloads are history and do not change any more.
    """
    return (
        workload is not None
        and not workload.metadata.deleting
        and release.metadata.deletion_timestamp is None
        and workload.version == version_of(release)
        and workload.processed
    )


def state(release: Release) -> WorkloadState:
    """The state. An unknown one counts as Init."""
    try:
        return WorkloadState(release.status.status)
    except ValueError:
        return WorkloadState.INIT


def since(release: Release) -> int:
    """When the release entered its state, Unix seconds."""
    return release.status.entry_time_unix or release.spec.create_time_unix


def passed(release: Release) -> bool:
    """Whether a rollback may go back to this version: all of its pods passed at one moment, and none has failed
    since."""
    return state(release) == WorkloadState.SUCCESS


OBSERVING = "Observing"
"""The reason of the condition Settled while no pod of the release broke or restarted."""

NO_ROLLBACK_TARGET = "NoTarget"
"""The reason of the condition RolledBack that answers a request for a rollback without a known target."""


def rolled_back(release: Release) -> bool:
    """Whether the version was rolled back, or is being rolled back. During a rollback, the older template may be
    released before the ChangeWorkload says that the version was rolled back."""
    condition = find_condition(release.status.conditions, ConditionType.ROLLED_BACK)
    return state(release) == WorkloadState.ROLLBACK or (condition is not None and condition.is_true)


def is_of_template(release: Release, fingerprint: str) -> bool:
    """Whether the version is of the template with this fingerprint.

    An API server with other defaults may return the template of the version with another fingerprint.
    """
    return fingerprint in (version_of(release), release.status.source.fingerprint)


def is_of_present_template(release: Release, workload: Workload) -> bool:
    """Whether the version is of the workload's present template.

    The version label does not tell: while no gatekeeper reviews, a template changes and the label stays. A template
    without a fingerprint counts as unchanged.
    """
    return not workload.fingerprint or is_of_template(release, workload.fingerprint)


def failures(release: Release) -> Sequence[FailedPod]:
    """The pods that failed."""
    return release.status.defense_check_fail_pods


def failed_by(release: Release) -> By:
    """The giver of the verdict that failed the release."""
    condition = find_condition(release.status.conditions, ConditionType.VERIFIED)
    if condition is None or condition.status != "False":
        return By.NOBODY
    return next((by for giver, by in _BY.items() if giver == condition.reason), By.NOBODY)


def stalled(release: Release) -> Condition | None:
    """The condition Stalled if it is true, else None."""
    return _true(release, ConditionType.STALLED)


def unsettled(release: Release) -> Condition | None:
    """The condition Settled of a release in Success that has not settled, else None."""
    condition = find_condition(release.status.conditions, ConditionType.SETTLED)
    return condition if state(release) is WorkloadState.SUCCESS and condition and not condition.is_true else None


def ungated(release: Release) -> Condition | None:
    """The condition Ungated if it is true, else None."""
    return _true(release, ConditionType.UNGATED)


def wants_attention(release: Release, workload: Workload | None) -> bool:
    """Whether the release has not succeeded and still matters: it is the current one, or its version was rolled back
    and is denied."""
    match state(release):
        case WorkloadState.SUCCESS:
            return False
        case WorkloadState.FAILED:
            return workload is not None and rolled_back(release)
        case _:
            return is_current(release, workload)


def _true(release: Release, type_: ConditionType) -> Condition | None:
    """The condition of this type if it is true, else None."""
    condition = find_condition(release.status.conditions, type_)
    return condition if condition is not None and condition.is_true else None
