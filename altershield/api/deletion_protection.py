"""The protection of objects from deletion: its labels, its levels, and the texts of a refusal.

The names and the first sentence of a refusal are those of OpenKruise, so that people and tools that know OpenKruise
recognize them. ValidatingAdmissionPolicies (`command/install/deletion_policies.py`) and the gatekeeper
(`gatekeeper/handlers/deletions/`) refuse with the same texts.
"""

import unicodedata
from collections.abc import Mapping
from enum import StrEnum

from altershield.api.pages import PROTECT

LABEL = "policy.kruise.io/delete-protection"
"""On an object, set by the user: its level."""

CASCADING_LABEL = "policy.kruise.io/disable-cascading-deletion"
"""The label of OpenKruise's first proposal. With the value `true` it means `Cascading`."""
CASCADING_VALUE = "true"

REASON = "altershield.defense.antgroup.com/delete-protection-reason"
"""An annotation of a protected object, set by the user: why it is protected. Refusals quote it."""
MAX_REASON = 256
"""The characters of a reason that a refusal quotes."""

QUOTED_REASON = ' (reason: "{}")'
"""The part of a refusal that quotes the reason."""


class Level(StrEnum):
    """The level of protection of an object."""

    ALWAYS = "Always"
    """The object cannot be deleted."""
    CASCADING = "Cascading"
    """The object cannot be deleted while its deletion would delete other objects."""


def level(labels: Mapping[str, str]) -> Level | None:
    """The level that the labels ask for; with two labels, the stricter level. None: other values protect nothing."""
    if labels.get(LABEL) == Level.ALWAYS:
        return Level.ALWAYS
    if labels.get(LABEL) == Level.CASCADING or labels.get(CASCADING_LABEL) == CASCADING_VALUE:
        return Level.CASCADING
    return None


def quotable(reason: str) -> str:
    """The reason as refusals quote it: its first characters, with spaces instead of line breaks and instead of
    characters that control a terminal or the direction of writing."""
    cut = reason if len(reason) <= MAX_REASON else f"{reason[:MAX_REASON]}…"
    return "".join(" " if unicodedata.category(each) in ("Cc", "Cf", "Zl", "Zp") else each for each in cut).strip()


def refusal(level: Level, because: str, object_name: str, reason: str, way_out: str) -> str:
    """The text of a refusal, in one line. `because`: for example `replicas 3>0`; empty for `Always`. `object_name`: for
    example `Deployment shop/web`. `reason`: the result of `quotable`, or empty. `way_out`: how the user can delete the
    object."""
    found = f" and {because}" if because else ""
    quoted = QUOTED_REASON.format(reason) if reason else ""
    return (
        f"forbidden by ResourcesProtectionDeletion for {LABEL}={level}{found}; "
        f"{object_name} is protected from deletion{quoted}, see {PROTECT}; {way_out}"
    )


def unprotect_command(plural: str, name: str, namespace: str, labels: Mapping[str, str]) -> str:
    """The command of kubectl that removes the labels. `plural`: the resource with its group, as kubectl understands
    it."""
    keys = " ".join(f"{key}-" for key in (LABEL, CASCADING_LABEL) if key in labels)
    return f"kubectl label {plural} {name}{f' -n {namespace}' if namespace else ''} {keys}"
