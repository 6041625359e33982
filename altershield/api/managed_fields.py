"""When certain fields were last written, from `metadata.managedFields`.

The time of an entry is the time at which its manager last changed any of its fields. So the time can be too late, but
not too early. A manager that no longer owns fields has no entry. An entry from a migration of fields has no time.
"""

from collections.abc import Iterable

import msgspec

from altershield.api import labels
from kube_base.meta import ObjectMeta
from kube_base.times import unix


class _Owned(msgspec.Struct, frozen=True):
    """An owned field. Its parts are not decoded."""


class _Labels(msgspec.Struct, frozen=True, omit_defaults=True):
    governed: _Owned | None = msgspec.field(default=None, name=f"f:{labels.GOVERNED}")


class _Metadata(msgspec.Struct, frozen=True, omit_defaults=True):
    labels: _Labels = msgspec.field(default=_Labels(), name="f:labels")


class _Spec(msgspec.Struct, frozen=True, omit_defaults=True):
    template: _Owned | None = msgspec.field(default=None, name="f:template")


class _Fields(msgspec.Struct, frozen=True, omit_defaults=True):
    metadata: _Metadata = msgspec.field(default=_Metadata(), name="f:metadata")
    spec: _Spec = msgspec.field(default=_Spec(), name="f:spec")


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry of `managedFields`. Only the owned fields that `ManagedMeta` reads are decoded."""

    manager: str = ""
    operation: str = ""
    time: str = ""
    fields: _Fields = msgspec.field(default=_Fields(), name="fieldsV1")


class ManagedMeta(ObjectMeta, frozen=True, omit_defaults=True, rename="camel"):
    """Metadata with `managedFields`."""

    managed_fields: tuple[Entry, ...] = ()

    @property
    def governed_at(self) -> float | None:
        """The Unix second at which the label that governs a namespace was last written; None if it is not known."""
        return _latest(entry for entry in self.managed_fields if entry.fields.metadata.labels.governed is not None)

    @property
    def released_at(self) -> float | None:
        """The Unix second at which a workload's pod template was last written; None if it is not known."""
        return _latest(entry for entry in self.managed_fields if entry.fields.spec.template is not None)

    def applied_at(self, manager: str) -> float | None:
        """The Unix second at which server-side apply by `manager` last changed a field; None if it is not known."""
        return _latest(entry for entry in self.managed_fields if (entry.manager, entry.operation) == (manager, "Apply"))


def _latest(entries: Iterable[Entry]) -> float | None:
    return max((time for entry in entries if (time := unix(entry.time))), default=None)
