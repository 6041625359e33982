"""Other controllers that release a workload, by its owners, labels and annotations. Pure functions."""

from collections.abc import Iterable

from kube_base.meta import OwnerReference

_MAX_NAME = 253

_DOMAINS = {
    "rollout.argoproj.io": "Argo Rollouts",
    "rollouts.argoproj.io": "Argo Rollouts",
    "argo-rollouts.argoproj.io": "Argo Rollouts",
    "flagger.app": "Flagger",
    "rollouts.kruise.io": "Kruise Rollouts",
}
"""Controllers that release in steps themselves, by the domain of their labels and annotations. A domain below one of
these counts too."""


def other_releaser(owners: Iterable[OwnerReference], keys: Iterable[str]) -> str:
    """Which other controller releases a workload, as a sentence; empty if none is known. `keys`: those of its labels
    and annotations."""
    for owner in owners:
        if owner.controller:
            return f"{owner.kind} {owner.name} controls it"[:_MAX_NAME]
    for key in keys:
        domain, slash, _ = key.rpartition("/")
        if slash and (found := _of_domain(domain)):
            return f"{found} releases it"
    return ""


def _of_domain(domain: str) -> str:
    while domain:
        if domain in _DOMAINS:
            return _DOMAINS[domain]
        domain = domain.partition(".")[2]
    return ""
