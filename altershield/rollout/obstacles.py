"""Why a release cannot be made in steps, although its policy has some. Gatekeeper and reconciler give the same reason.
Pure functions.

The adapter names the obstacles in the spec of its kind (`Adapter.obstacle`).
"""

from collections.abc import Iterable

from kube_base.meta import OwnerReference

CREATED = "it is created"
NO_REPLICAS = "it has no replicas"
NO_STEPS = "all steps of its policy have a nodeSelector and no pods, which is for DaemonSets"

_OTHERS = {
    "rollout.argoproj.io": "Argo Rollouts",
    "rollouts.argoproj.io": "Argo Rollouts",
    "argo-rollouts.argoproj.io": "Argo Rollouts",
    "flagger.app": "Flagger",
    "rollouts.kruise.io": "Kruise Rollouts",
}
"""Controllers that release in steps themselves, by the domain of their labels and annotations. A domain below one of
these counts too."""


def obstacle(
    *, replicas: int, controller: OwnerReference | None, keys: Iterable[str] = (), created: bool = False
) -> str:
    """Why a release of a workload cannot be made in steps; empty: nothing but its spec may stand against it.
    `controller`: the owner that controls the workload. `keys`: those of its labels and annotations."""
    if created:
        return CREATED
    if replicas <= 0:
        return NO_REPLICAS
    if controller is not None:
        return f"{controller.kind} {controller.name} controls it"
    for key in keys:
        domain, slash, _ = key.rpartition("/")
        if slash and (found := _of_domain(domain)):
            return f"{found} releases it"
    return ""


def _of_domain(domain: str) -> str:
    while domain:
        if domain in _OTHERS:
            return _OTHERS[domain]
        domain = domain.partition(".")[2]
    return ""
