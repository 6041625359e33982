"""The kind ReleaseOverride: one release may pass closed gates. The CRD is generated from these types.

Gatekeepers record each use in the status before they admit the release.
"""

import enum
from typing import Annotated

import msgspec

from altershield.api.announcements import Announcements
from altershield.api.fields import Conditions, Generation, Name
from altershield.api.kinds import AGE, Column, Kind
from altershield.api.resources import API_VERSION, RELEASE_OVERRIDES
from altershield.api.schema import doc, extra, rules
from kube_base.meta import ObjectMeta

MAX_USES = 10
"""The maximum of `uses`."""

TARGETS = ("CloneSet", "DaemonSet", "Deployment", "StatefulSet")
"""The kinds of workloads that an override may name (a test compares them with the adapters)."""

TTL_SECONDS = 3600
"""The default of `ttlSeconds`."""


class GateName(enum.StrEnum):
    """The gates that an override passes."""

    WINDOW = "Window"
    FREEZE = "Freeze"
    LIMIT = "Limit"
    FIELD = "Field"
    ORDER = "Order"


class Target(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A workload."""

    kind: Annotated[
        Annotated[str, msgspec.Meta(max_length=63), extra(enum=list(TARGETS))],
        doc("Its kind, as `Deployment`."),
    ]
    name: Annotated[Annotated[str, msgspec.Meta(min_length=1, max_length=253)], doc("Its name.")]
    namespace: Annotated[
        Name, doc("Its namespace. Not set: that of the override. Only AlterShield's namespace may name another one.")
    ] = ""


class ReleaseOverrideSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False, kw_only=True):
    """Which workload may pass which gates, why, how often and how long."""

    reason: Annotated[
        Annotated[str, msgspec.Meta(min_length=10, max_length=1024)], doc("Why, in 10 to 1,024 characters.")
    ]
    requested_by: Annotated[
        Annotated[str, msgspec.Meta(max_length=1024)], doc("The user who created it: your own user name.")
    ] = ""
    target: Annotated[Target, doc("The workload that may be released.")]
    gates: Annotated[
        tuple[GateName, ...],
        msgspec.Meta(
            min_length=1, max_length=5, description="The gates that it passes: `Window`, `Freeze`, `Limit`, `Field`, …."
        ),
        extra(x_kubernetes_list_type="set"),
    ]
    uses: Annotated[
        int,
        msgspec.Meta(
            ge=1, le=MAX_USES, description="How many versions may pass. A version counts once, with all its steps."
        ),
    ] = 1
    ttl_seconds: Annotated[
        int, msgspec.Meta(ge=60, le=86_400, description="Seconds after its creation in which a version may pass.")
    ] = TTL_SECONDS


class Use(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A version that passed."""

    uid: Annotated[Name, doc("The uid of the workload; empty: the release created it.")] = ""
    version: Annotated[Name, doc("The version.")] = ""
    time: Annotated[Name, doc("When it was admitted, UTC.")] = ""
    by: Annotated[Annotated[str, msgspec.Meta(max_length=1024)], doc("The user who released it.")] = ""
    gates: Annotated[
        tuple[Name, ...],
        msgspec.Meta(max_length=16, description="The closed gates that it passed: KIND NAMESPACE/NAME."),
    ] = ()


class ReleaseOverrideStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The versions that passed."""

    uses: Annotated[tuple[Use, ...], msgspec.Meta(max_length=MAX_USES, description="The versions that passed.")] = ()
    used: Annotated[int, msgspec.Meta(ge=0, le=MAX_USES, description="How many they are.")] = 0
    announcements: Announcements = ()
    conditions: Conditions = ()
    observed_generation: Annotated[Generation, doc("The generation of the spec that this status describes.")] = 0


class ReleaseOverride(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """One release may pass closed gates."""

    metadata: ObjectMeta
    spec: Annotated[
        ReleaseOverrideSpec,
        rules(("self == oldSelf", "a ReleaseOverride cannot be changed; create another one instead")),
    ]
    status: ReleaseOverrideStatus = ReleaseOverrideStatus()
    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: RELEASE_OVERRIDES.kind)


KIND = Kind(
    resource=RELEASE_OVERRIDES,
    type=ReleaseOverride,
    short_name="ro",
    title="Release override",
    summary="One release may pass closed gates",
    columns=(
        Column("TARGET", "string", ".spec.target.name"),
        Column("USES", "integer", ".spec.uses"),
        Column("USED", "integer", ".status.used"),
        AGE,
        Column("GATES", "string", ".spec.gates", wide=True),
        Column("BY", "string", ".spec.requestedBy", wide=True),
        Column("REASON", "string", ".spec.reason", wide=True),
    ),
    status={"used": 0},
)
