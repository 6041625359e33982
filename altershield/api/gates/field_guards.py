"""The kind FieldGuard: fields of pod templates that may not change by accident. The CRD is generated from these types.

A guard is asked when a release is admitted, and at no other time.
"""

import enum
from typing import Annotated

import msgspec

from altershield.api.announcements import Announcements
from altershield.api.fields import Conditions, Generation
from altershield.api.gates.rules import MAX_GATE_REASON, GateScope
from altershield.api.kinds import AGE, NOT_PROCESSED, Column, Kind
from altershield.api.resources import API_VERSION, FIELD_GUARDS
from altershield.api.schema import doc, extra, pattern
from kube_base.meta import ObjectMeta

MAX_GUARD_RULES = 50
"""The maximum number of rules of a FieldGuard."""

MAX_GUARD_PATHS = 20
"""The maximum number of paths of a rule."""

MAX_GUARD_PATH = 256
"""The maximum length of a path."""

PATH = r"^(metadata|spec)(\.[A-Za-z][A-Za-z0-9]*|\[(\*|([A-Za-z][A-Za-z0-9]*=)?[A-Za-z0-9._/:@-]+)\])+$"
"""The pattern of a path."""


class FieldChange(enum.StrEnum):
    """What a rule meets."""

    CHANGED = "Changed"
    """The field exists before and after, with another value."""
    ADDED = "Added"
    """The field exists only after the release."""
    REMOVED = "Removed"
    """The field exists only before the release."""
    INCREASED = "Increased"
    """The field is a number or a quantity, and becomes larger."""
    DECREASED = "Decreased"
    """The field is a number or a quantity, and becomes smaller."""
    REVERTED = "Reverted"
    """Somebody has changed the field since the last release of the same releaser, and this release writes the value
    of that release again."""


class GuardAction(enum.StrEnum):
    """What happens to a release that meets a rule."""

    DENY = "Deny"
    WARN = "Warn"


class FieldRule(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Fields, and the changes of them that are not admitted."""

    name: Annotated[
        Annotated[
            str,
            msgspec.Meta(min_length=1, max_length=63),
            pattern("^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"),
        ],
        doc("The name of the rule. Denied developers read it."),
    ]
    paths: Annotated[
        tuple[Annotated[str, msgspec.Meta(max_length=MAX_GUARD_PATH), pattern(PATH)], ...],
        msgspec.Meta(
            min_length=1,
            max_length=MAX_GUARD_PATHS,
            description="The fields, below `spec.template`, for example "
            "`spec.containers[*].resources.limits.memory`. `[*]` means all elements of a list or a map, `[name=app]` "
            "the elements with this field, `[nvidia.com/gpu]` the member of a map with this key. Elements are compared "
            "by their name, not by their position.",
        ),
        extra(x_kubernetes_list_type="set"),
    ]
    changes: Annotated[
        tuple[FieldChange, ...],
        msgspec.Meta(
            min_length=1,
            max_length=6,
            description="The changes that are not admitted: `Changed` (the value), `Added`, `Removed`, `Increased` and "
            "`Decreased` (of a number or a quantity), and `Reverted`: somebody has changed the field since the last "
            "release by the same field manager or user, and this release writes its own old value again.",
        ),
        extra(x_kubernetes_list_type="set"),
    ] = (FieldChange.CHANGED, FieldChange.ADDED, FieldChange.REMOVED)
    action: Annotated[GuardAction, doc("`Deny`, or `Warn`: the release passes with a warning.")] = GuardAction.DENY
    message: Annotated[
        Annotated[str, msgspec.Meta(max_length=MAX_GATE_REASON)],
        doc("Why, and what to do instead. Developers whose release meets the rule read it."),
    ] = ""


class FieldGuardSpec(GateScope, frozen=True, omit_defaults=True, rename="camel", gc=False, kw_only=True):
    """Which releases are judged, and by which rules."""

    rules: Annotated[
        tuple[FieldRule, ...],
        msgspec.Meta(min_length=1, max_length=MAX_GUARD_RULES, description="The rules. Each one is asked."),
        extra(x_kubernetes_list_type="map", x_kubernetes_list_map_keys=["name"]),
    ]


class FieldGuardStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Which rules are in force."""

    accepted: Annotated[FieldGuardSpec | None, doc("The spec in force: the one that was accepted last.")] = None
    accepted_generation: Annotated[Generation, doc("The generation of that spec.")] = 0
    announcements: Announcements = ()
    conditions: Conditions = ()
    observed_generation: Annotated[Generation, doc("The generation of the spec that this status describes.")] = 0


class FieldGuard(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Fields of pod templates that may not change by accident."""

    metadata: ObjectMeta
    spec: FieldGuardSpec
    status: FieldGuardStatus = FieldGuardStatus()
    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: FIELD_GUARDS.kind)


KIND = Kind(
    resource=FIELD_GUARDS,
    type=FieldGuard,
    short_name="fg",
    title="Field guard",
    summary="Fields of pod templates that may not change by accident",
    columns=(
        Column("MODE", "string", ".spec.mode"),
        Column("ACCEPTED", "string", '.status.conditions[?(@.type=="Accepted")].status'),
        AGE,
        Column("RULES", "string", ".spec.rules[*].name", wide=True),
    ),
    status={"conditions": NOT_PROCESSED},
)
