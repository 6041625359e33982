"""The fields of a pod that the handlers read."""

from typing import Any

import msgspec

from altershield.budgets import pods
from altershield.budgets.changes import WireSpec
from altershield.budgets.pods import Pod, WireStatus
from gatekeeper.request import Metadata, Object
from kube_base.meta import OwnerReference


class PodMetadata(Metadata, frozen=True, rename="camel"):
    namespace: str = ""
    resource_version: str = ""
    generation: int = 0
    deletion_timestamp: str | None = None
    annotations: dict[str, Any] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class ReviewedPod(Object, frozen=True, rename="camel"):
    """A pod in a review."""

    metadata: PodMetadata
    status: WireStatus = WireStatus()

    def projection(self, namespace: str) -> Pod:
        """The pod as the caches have it. `namespace`: that of the request."""
        metadata = self.metadata
        if metadata.namespace != namespace:
            metadata = msgspec.structs.replace(metadata, namespace=namespace)
        return pods.projected(metadata, self.status)


class ChangedPod(ReviewedPod, frozen=True, rename="camel"):
    """A pod in a review of an update, with the fields of the spec that an update can change."""

    spec: WireSpec = WireSpec()
