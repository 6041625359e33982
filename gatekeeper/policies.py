"""The DefensePolicies, as handlers of releases see them."""

from collections.abc import Mapping
from typing import Protocol

from altershield.policies.selection import InForce, applying, ranked
from altershield.policies.stored import Policy, Spec
from kube_base.access.informer import Informer

NAMESPACE = "namespace"
"""The index of the informer's cache by namespace."""

Level = tuple[InForce[Spec], ...]


class Policies(Protocol):
    """The DefensePolicies that are in force."""

    @property
    def filled(self) -> bool:
        """Whether the cache is filled."""

    @property
    def have_steps(self) -> bool:
        """Whether any policy asks for releases in steps."""

    def of(self, namespace: str, labels: Mapping[str, str]) -> InForce[Spec] | None:
        """The policy that applies to a workload with these labels."""


class CachedPolicies:
    """The policies in a cache. The policies of a namespace are sorted once after each change."""

    def __init__(self, informer: Informer[Policy], system_namespace: str) -> None:
        self._informer = informer
        self._system_namespace = system_namespace
        self._levels: dict[str, Level] = {}
        self._have_steps: bool | None = None
        informer.add_index(NAMESPACE, lambda policy: (policy.metadata.namespace,))
        informer.add_handler(self._changed)

    @property
    def filled(self) -> bool:
        return self._informer.synced

    @property
    def have_steps(self) -> bool:
        if self._have_steps is None:
            found = (each.in_force for each in self._informer.all())
            self._have_steps = any(each is not None and each.spec.rollout is not None for each in found)
        return self._have_steps

    def of(self, namespace: str, labels: Mapping[str, str]) -> InForce[Spec] | None:
        return applying((self._level(namespace), self._level(self._system_namespace)), labels)

    def _level(self, namespace: str) -> Level:
        if not self._informer.has_namespace(namespace):
            return ()
        found = self._levels.get(namespace)
        if found is None:
            policies = self._informer.by_index(NAMESPACE, namespace)
            found = ranked(each.in_force for each in policies if each.in_force is not None)
            self._levels[namespace] = found
        return found

    def _changed(self, old: Policy | None, new: Policy | None) -> None:
        self._have_steps = None
        for each in (old, new):
            if each is not None:
                self._levels.pop(each.metadata.namespace, None)
