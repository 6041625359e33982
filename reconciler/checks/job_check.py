"""The check `job`: a Job in the namespace of the workload. Complete passes, Failed fails.

The Job runs under a service account of that namespace. AlterShield creates it with its own permissions. So only users
who may create Jobs in that namespace may write such a policy. A ValidatingAdmissionPolicy checks this
(command/install/user_policies.py).

No Job is cached or watched: `poll` reads the one Job. The reason of a failure is the end of the log that the kubelet
stores in the pod's status (`terminationMessagePolicy: FallbackToLogsOnError`). So AlterShield needs no permission to
read logs.
"""

from collections.abc import Callable

import msgspec

from altershield.api import labels
from altershield.api.check_results import CheckState
from altershield.api.check_specs import Phase
from altershield.api.names import SYSTEM_NAMESPACE
from kube_base.access.client import Client
from kube_base.access.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    KubernetesError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
    UnauthorizedError,
)
from kube_base.resources import JOBS, PODS
from kube_base.times import unix
from reconciler.checks.check import (
    Availability,
    Fail,
    Lost,
    NotStarted,
    Pass,
    Pending,
    PollAnswer,
    Result,
    StartAnswer,
    Started,
    Subject,
    Unknown,
)
from reconciler.checks.identity import check_id
from reconciler.checks.job_manifest import is_shortened, job, job_name
from reconciler.checks.reasons import reason

_JOB_NAME = "batch.kubernetes.io/job-name"  # a label that the Job controller sets, since Kubernetes 1.27
_CLOCK_SKEW = 5.0  # seconds by which our clock may differ from the API server's
_ENABLE = "set checks.jobs.enabled of the chart"


class _Owner(msgspec.Struct, frozen=True):
    uid: str = ""
    controller: bool = False


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    uid: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    annotations: dict[str, str] = {}
    owner_references: tuple[_Owner, ...] = ()

    def controlled_by(self, uid: str) -> bool:
        return any(owner.controller and owner.uid == uid for owner in self.owner_references)


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _JobSpec(msgspec.Struct, frozen=True, rename="camel"):
    active_deadline_seconds: int | None = None


class _JobStatus(msgspec.Struct, frozen=True):
    conditions: tuple[_Condition, ...] = ()


class _Job(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _JobSpec = _JobSpec()
    status: _JobStatus = _JobStatus()

    def condition(self, type_: str) -> _Condition | None:
        return next((each for each in self.status.conditions if each.type == type_ and each.status == "True"), None)


class _Terminated(msgspec.Struct, frozen=True, rename="camel"):
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    finished_at: str | None = None


class _Waiting(msgspec.Struct, frozen=True):
    reason: str = ""
    message: str = ""


class _State(msgspec.Struct, frozen=True):
    terminated: _Terminated | None = None
    waiting: _Waiting | None = None


class _Container(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    state: _State = _State()
    last_state: _State = _State()


class _PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    message: str = ""
    conditions: tuple[_Condition, ...] = ()
    init_container_statuses: tuple[_Container, ...] = ()
    container_statuses: tuple[_Container, ...] = ()


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    status: _PodStatus = _PodStatus()


class JobCheckRunner:
    """`clock` returns Unix seconds. No Job is created in `system_namespace`, where it could use the service account of
    AlterShield."""

    availability: Availability = Availability.AVAILABLE
    repeatable: frozenset[Phase] = frozenset(Phase)
    """All phases: a second start finds the first Job by its name."""

    def __init__(self, client: Client, clock: Callable[[], float], system_namespace: str = SYSTEM_NAMESPACE) -> None:
        self._client = client
        self._clock = clock
        self._system_namespace = system_namespace

    async def start(self, subject: Subject) -> StartAnswer:
        """Create the Job, or find the one that was created before. After the deadline, a Job has no time to run: none
        is created."""
        check, namespace = subject.check.job, subject.change_pod.metadata.namespace
        if check is None:
            return Unknown(f"the check {subject.check.name} is no job check")
        if namespace == self._system_namespace:
            return Unknown("no Job is created in AlterShield's own namespace")
        where = _where(subject)
        if self._clock() >= subject.deadline:
            return await self._existing(subject)
        try:
            body = job(subject, check, self._clock())
        except ValueError as error:
            return Unknown(reason(f"{where} cannot be created: {error}"))
        try:
            created = await self._client.create(JOBS, body, namespace, as_=_Job)
        except AlreadyExistsError:
            return await self._existing(subject)
        except ForbiddenError as error:
            return Unknown(reason(f"{where} cannot be created: {error}; if AlterShield may create no Jobs, {_ENABLE}"))
        except (TooManyRequestsError, UnauthorizedError) as error:
            return NotStarted(reason(f"{where} cannot be created: {error}"))
        except (ServerError, ConflictError) as error:
            return Lost(reason(f"{where} may not have been created: {error}"))
        except ApiError as error:
            return Unknown(reason(f"{where} cannot be created: {error}"))
        except KubernetesError as error:
            return Lost(reason(f"{where} may not have been created: {error}"))
        return Started(created.metadata.uid, unique=True)

    async def poll(self, subject: Subject, handle: str, *, last: bool) -> PollAnswer:
        """Read the Job. `handle` is its uid."""
        where = _where(subject)
        try:
            found = await self._client.get(JOBS, job_name(subject), subject.change_pod.metadata.namespace, as_=_Job)
        except NotFoundError:
            return Unknown(f"{where} has been deleted")
        except ForbiddenError as error:
            return Unknown(reason(f"{where} cannot be read: {error}"))
        except KubernetesError as error:
            answer: PollAnswer = Pending(reason(f"{where} cannot be read: {error}"))
        else:
            if found.metadata.uid != handle:
                return Unknown(f"{where} has been deleted, and another one has its name")
            if _is_deleted(found):
                return Unknown(f"{where} is being deleted")
            answer = await self._result(subject, found, last=last)
        return Unknown(answer.reason) if last and isinstance(answer, Pending) else answer

    async def end(self, subject: Subject, handle: str) -> None:
        """Delete the Job with its pods. A failed one stays until its `ttlSecondsAfterFinished`, with its logs. One
        that cannot be deleted now is deleted by its `ttlSecondsAfterFinished` or with its ChangePod."""
        entries = subject.change_pod.status.checks
        key = subject.check.name, subject.phase
        if any((each.name, each.phase) == key and each.state == CheckState.FAILED for each in entries):
            return
        namespace = subject.change_pod.metadata.namespace
        try:
            await self._client.delete(JOBS, job_name(subject), namespace, uid=handle, propagation="Background")
        except KubernetesError:
            return

    async def _existing(self, subject: Subject) -> StartAnswer:
        """A Job of this name exists. It was created by an earlier start, unless somebody else created it.

        Owner and annotation can be forged by anybody who may create Jobs in the namespace. One that is older than the
        check is not ours.
        """
        where = _where(subject)
        try:
            found = await self._client.get(JOBS, job_name(subject), subject.change_pod.metadata.namespace, as_=_Job)
        except NotFoundError:
            return NotStarted(f"{where} does not exist")
        except KubernetesError as error:
            return Lost(reason(f"{where} cannot be read: {error}"))
        metadata = found.metadata
        created = unix(metadata.creation_timestamp)
        early = 0 < created < subject.started - _CLOCK_SKEW
        ours = metadata.controlled_by(subject.change_pod.metadata.uid) and not early
        if not ours or metadata.annotations.get(labels.CHECK_ID) != check_id(subject):
            return Unknown(f"{where} was not created by AlterShield; delete it")
        if _is_deleted(found):
            return NotStarted(f"{where} is being deleted")
        return Started(metadata.uid, unique=True)

    async def _result(self, subject: Subject, found: _Job, *, last: bool) -> Pending | Result:
        where = _where(subject)
        if found.condition("Complete") is not None:
            return Pass(f"{where} completed")
        failed = found.condition("Failed")
        if failed is None:
            why = await self._why(subject, found) if last else ""
            return Pending(reason(f"{where} has not finished{f': {why}' if why else ''}"))
        check, limit = subject.check.job, found.spec.active_deadline_seconds
        if failed.reason == "DeadlineExceeded" and check is not None and is_shortened(check, limit):
            return Unknown(f"{where} did not finish in time")
        why = await self._why(subject, found) or failed.message or failed.reason
        return Fail(reason(f"{where} failed: {why}"))

    async def _why(self, subject: Subject, found: _Job) -> str:
        """The reason of a failure or of a delay, from the pods of the Job; empty if it is not known."""
        selector = f"{_JOB_NAME}={found.metadata.name}"
        try:
            listed = await self._client.list(
                PODS, subject.change_pod.metadata.namespace, as_=_Pod, label_selector=selector
            )
        except KubernetesError:
            return ""
        pods = [pod for pod in listed.items if pod.metadata.controlled_by(found.metadata.uid)]
        ends = [end for pod in pods for end in _ends(pod)]
        if ends:
            _, name, end = max(ends, key=lambda each: each[0])
            text = end.message.strip()
            return text or f"the container {name} exited with {end.exit_code} ({end.reason})"
        waits = [wait for pod in pods for wait in _waits(pod)]
        return waits[0] if waits else ""


def _is_deleted(found: _Job) -> bool:
    """Whether somebody deletes the Job before its end. It exists until its pods are gone."""
    ended = found.condition("Complete") is not None or found.condition("Failed") is not None
    return found.metadata.deletion_timestamp is not None and not ended


def _where(subject: Subject) -> str:
    return f"the Job {subject.change_pod.metadata.namespace}/{job_name(subject)}"


def _ends(pod: _Pod) -> list[tuple[str, str, _Terminated]]:
    """The containers of the pod that failed: when, its name, and how."""
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return [
        (end.finished_at or "", status.name, end)
        for status in statuses
        for end in (status.state.terminated, status.last_state.terminated)
        if end is not None and end.exit_code != 0
    ]


def _waits(pod: _Pod) -> list[str]:
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    waiting = [status.state.waiting for status in statuses if status.state.waiting is not None]
    unscheduled = [
        each.message for each in pod.status.conditions if each.type == "PodScheduled" and each.status == "False"
    ]
    return [*unscheduled, *(f"{each.reason}: {each.message}" if each.message else each.reason for each in waiting)]
