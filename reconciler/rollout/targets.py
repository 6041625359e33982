"""How many pods have the version in a step, and the hold that lets them have it. Pure functions."""

from dataclasses import dataclass

from altershield.api.rollout import Phase, RolloutStatus
from altershield.rollout.steps import selects_nodes, step_pods
from altershield.workloads.hold import Hold
from reconciler.rollout.node_sets import NO_NODES, NodeSet
from reconciler.rollout.view import View


@dataclass(frozen=True, slots=True)
class NewHold:
    """The hold that the workload should have: what of the annotation changes."""

    version: str
    pods: int
    replicas: int
    surge: bool


def nodes_of(view: View, number: int) -> NodeSet:
    """The nodes that this step and those before it select."""
    return view.node_sets[number - 1] if number <= len(view.node_sets) else NO_NODES


def lacks_nodes(view: View, number: int) -> bool:
    """Whether no node that this step selects can have a pod of the version. A misspelt label looks the same, so the
    step is not skipped: without it, all nodes would get the version at once."""
    return selects_nodes(view.rollout, number) and not nodes_of(view, number).own


def target_of(view: View, number: int) -> int:
    """How many pods have the version in this step: those of an earlier held release count, too."""
    target = max(step_pods(view.rollout, number, view.replicas), nodes_of(view, number).pods)
    if view.hold is not None:
        target = max(target, min(view.hold.at_least, view.replicas))
    return min(target, view.reach)


def new_hold_of(view: View, hold: Hold, known: RolloutStatus, target: int) -> NewHold | None:
    """The hold that the workload should have now; None if it has it.

    Within a step, the number of pods rises as new pods come up, and never falls, unless the workload is scaled: fewer
    replicas may lack fewer pods at once. While the pods soak, scaling gives the version its share of the pods, and no
    further pod is replaced.
    """
    if known.phase == Phase.HELD and not hold.pods:
        return None
    # the last pod of a version that failed goes, too: else it is kept beside all new ones; those of a good base stay
    is_replaced = view.at_once is not None and view.replaced_first > 0 and hold.at_least >= view.replicas <= view.up
    surge, pods = hold.surge and not view.surge_refused and not is_replaced, hold.pods
    most = target if view.at_once is None else min(target, view.at_once + view.up)
    if known.phase in (Phase.ROLLING, Phase.VERIFYING):
        if not known.held_by and not view.waiting:
            pods = max(pods, most)
    elif view.replicas != hold.replicas:
        pods = max(pods, min(view.pods, most))
    # old pods would make room for those that were above the replicas, or for those of more replicas
    if (hold.surge and not surge) or view.replicas != hold.replicas:
        pods = min(pods, most)
    pods = max(1, min(pods, target)) if target else pods
    wanted = NewHold(view.version, pods, view.replicas, surge)
    present = NewHold(hold.version, hold.pods, hold.replicas, hold.surge)
    return wanted if (wanted != present or not view.follows) and view.replicas else None
