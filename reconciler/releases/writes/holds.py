"""Writes the hold of a release in steps: how many pods may have the version, and its end."""

from collections.abc import Sequence

import msgspec

from altershield.api.annotations import ROLLOUT
from altershield.api.json_patch import Operation, at_version, label_path
from altershield.api.rollout import WaitingFor
from altershield.workloads import BY_KIND, held, held_managers, hold
from altershield.workloads.adapter import Object
from altershield.workloads.held import steps
from altershield.workloads.hold import Cause
from altershield.workloads.pods import Pod
from altershield.workloads.workload import Workload
from kube_base.access.bodies import decode
from kube_base.access.errors import ApiError, NotFoundError, TooManyRequestsError
from reconciler.cluster.caches import Caches
from reconciler.cluster.writer import Writer
from reconciler.releases.reads.live import LiveReader
from reconciler.releases.writes.temporary import is_temporary
from reconciler.rollout.targets import NewHold

_REFUSES = "the API server refuses to"
_ANNOTATION = label_path(ROLLOUT, "/metadata/annotations")


class HoldRefused(Exception):  # noqa: N818  (a result that ends the reconcile, not an error)
    """A write of a hold, or an eviction, is not carried out, for this reason. `waiting`: what the release waits for."""

    def __init__(self, reason: str, waiting: WaitingFor) -> None:
        super().__init__(reason)
        self.waiting = waiting


class HoldWriter:
    """All methods read the workload once more, and write only if it has not changed since. ConflictError: it has.
    HoldRefused: the API server refuses the write."""

    def __init__(self, caches: Caches, writer: Writer, live: LiveReader) -> None:
        self._caches = caches
        self._writer = writer
        self._live = live

    async def set(self, workload: Workload, wanted: NewHold) -> None:
        """Write the annotation. The gatekeeper writes the fields that follow from it.

        A dry run shows whether it does. If no gatekeeper answered, the fields of before could not be told from those of
        the user later.
        """
        raw = await self._live.raw(workload)
        known = steps(raw["metadata"].get("annotations"))
        if known is None:
            return
        adapter = BY_KIND[workload.group_kind]
        others = tuple(each for each in known.causes if each.by != hold.STEPS)
        own = next((each for each in known.causes if each.by == hold.STEPS), Cause(hold.STEPS))
        changed = msgspec.structs.replace(
            held.with_edits(known, held.own_values(adapter, known, raw["spec"])),
            version=wanted.version,
            causes=(msgspec.structs.replace(own, pods=wanted.pods), *others),
            replicas=wanted.replicas,
            surge=wanted.surge,
            write=known.write + 1,
        )
        value = hold.encoded(changed, raw["metadata"]["annotations"].get(ROLLOUT))
        await self._write(workload, raw, [{"op": "replace", "path": _ANNOTATION, "value": value}], held_as=changed)

    async def end(self, workload: Workload) -> None:
        """Remove the annotation, and give the fields the user's own values."""
        raw = await self._live.raw(workload)
        await self._write(workload, raw, held.restoration(BY_KIND[workload.group_kind], raw))

    async def free_fields(self, workload: Workload) -> None:
        """Remove the entries of AlterShield's field manager about the held fields. A later change of these fields by
        their owner then has no conflict. A second call changes nothing."""
        raw = await self._live.raw(workload)
        entries = held_managers.freed(raw, BY_KIND[workload.group_kind].held_fields)
        if entries is not None:
            operation: Operation = {"op": "replace", "path": "/metadata/managedFields", "value": entries}
            await self._write(workload, raw, [operation])

    async def evict(self, pod: Pod) -> None:
        """Evict a pod. A pod that does not exist any more needs no eviction. ConflictError: another pod has its name,
        or another write came first, and the eviction has to be repeated."""
        try:
            await self._writer.evict(pod.metadata)
        except NotFoundError:
            return
        except ApiError as error:
            if is_temporary(error) and not isinstance(error, TooManyRequestsError):
                raise
            raise HoldRefused(f"{_REFUSES} evict an old pod: {error.explained}", WaitingFor.EVICTION) from error

    async def _write(
        self, workload: Workload, raw: Object, operations: Sequence[Operation], *, held_as: hold.Hold | None = None
    ) -> None:
        """Patch the workload. `held_as`: write only if the fields then follow this hold."""
        if not operations:
            return
        adapter = BY_KIND[workload.group_kind]
        informer = self._caches.workloads[workload.group_kind]
        operations = [at_version(raw["metadata"]["resourceVersion"]), *operations]
        try:
            if held_as is not None:
                made = decode(await self._writer.try_patch(informer, workload, operations), Object)
                if not held.follows(adapter, held_as, made["spec"]):
                    raise HoldRefused("no gatekeeper answers, so the workload is not changed", WaitingFor.WRITE)
            await self._writer.patch(informer, workload, operations)
        except ApiError as error:
            if is_temporary(error):
                raise
            raise HoldRefused(f"{_REFUSES} change the workload: {error.explained}", WaitingFor.WRITE) from error
