"""When the fields that matter here were last written, as far as `metadata.managedFields` tells.

An entry's time is that of its manager's last change, of whichever of its fields: late rather than early. Who owns
nothing any more has no entry; an entry whose operation was a migration has no time.
"""

from collections.abc import Iterable

import msgspec

from altershield.api import labels
from altershield.api.meta import ObjectMeta, unix


class _Owned(msgspec.Struct, frozen=True):
    """The field is owned, whatever is said of its parts."""


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
    """What is read of one: nothing but whether it owns what is asked for below, so that it may be cached."""

    time: str = ""
    fields: _Fields = msgspec.field(default=_Fields(), name="fieldsV1")


class ManagedMeta(ObjectMeta, frozen=True, omit_defaults=True, rename="camel"):
    managed_fields: tuple[Entry, ...] = ()

    @property
    def governed_at(self) -> float | None:
        """The Unix second at which the label that governs a namespace was last set; None where nobody knows."""
        return _latest(entry for entry in self.managed_fields if entry.fields.metadata.labels.governed is not None)

    @property
    def released_at(self) -> float | None:
        """The Unix second at which a workload's pod template was last written; None where nobody knows."""
        return _latest(entry for entry in self.managed_fields if entry.fields.spec.template is not None)


def _latest(entries: Iterable[Entry]) -> float | None:
    return max((unix(entry.time) for entry in entries if entry.time), default=None)
