"""The input of a decision about a release in steps."""

from dataclasses import dataclass

from altershield.api.rollout import Rollout, WaitingFor
from altershield.rollout.waits import NO_WAITS, Waits
from altershield.workloads.hold import Hold
from altershield.workloads.pods import Pod
from reconciler.rollout.node_sets import NodeSet


@dataclass(frozen=True, slots=True)
class View:
    """A release in steps, its workload and its pods."""

    rollout: Rollout
    version: str
    replicas: int
    reach: int
    """How many pods the user's own strategy lets the release reach: a partition may keep others at the old version."""
    hold: Hold | None
    """The hold in force, by the annotation of the workload; None if there is none."""
    at_once: int | None
    """How many pods may get the version before one of them is available, by the user's own strategy; None: the
    workload's controller sees to that. With the hold's rule about pods above the replicas."""
    pods: int
    """The pods of the version that exist."""
    older: int
    """The pods of other versions that exist."""
    up: int
    """The pods of the version that are available by the user's own `minReadySeconds`, without a restart since."""
    passed: int
    complete: bool
    """Whether all pods that the hold allows, or that the release is to reach in its last step, are up and passed."""
    failed: bool
    """Whether the release failed."""
    oldest: int = 0
    """In a soak: when the first of the verified pods was created, Unix seconds."""
    steady: int = 0
    """In a soak: since when the verified pod is ready that is ready for longest, Unix seconds."""
    waiting: tuple[WaitingFor, ...] = ()
    """Why no further pod gets the version now, apart from a person's hold."""
    waits: Waits = NO_WAITS
    """What the release waits for before its steps."""
    gates: tuple[str, ...] = ()
    """The gates that are closed for the next step: KIND NAMESPACE/NAME."""
    opens_at: float | None = None
    """When the first of these gates opens, Unix seconds; None: it is not known."""
    checks_said: str = ""
    """What the checks said for which the step waits; empty if none has a result."""
    let_go: str = ""
    """Why no release is held in steps any more; empty: they are held."""
    follows: bool = True
    """Whether the held fields of the workload have the values of the hold."""
    surge_refused: bool = False
    """Whether a quota refuses pods above the replicas, and the user's own strategy does without them."""
    replaced_first: int = 0
    """The old pods that are replaced before all others: of versions that were held before, or of a base that failed."""
    evictable: tuple[Pod, ...] = ()
    """The old pods that may be evicted now, for a kind whose controller replaces none while it is held."""
    evictable_at: float | None = None
    """When another old pod is available, so that further ones may be evicted, Unix seconds; None if none waits."""
    lost_nodes: tuple[str, ...] = ()
    """The nodes that are not ready and have pods of the version, if all other pods of the version have passed."""
    kept_nodes: tuple[str, ...] = ()
    """The nodes that are not ready and keep old pods, if nothing else is left to do before further pods are replaced.
    Only for a kind whose controller replaces no pod while it is held."""
    terminating: tuple[str, ...] = ()
    """The pods that keep others from being created because they are terminating, once the release is stalled by
    them."""
    trouble: str = ""
    """Why pods of the version are missing or not up, as a condition says it; empty if none says so."""
    node_sets: tuple[NodeSet, ...] = ()
    """The nodes of each step; empty if no step selects nodes."""
