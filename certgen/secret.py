"""Reads and writes the Secret in the cluster, which is the source of truth."""

import msgspec

from altershield.api.names import INSTALLED
from certgen.webhook_configurations import FIELD_MANAGER
from kube_base.access.client import Client, PatchType
from kube_base.access.errors import ConflictError, NotFoundError
from kube_base.meta import ObjectMeta
from kube_base.resources import SECRETS

MANAGED_BY = "app.kubernetes.io/managed-by"
_LABELS = INSTALLED | {MANAGED_BY: FIELD_MANAGER}


class Secret(msgspec.Struct, frozen=True):
    """A Secret as it was read. The values of `data` are base64."""

    metadata: ObjectMeta
    data: dict[str, str] | None = None
    immutable: bool = False

    def __repr__(self) -> str:
        return f"Secret({self.metadata.namespace}/{self.metadata.name}, ...)"

    @property
    def is_ours(self) -> bool:
        """Whether certgen created it."""
        return self.metadata.labels.get(MANAGED_BY) == FIELD_MANAGER


async def read(client: Client, name: str, namespace: str) -> Secret | None:
    try:
        return await client.get(SECRETS, name, namespace, as_=Secret)
    except NotFoundError:
        return None


async def write(client: Client, name: str, namespace: str, before: Secret | None, data: dict[str, str]) -> None:
    """Create the Secret, or change the one that was read `before`. ConflictError if it has changed since then, for
    example by another replica: read it again."""
    try:
        if before is not None and not before.immutable:
            metadata = {"resourceVersion": before.metadata.resource_version, "labels": _LABELS}
            change = {"metadata": metadata, "data": data}
            await client.patch(SECRETS, change, name, namespace, type_=PatchType.MERGE, field_manager=FIELD_MANAGER)
            return
        if before is not None:
            await client.delete(SECRETS, name, namespace, uid=before.metadata.uid)
    except NotFoundError as error:
        raise ConflictError(str(error), code=error.code, reason=error.reason) from error
    created = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": _LABELS},
        "type": "kubernetes.io/tls",
        "data": data,
    }
    await client.create(SECRETS, created, namespace, as_=Secret)
