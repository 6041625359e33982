"""The conditions of a namespace that is being deleted. Pure functions.

Types, reasons and messages are those of `pkg/controller/namespace/deletion/status_condition_utils.go`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kube_base.resources import Resource
from kube_sandbox.cluster.kinds import Object

_DONE = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


@dataclass(slots=True)
class Outcome:
    """The result of one attempt to delete the content: the errors, and the numbers of remaining objects by resource and
    by finalizer."""

    errors: list[str] = field(default_factory=list)
    remaining: dict[Resource, int] = field(default_factory=dict)
    finalizers: dict[str, int] = field(default_factory=dict)


def conditions(present: Sequence[Object], outcome: Outcome, now: str, *, only_pods: bool) -> list[Object]:
    """The conditions after an attempt. With `only_pods`, the attempt ended because pods remain; the real controller
    then reports errors only. `now` is RFC 3339; a condition keeps its time while its status stays."""
    found = dict(_failures(outcome))
    if not only_pods:
        found |= _remaining(outcome.remaining, outcome.finalizers)
    before = {condition["type"]: condition for condition in present}
    result = [condition for condition in present if condition["type"] not in _DONE]
    for type_, done in _DONE.items():
        reason, message = found.get(type_, done)
        status = "True" if type_ in found else "False"
        old = before.get(type_)
        since = old["lastTransitionTime"] if old is not None and old["status"] == status else now
        result.append(
            {"type": type_, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}
        )
    return result


def _failures(outcome: Outcome) -> dict[str, tuple[str, str]]:
    if not outcome.errors:
        return {}
    text = f"Failed to delete all resource types, {len(outcome.errors)} remaining: {', '.join(sorted(outcome.errors))}"
    return {"NamespaceDeletionContentFailure": ("ContentDeletionFailed", text)}


def _remaining(remaining: Mapping[Resource, int], finalizers: Mapping[str, int]) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    if remaining:
        each = sorted(f"{one.plural}.{one.group} has {count} resource instances" for one, count in remaining.items())
        text = f"Some resources are remaining: {', '.join(each)}"
        found["NamespaceContentRemaining"] = ("SomeResourcesRemain", text)
    if finalizers:
        each = sorted(f"{name} in {count} resource instances" for name, count in finalizers.items())
        text = f"Some content in the namespace has finalizers remaining: {', '.join(each)}"
        found["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", text)
    return found
