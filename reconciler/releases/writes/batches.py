"""Writes ChangePods: creates batches, overrules verdicts, and has checks repeated."""

from collections.abc import Callable

import msgspec

from altershield.api import labels, names
from altershield.api.change_pod import ChangePod, ChangePodSpec
from altershield.api.change_workload import ChangeWorkload
from altershield.api.meta import plain_time
from altershield.api.pod_verdicts import Verdict
from altershield.api.resources import CHANGE_WORKLOADS
from altershield.releases.release import version_of
from kube_base.access.errors import ConflictError
from kube_base.meta import ObjectMeta
from reconciler.batches.release_checks import approved
from reconciler.batches.repeating import repeated
from reconciler.batches.skipping import requested
from reconciler.cluster.batch import Batch
from reconciler.cluster.caches import Caches
from reconciler.cluster.verdicts import fitting, is_repeatable
from reconciler.cluster.writer import Writer, owner
from reconciler.releases.terms.effects import CreateBatch, Overrule


class BatchWriter:
    """All methods raise the errors of the client. ConflictError: the ChangePod has changed; decide again. `clock`
    returns Unix seconds."""

    def __init__(self, caches: Caches, writer: Writer, clock: Callable[[], float]) -> None:
        self._caches = caches
        self._writer = writer
        self._clock = clock

    async def create(self, release: ChangeWorkload, effect: CreateBatch) -> None:
        """Create a batch of the release. AlreadyExistsError if a batch has this number already."""
        now = self._clock()
        metadata = release.metadata
        batch = ChangePod(
            metadata=ObjectMeta(
                name=names.change_pod_name(metadata.name, effect.number),
                namespace=metadata.namespace,
                labels={
                    labels.VERSION: version_of(release),
                    labels.WORKLOAD_NAME: names.label_value(release.spec.service_name),
                },
                owner_references=(owner(CHANGE_WORKLOADS, metadata),),
            ),
            spec=ChangePodSpec(
                change_workload_id=metadata.name,
                create_time=plain_time(now),
                create_time_unix=int(now),
                pod_infos=effect.pods,
                failed_by=effect.failed_by,
                phase=effect.phase,
                step=effect.step,
                workload_generation=release.spec.workload_generation if effect.phase else 0,
                not_decided_by=release.spec.not_decided_by,
            ),
        )
        await self._writer.create(self._caches.batches, batch, metadata.namespace)

    async def overrule(self, effect: Overrule) -> None:
        """Write the verdict `pass`. If somebody has failed a pod of a batch that waits for a person meanwhile, that
        verdict stays."""
        change_pod = await self._writer.read_batch(effect.batch)
        if change_pod.spec.phase:
            now = self._clock()
            await self._writer.save_batch(change_pod, approved(change_pod.status, change_pod, effect.message, now))
            return
        known = {result.pod: result for result in change_pod.status.pod_results if result.verdict}
        message = fitting(effect.message, change_pod)
        overruled = {
            info.pod: msgspec.structs.replace(info, verdict=Verdict.PASS.value, message=message, by=effect.by)
            for info in change_pod.spec.pod_infos
            if info.pod in effect.pods and _is_overruled(known.get(info.pod, info).verdict, waiting=effect.waiting)
        }
        if not overruled:
            return
        kept = [result for result in change_pod.status.pod_results if result.pod not in overruled]
        status = msgspec.structs.replace(change_pod.status, pod_results=(*kept, *overruled.values()))
        await self._writer.save_batch(change_pod, requested(status, self._clock()) if effect.skip else status)

    async def repeat(self, batch: Batch) -> None:
        """Store that the check is to be repeated. The controller of ChangePods asks the server."""
        change_pod = await self._writer.read_batch(batch)
        if not is_repeatable(change_pod):
            where = f"{batch.metadata.namespace}/{batch.metadata.name}"
            raise ConflictError(f"ChangePod {where} has changed since it was read", code=409)
        await self._writer.save_batch(change_pod, repeated(change_pod, self._clock()))


def _is_overruled(verdict: str, *, waiting: bool) -> bool:
    return not verdict if waiting else verdict not in ("", Verdict.PASS)
