"""The steps of a release, and how many pods have the new version in each of them. Pure functions.

Every step but the last one is held. In the last one, the user's own strategy is in force, and replaces all pods. Steps
have the same numbers whatever the replicas are, because a workload may be scaled in the middle of a release.

How many pods a step with a `nodeSelector` has depends on the nodes: here it has 0, and it is never skipped.
"""

import msgspec

from altershield.api.amounts import scaled
from altershield.api.rollout import Rollout, Step

_ALL = "100%"


AT_ONCE = Rollout(pods=(_ALL,), soak_seconds=0)
"""One step with all pods: of a release that waits for a gate, and for which no policy asks for steps."""


def of_kind(rollout: Rollout, *, evicts: bool) -> Rollout | None:
    """The steps of a workload of one kind: each has either `pods` or a `node_selector`. None: it has no step. `evicts`:
    whether AlterShield evicts the old pods (`Adapter.evicts`), and so can choose their nodes."""
    if not any(each.node_selector for each in rollout.steps):
        return rollout
    found = (
        msgspec.structs.replace(each, pods=None)
        if evicts and each.node_selector
        else msgspec.structs.replace(each, node_selector={})
        for each in rollout.steps
    )
    kept = tuple(each for each in found if each.node_selector or each.pods is not None)
    return msgspec.structs.replace(rollout, steps=kept) if kept else None


def steps_of(rollout: Rollout) -> tuple[Step, ...]:
    """The steps, the last one with all pods. A last step that the policy does not name has no soak: a release that has
    succeeded goes on counting failures until it has settled."""
    found = rollout.all_steps
    return found if found and found[-1].pods == _ALL else (*found, Step(_ALL, 0))


def is_last(rollout: Rollout, number: int) -> bool:
    """Whether this is the number of the last step, counted from 1."""
    return number >= len(steps_of(rollout))


def step_pods(rollout: Rollout, number: int, replicas: int) -> int:
    """How many pods have the new version in this step. Shares are rounded up."""
    step = steps_of(rollout)[number - 1]
    return min(scaled(step.pods, replicas, round_up=True) or 0, replicas) if step.pods is not None else 0


def next_step(rollout: Rollout, number: int, replicas: int) -> int:
    """The number of the step after this one. A held step that has no more pods than an earlier one is skipped, with its
    soak and its approval. 0 as `number`: the first step."""
    reached = max((step_pods(rollout, each, replicas) for each in range(1, number + 1)), default=0)
    for following in range(number + 1, len(steps_of(rollout))):
        if selects_nodes(rollout, following) or step_pods(rollout, following, replicas) > reached:
            return following
    return len(steps_of(rollout))


def first_step(rollout: Rollout, at_least: int, replicas: int) -> int:
    """The number of the step with which a release begins. `at_least`: the pods that an earlier held release may have
    had."""
    return step_with(rollout, at_least, replicas) if at_least else next_step(rollout, 0, replicas)


def selects_nodes(rollout: Rollout, number: int) -> bool:
    """Whether this step has the pods on some nodes, whatever their number."""
    return bool(steps_of(rollout)[number - 1].node_selector)


def step_with(rollout: Rollout, pods: int, replicas: int) -> int:
    """The number of the first held step with at least so many pods, or with a `nodeSelector`; the last held step if
    there is none, and the last step if no step is held. A release that replaces one that had come further begins with
    it."""
    held = range(1, len(steps_of(rollout)))
    enough = (each for each in held if selects_nodes(rollout, each) or step_pods(rollout, each, replicas) >= pods)
    return next(enough, max(held, default=1))
