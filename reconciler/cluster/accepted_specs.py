"""The condition Accepted: of objects of which the spec that was accepted last stays in force, and of gates that are in
force as soon as they exist. Pure functions."""

from collections.abc import Sequence
from typing import Protocol

from altershield.api.condition_types import ConditionType
from altershield.api.gates.rules import GateScope
from altershield.api.meta import Condition, find_condition
from kube_base.meta import ObjectMeta


class _Gate(Protocol):
    """An object that judges releases."""

    @property
    def metadata(self) -> ObjectMeta: ...
    @property
    def spec(self) -> GateScope: ...


def rejected(reason: str, message: str, *, has_accepted: bool) -> Condition:
    """The condition of a spec that is not accepted. `has_accepted`: whether one was accepted before."""
    instead = "the spec that was accepted last stays in force" if has_accepted else "no spec is in force"
    return Condition(ConditionType.ACCEPTED, "False", reason, f"{message}; {instead}")


def turned(before: Sequence[Condition], after: Sequence[Condition]) -> Condition | None:
    """The condition Accepted after a change, if an Event reports it: the spec is newly rejected, rejected for another
    reason, or accepted again."""
    known, wanted = (find_condition(each, ConditionType.ACCEPTED) for each in (before, after))
    if wanted is None or (known is not None and known.message == wanted.message):
        return None
    if wanted.is_true and (known is None or known.status != "False"):
        return None
    return wanted


def selector_not_allowed(gate: _Gate, what: str, system_namespace: str) -> str:
    """Why the spec of a gate is not accepted because of its `namespaceSelector`; empty: it may have it. `what`: what
    people call the object, as `window`."""
    if gate.spec.namespace_selector is None or gate.metadata.namespace == system_namespace:
        return ""
    return (
        f"spec.namespaceSelector is for {what}s of AlterShield's namespace, {system_namespace}; remove it: the {what} "
        "then judges the releases of its own namespace"
    )


def accepted(gate: _Gate, system_namespace: str) -> Condition:
    """The condition Accepted of an object that is in force as it is written."""
    reason, message = "Valid", "releases that it selects are judged by it"
    if gate.spec.namespace_selector is not None and gate.metadata.namespace != system_namespace:
        reason = "NamespaceSelectorIgnored"
        message = (
            "it judges the releases of its own namespace only: spec.namespaceSelector has an effect in the "
            f"namespace {system_namespace}"
        )
    return Condition(ConditionType.ACCEPTED, "True", reason, message, observed_generation=gate.metadata.generation)
