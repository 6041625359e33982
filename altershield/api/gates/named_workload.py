"""A workload as the kinds of release gates name it."""

from typing import Annotated, Self

import msgspec

from altershield.api.change_workload import WorkloadRef
from altershield.api.fields import Name
from altershield.api.schema import doc


class NamedWorkload(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A workload of any namespace."""

    namespace: Annotated[Name, doc("Its namespace.")] = ""
    api_version: Annotated[Name, doc("Its API version.")] = ""
    kind: Annotated[Name, doc("Its kind.")] = ""
    name: Annotated[Name, doc("Its name.")] = ""

    @classmethod
    def of(cls, namespace: str, workload: WorkloadRef) -> Self:
        return cls(namespace, workload.api_version, workload.kind, workload.name)

    @property
    def text(self) -> str:
        """`deployment NAMESPACE/NAME`."""
        return f"{self.kind.lower()} {self.namespace}/{self.name}"
