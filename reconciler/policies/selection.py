"""Selects the DefensePolicy that applies to a workload, and finds policies that can never apply. Pure functions.

A policy of the workload's namespace has precedence over a policy of the system namespace. Of several policies of a
namespace, the policy with the highest priority applies. Of equal priorities, the first policy by name applies.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from altershield.api.label_selectors import selects
from altershield.api.policy import DefensePolicySpec
from altershield.api.selectors import Operator, Selector


@dataclass(frozen=True, slots=True)
class InForce:
    """A policy with the spec that is in force. `generation`: the generation of this spec."""

    namespace: str
    name: str
    generation: int
    spec: DefensePolicySpec

    @property
    def rank(self) -> tuple[int, str]:
        """The policy with the lowest rank applies."""
        return -self.spec.priority, self.name


def matches(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether a workload with these labels is selected, by the rules of Kubernetes' label selectors."""
    return selects(selector.match_labels, selector.match_expressions, labels)


def select(policies: Iterable[InForce], labels: Mapping[str, str]) -> InForce | None:
    """The policy that applies to a workload with these labels, of the policies of one namespace; None if no policy
    applies."""
    found = [policy for policy in policies if matches(policy.spec.selector, labels)]
    return min(found, key=lambda policy: policy.rank, default=None)


def shadowed_by(policy: InForce, others: Sequence[InForce]) -> InForce | None:
    """The policy of the same namespace that has precedence for every workload that `policy` selects, or None.

    It selects these workloads if each of its requirements is also a requirement of `policy`. Other cases are not
    recognized.
    """
    own = _requirements(policy.spec.selector)
    found = [other for other in others if other.rank < policy.rank and _requirements(other.spec.selector) <= own]
    return min(found, key=lambda other: other.rank, default=None)


def _requirements(selector: Selector) -> set[tuple[str, str, frozenset[str]]]:
    labels = {(key, str(Operator.IN), frozenset((value,))) for key, value in selector.match_labels.items()}
    return labels | {(each.key, str(each.operator), frozenset(each.values)) for each in selector.match_expressions}
