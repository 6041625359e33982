"""Every write to the cluster goes through here: guarded, counted, and seen at once by the caches."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from altershield.api.kinds import (
    ChangePod,
    ChangePodStatus,
    ChangeWorkload,
    ChangeWorkloadStatus,
    OpsConfigInfo,
    OpsConfigInfoStatus,
)
from altershield.api.meta import ObjectMeta
from altershield.kube.client import Client, PatchType
from altershield.kube.errors import ConflictError, InvalidError, NotFoundError
from altershield.kube.informer import Informer
from reconciler.metrics import Metrics

Operation = dict[str, Any]
"""One operation of an RFC 6902 patch."""


class _Object(Protocol):
    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=_Object)
R = TypeVar("R", ChangeWorkload, ChangePod, OpsConfigInfo)


class Writer:
    """Writes for the controllers. ConflictError means everywhere: the object is not what the caller saw."""

    def __init__(self, client: Client, metrics: Metrics) -> None:
        self._client = client
        self._metrics = metrics

    async def create(self, informer: Informer[T], obj: T) -> T:
        resource, metadata = informer.resource, obj.metadata
        created = await self._client.create(resource, obj, metadata.namespace, as_=type(obj))
        self._metrics.writes.labels(resource.kind, "create").inc()
        informer.observe(created)
        return created

    async def patch(self, informer: Informer[T], obj: T, operations: Sequence[Operation]) -> T:
        """Apply a JSON patch to this very object, not to a namesake."""
        resource, metadata = informer.resource, obj.metadata
        guarded = [{"op": "test", "path": "/metadata/uid", "value": metadata.uid}, *operations]
        try:
            patched = await self._client.patch(
                resource, guarded, metadata.name, metadata.namespace, type_=PatchType.JSON, as_=type(obj)
            )
        except InvalidError as error:
            # An object that fails validation comes with its causes, a patch whose test fails with none.
            if error.details.get("causes"):
                raise
            raise ConflictError(
                f"{resource.kind} {metadata.namespace}/{metadata.name} changed meanwhile: {error}",
                code=error.code,
                reason=error.reason,
            ) from error
        self._metrics.writes.labels(resource.kind, "patch").inc()
        informer.observe(patched)
        return patched

    async def save_status(
        self, informer: Informer[R], obj: R, status: ChangeWorkloadStatus | ChangePodStatus | OpsConfigInfoStatus
    ) -> R:
        """Store what changed of the status, unless somebody wrote the object since `obj` was read."""
        resource, metadata = informer.resource, obj.metadata
        patch = {
            "metadata": {"resourceVersion": metadata.resource_version},
            "status": merge_patch(msgspec.to_builtins(obj.status), msgspec.to_builtins(status)),
        }
        saved = await self._client.patch(
            resource, patch, metadata.name, metadata.namespace, subresource="status", as_=type(obj)
        )
        self._metrics.writes.labels(resource.kind, "patch status").inc()
        informer.observe(saved)
        return saved

    async def delete(self, informer: Informer[T], obj: T) -> None:
        """Delete this very object. Gone already is as good."""
        resource, metadata = informer.resource, obj.metadata
        try:
            await self._client.delete(
                resource, metadata.name, metadata.namespace, uid=metadata.uid, propagation="Background"
            )
        except (NotFoundError, ConflictError):
            return
        self._metrics.writes.labels(resource.kind, "delete").inc()


def merge_patch(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The RFC 7386 patch of the top-level fields that turns `old` into `new`; lists are replaced as a whole."""
    changed = {name: value for name, value in new.items() if name not in old or old[name] != value}
    return {**changed, **{name: None for name in old if name not in new}}


def label_path(key: str) -> str:
    """The JSON pointer of a label."""
    return f"/metadata/labels/{key.replace('~', '~0').replace('/', '~1')}"
