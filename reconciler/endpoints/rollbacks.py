"""Requests a rollback as a person does: writes the state `Rollback` into the status of the ChangeWorkload of the
current version, and the optional target into `rollbackTo`. Then the leading reconciler does the rollback."""

import asyncio
from collections.abc import Sequence

import msgspec

from altershield.api.change_workload import WorkloadState
from altershield.releases.release import is_current, rolled_back, state
from altershield.releases.texts import went_back
from altershield.workloads import Adapter
from altershield.workloads.workload import Workload
from kube_base.access.errors import ConflictError, InvalidError, KubernetesError, NotFoundError
from reconciler.cluster.caches import Caches
from reconciler.cluster.ownership import WorkloadKey, is_controlled_by
from reconciler.cluster.release import Release, went_back_to
from reconciler.cluster.writer import Writer
from reconciler.endpoints.endpoint_errors import EndpointError
from reconciler.endpoints.suspended import filled

_ATTEMPTS = 5
_PAUSE_SECONDS = 0.2  # for the caches to get the change that a write met


class Requested(msgspec.Struct, frozen=True, rename="camel"):
    """A request for a rollback that was stored, now or before."""

    namespace: str
    name: str
    version: str
    """The current version."""
    rollback_to: str
    """The target, as it was requested; empty for the last version that passed."""
    change_workload: str
    """The ChangeWorkload whose condition `RolledBack` says what becomes of the request."""
    message: str


class Rollbacks:
    """Requests rollbacks, in every replica."""

    def __init__(self, caches: Caches, writer: Writer) -> None:
        self._caches = caches
        self._writer = writer

    async def request(self, adapter: Adapter, namespace: str, name: str, to: str) -> Requested:
        """Request that the workload goes back to the version `to`, or to the last version that passed if `to` is empty.
        The same request again changes nothing, neither while the rollback is in progress nor after its end.

        EndpointError: no such workload (404); the request is not possible at present (409); the API server refuses it
        or does not answer (503)."""
        for attempt in range(_ATTEMPTS):
            if attempt:
                await asyncio.sleep(_PAUSE_SECONDS)
            workload = self._workload(adapter, namespace, name)
            own = [each for each in self._caches.releases_of(workload) if is_controlled_by(each, workload)]
            known = _known(workload, own, to)
            if known is not None:
                return known
            current = next((each for each in own if is_current(each, workload)), None)
            if current is None:
                continue
            status = msgspec.structs.replace(current.status, status=WorkloadState.ROLLBACK, rollback_to=to)
            try:
                await self._writer.save_release(current, status, lists=False)
            except (ConflictError, NotFoundError):
                continue
            except InvalidError as error:
                raise EndpointError(f"the API server does not accept the request: {error}", 400) from error
            except KubernetesError as error:
                raise EndpointError(f"the API server did not store the request: {error}", 503) from error
            return _requested(workload, current, to, "requested")
        raise EndpointError(
            f"the current version of {namespace}/{name} is just being released; send the request again", 409
        )

    def _workload(self, adapter: Adapter, namespace: str, name: str) -> Workload:
        resource = adapter.resource
        if not filled(self._caches, adapter):
            raise EndpointError("the reconciler does not know all workloads yet; send the request again", 503)
        workload = self._caches.workload(WorkloadKey(resource.group_kind, namespace, name))
        if workload is None or workload.metadata.deleting:
            raise EndpointError(f"AlterShield governs no {resource.kind} {namespace}/{name}", 404)
        return workload


def _known(workload: Workload, own: Sequence[Release], to: str) -> Requested | None:
    """The answer if nothing has to be written: the rollback is in progress, or it is done. EndpointError (409) if
    another rollback is in progress. `own` are the ChangeWorkloads of the workload."""
    for release in own:
        if state(release) is WorkloadState.ROLLBACK:
            status, target = release.status, release.status.rollback_target
            if to and to not in (status.rollback_to, target.version, target.name, target.fingerprint):
                goal = status.rollback_to or "the last version that passed"
                raise EndpointError(f"a rollback to {goal} is in progress", 409)
            return _requested(workload, release, to, "this rollback is in progress")
    for release in own:
        names = (workload.version, workload.fingerprint, release.status.source.name)
        if to and to in names and is_current(release, workload):
            return _requested(workload, release, to, "this is the current version")
        # without this, a client that sends its request again after a rollback would go back one version more
        if not to and rolled_back(release) and went_back_to(release, workload):
            return _requested(workload, release, to, went_back(release))
    return None


def _requested(workload: Workload, current: Release, to: str, message: str) -> Requested:
    metadata = workload.metadata
    return Requested(
        namespace=metadata.namespace,
        name=metadata.name,
        version=workload.version,
        rollback_to=to,
        change_workload=current.metadata.name,
        message=message,
    )
