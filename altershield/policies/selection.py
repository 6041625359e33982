"""Selects the DefensePolicy that applies to a workload, and finds policies that can never apply. Pure functions.

A policy of the workload's namespace has precedence over a policy of the system namespace. Of several policies of a
namespace, the policy with the highest priority applies. Of equal priorities, the first policy by name applies.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from altershield.api.label_selectors import selects
from altershield.api.selectors import Operator, Selector


class Selecting(Protocol):
    """The part of a policy's spec by which policies are selected."""

    @property
    def selector(self) -> Selector: ...
    @property
    def priority(self) -> int: ...


S = TypeVar("S", bound=Selecting)


@dataclass(frozen=True, slots=True)
class InForce(Generic[S]):
    """A policy with the spec that is in force. `generation`: the generation of this spec."""

    namespace: str
    name: str
    generation: int
    spec: S

    @property
    def rank(self) -> tuple[int, str]:
        """The policy with the lowest rank applies."""
        return -self.spec.priority, self.name


def matches(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether a workload with these labels is selected, by the rules of Kubernetes' label selectors."""
    return selects(selector.match_labels, selector.match_expressions, labels)


def ranked(policies: Iterable[InForce[S]]) -> tuple[InForce[S], ...]:
    """The policies of one namespace, for `applying`."""
    return tuple(sorted(policies, key=lambda policy: policy.rank))


def applying(levels: Iterable[Sequence[InForce[S]]], labels: Mapping[str, str]) -> InForce[S] | None:
    """The policy that applies to a workload with these labels; None if no policy applies. `levels`: the ranked policies
    of the workload's namespace, then those of the system namespace."""
    for level in levels:
        for policy in level:
            if matches(policy.spec.selector, labels):
                return policy
    return None


def shadowed_by(policy: InForce[S], others: Sequence[InForce[S]]) -> InForce[S] | None:
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
