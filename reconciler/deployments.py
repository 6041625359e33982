"""Controller: every release of a governed Deployment gets its ChangeWorkload."""

from altershield.api import labels, names
from reconciler.caches import Caches, Key
from reconciler.records import Records, processed, reversion
from reconciler.writer import Writer, label_path


class DeploymentsController:
    def __init__(self, caches: Caches, writer: Writer, records: Records) -> None:
        self._caches = caches
        self._writer = writer
        self._records = records

    async def reconcile(self, key: Key) -> float | None:
        deployment = self._caches.deployments.get(*key)
        if (
            deployment is None
            or deployment.metadata.deletion_timestamp is not None
            or not names.is_version(deployment.version)
            or not self._caches.governed(key[0])
        ):
            return None
        unprocessed = deployment.metadata.labels.get(labels.DEFENSE_STATUS) != labels.PROCESSED
        record = await self._records.existing(deployment, deployment.version)
        if record is None:
            await self._records.create(deployment, deployment.version)
        elif unprocessed and record.spec.reversion != reversion(deployment):
            await self._records.start_anew(deployment, record)
        if unprocessed:
            same = {"op": "test", "path": label_path(labels.VERSION), "value": deployment.version}
            await self._writer.patch(self._caches.deployments, deployment, [same, *processed(deployment)])
        return None
