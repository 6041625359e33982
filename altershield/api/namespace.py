"""What is read of Kubernetes' own kinds, workloads and their pods aside. Decoding into these drops everything else."""

import msgspec

from altershield.api import labels
from altershield.api.managed_fields import ManagedMeta


class Namespace(msgspec.Struct, frozen=True):
    metadata: ManagedMeta

    @property
    def governed(self) -> bool:
        return self.metadata.labels.get(labels.GOVERNED) == labels.GOVERNED_VALUE
