"""The kind ReleaseFreeze: no release may begin until a person, or a time, ends it. The CRD is generated from these
types."""

from typing import Annotated

import msgspec

from altershield.api.announcements import Announcements
from altershield.api.fields import Conditions, Generation, Name
from altershield.api.gates.limits import MAX_FAILURES
from altershield.api.gates.named_workload import NamedWorkload
from altershield.api.gates.rules import MAX_GATE_REASON, TIME, GateRules
from altershield.api.kinds import AGE, NOT_PROCESSED, Column, Kind
from altershield.api.resources import API_VERSION, RELEASE_FREEZES
from altershield.api.schema import doc, extra, pattern, rules
from kube_base.meta import ObjectMeta

_Time = Annotated[str, msgspec.Meta(max_length=20), pattern(TIME)]
_User = Annotated[str, msgspec.Meta(max_length=1024)]


class BlownFuse(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The fuse of a ReleaseLimit that tripped, and the failed releases."""

    limit: Annotated[Name, doc("The name of the ReleaseLimit, in the same namespace.")]
    workloads: Annotated[
        tuple[NamedWorkload, ...],
        msgspec.Meta(
            max_length=MAX_FAILURES,
            description="The workloads whose releases failed. A release that repairs one of them passes: it has the "
            "label `ignored-suspend`.",
        ),
        extra(x_kubernetes_list_type="atomic"),
    ] = ()


class ReleaseFreezeSpec(GateRules, frozen=True, omit_defaults=True, rename="camel", gc=False, kw_only=True):
    """Which releases may not begin, why and until when."""

    reason: Annotated[
        Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_GATE_REASON)],
        doc("Why no release may begin. Developers whose release is denied read it."),
    ]
    from_: Annotated[_Time | None, doc("When it begins, UTC, as `2026-12-20T00:00:00Z`. Not set: at once.")] = (
        msgspec.field(name="from", default=None)
    )
    until: Annotated[_Time | None, doc("When it ends, UTC. Not set: when a person ends it. It may be changed.")] = None
    requested_by: Annotated[_User, doc("The user who created it: your own user name.")] = ""
    ended_by: Annotated[_User, doc("The user who changed `until` last: your own user name.")] = ""
    fuse: Annotated[
        BlownFuse | None, doc("Why AlterShield created it: a fuse tripped. Only AlterShield may set it.")
    ] = None


class ReleaseFreezeStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Whether it is in force."""

    announcements: Announcements = ()
    conditions: Conditions = ()
    observed_generation: Annotated[Generation, doc("The generation of the spec that this status describes.")] = 0


_MAY_CHANGE = ("until", "ended_by")
_REQUIRED = ("reason",)


def _unchanged() -> str:
    """The expression that no other field has changed."""
    fields = zip(ReleaseFreezeSpec.__struct_fields__, ReleaseFreezeSpec.__struct_encode_fields__, strict=True)
    parts = []
    for name, field in fields:
        if name in _REQUIRED:
            parts.append(f"self.{field} == oldSelf.{field}")
        elif name not in _MAY_CHANGE:
            parts.append(
                f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"
            )
    return " && ".join(parts)


class ReleaseFreeze(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """No release may begin until a person, or a time, ends it."""

    metadata: ObjectMeta
    spec: Annotated[
        ReleaseFreezeSpec,
        rules(
            ("!has(self.from) || !has(self.until) || self.from <= self.until", "until is not before from"),
            (_unchanged(), "only until and endedBy of a ReleaseFreeze may change; create another one instead"),
        ),
    ]
    status: ReleaseFreezeStatus = ReleaseFreezeStatus()
    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: RELEASE_FREEZES.kind)


KIND = Kind(
    resource=RELEASE_FREEZES,
    type=ReleaseFreeze,
    short_name="rf",
    title="Release freeze",
    summary="No release may begin until a person, or a time, ends it",
    columns=(
        Column("REASON", "string", ".spec.reason"),
        Column("MODE", "string", ".spec.mode"),
        AGE,
        Column("FROM", "string", ".spec.from", wide=True),
        Column("UNTIL", "string", ".spec.until", wide=True),
        Column("BY", "string", ".spec.requestedBy", wide=True),
        Column("ENDEDBY", "string", ".spec.endedBy", wide=True),
    ),
    status={"conditions": NOT_PROCESSED},
)
