"""Which pods a budget covers, and which workload a pod belongs to.

A pod belongs to the controller of its controller (the Deployment of its ReplicaSet), else to its controller.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from altershield.api.budgets import PodUnavailableBudgetSpec, TargetRef
from altershield.api.label_selectors import selects
from altershield.api.selectors import Selector
from altershield.budgets.scaled import Scaled
from altershield.workloads.meta import Owner
from altershield.workloads.workload import WireExpression, WireSelector


class Scales(Protocol):
    """The workloads and sets of one namespace, from caches and live reads. Controllers are looked up in the namespace
    of their pods only."""

    def get(self, owner: Owner) -> Scaled | None:
        """The object with this uid, or None."""

    def owned_by(self, uid: str) -> Sequence[Scaled]:
        """The sets whose controller has this uid."""

    def named(self, reference: TargetRef) -> Scaled | None:
        """The workload that a budget names, or None."""

    def is_gone(self, owner: Owner) -> bool:
        """Whether a live read found no object with this uid."""

    def can_read(self, owner: Owner) -> bool:
        """Whether a live read is possible: the kind is known, and the object was not read live yet."""


class Workload(msgspec.Struct, frozen=True, gc=False):
    """The workload of a pod, with the number of pods that it should have."""

    uid: str
    replicas: int | None
    """None: the number is not known."""
    deletes_pods: bool = False
    """Whether all of its pods will be deleted: it is terminating, scaled to 0, or deleted."""


BARE = Workload("", None)
"""The workload of a pod without a controller."""


def workload_of(owner: Owner, scales: Scales) -> Workload | Owner:
    """The workload of the pods of `owner`. An Owner: this object has to be read live first."""
    if not owner.uid:
        return BARE
    controller = scales.get(owner)
    if controller is None:
        return _not_cached(owner, scales)
    if controller.deleting:
        return Workload(owner.uid, controller.replicas, deletes_pods=True)
    if not controller.owner.uid:
        return Workload(owner.uid, controller.replicas, deletes_pods=controller.replicas == 0)
    top = scales.get(controller.owner)
    if top is None:
        return _not_cached(controller.owner, scales)
    return Workload(controller.owner.uid, top.replicas, deletes_pods=top.deleting or top.replicas == 0)


def _not_cached(owner: Owner, scales: Scales) -> Workload | Owner:
    """The workload with this owner reference, from its sets; or the owner, if it has to be read live first."""
    if scales.is_gone(owner):
        return Workload(owner.uid, None, deletes_pods=True)
    if scales.can_read(owner):
        return owner
    sets = scales.owned_by(owner.uid)
    if not sets:
        return Workload(owner.uid, None)
    replicas = sum(each.replicas for each in sets)
    return Workload(owner.uid, replicas, deletes_pods=replicas == 0)


def is_selected(selector: Selector, labels: Mapping[str, str]) -> bool:
    return selects(selector.match_labels, selector.match_expressions, labels)


def as_query(selector: Selector) -> str:
    """The selector in the syntax of a list request."""
    expressions = tuple(WireExpression(each.key, each.operator, each.values) for each in selector.match_expressions)
    return str(WireSelector(selector.match_labels, expressions))


def covers(spec: PodUnavailableBudgetSpec, owner: Owner, labels: Mapping[str, str], scales: Scales) -> bool:
    """Whether a budget covers pods with this owner and these labels, without regard to `ignoredPodSelector`."""
    if spec.selector is not None:
        return is_selected(spec.selector, labels)
    if spec.target_ref is None or not owner.uid:
        return False
    if refers_to(spec.target_ref, owner):
        return True
    controller = scales.get(owner)
    return controller is not None and bool(controller.owner.uid) and refers_to(spec.target_ref, controller.owner)


def is_ignored(spec: PodUnavailableBudgetSpec, labels: Mapping[str, str]) -> bool:
    return spec.ignored_pod_selector is not None and is_selected(spec.ignored_pod_selector, labels)


def protects(spec: PodUnavailableBudgetSpec, owner: Owner, labels: Mapping[str, str], scales: Scales) -> bool:
    """Whether a budget covers pods with this owner and these labels, and does not ignore them."""
    return covers(spec, owner, labels, scales) and not is_ignored(spec, labels)


def refers_to(reference: TargetRef, other: Owner | TargetRef) -> bool:
    """Whether both name the same workload. The versions of an API group do not matter."""
    return (other.group_kind, other.name) == (reference.group_kind, reference.name)


def unread_owner(spec: PodUnavailableBudgetSpec, owner: Owner, scales: Scales) -> Owner | None:
    """The owner that has to be read live to know whether a budget with a `targetRef` covers its pods."""
    if spec.target_ref is None or not owner.uid or refers_to(spec.target_ref, owner):
        return None
    missing = scales.get(owner) is None and not scales.is_gone(owner) and scales.can_read(owner)
    return owner if missing else None
