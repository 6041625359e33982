"""The fields of a Namespace that AlterShield reads. Decoding drops all other fields."""

import msgspec

from altershield.api import labels
from altershield.api.managed_fields import ManagedMeta


class Namespace(msgspec.Struct, frozen=True):
    metadata: ManagedMeta

    @property
    def governed(self) -> bool:
        """Whether AlterShield governs the workloads in this namespace."""
        return self.metadata.labels.get(labels.GOVERNED) == labels.GOVERNED_VALUE
