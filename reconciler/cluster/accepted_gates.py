"""The condition Accepted of gates that are in force as soon as they exist. Pure functions."""

from typing import Protocol

from altershield.api.condition_types import ConditionType
from altershield.api.gates.rules import GateScope
from altershield.api.meta import Condition
from kube_base.meta import ObjectMeta


class _Gate(Protocol):
    """An object that judges releases."""

    @property
    def metadata(self) -> ObjectMeta: ...
    @property
    def spec(self) -> GateScope: ...


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
