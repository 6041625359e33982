"""The disruption that a request asks for, and the possible steps of the decision about it (`decision.step`)."""

from typing import NamedTuple

import msgspec

from altershield.api.budgets import Operation, PodUnavailableBudget
from altershield.budgets.changes import NO_CHANGES, Changes
from altershield.budgets.pods import Pod
from altershield.workloads.meta import Owner


class Disruption(msgspec.Struct, frozen=True, gc=False):
    """A request that disrupts a pod."""

    operation: Operation
    """For an update: UPDATE or RESIZE. Which of the two it is depends on the budget, so each budget determines it."""
    pod: Pod
    """The pod before the request."""
    by: str
    """The user."""
    break_glass: bool = False
    """The user is in the group for emergencies, so no budget refuses the request."""
    dry_run: bool = False
    changes: Changes = NO_CHANGES
    """For an update."""
    generation: int = 0
    """For an update: the generation of the pod after the request."""
    restarts: tuple[str, ...] = ()
    """For a RESTART: the names of the containers."""
    request_name: str = ""
    """For a RESTART: the name of the ContainerRecreateRequest."""
    container_ids: tuple[tuple[str, str], ...] = ()
    """For a RESTART: names of containers with their ids before the restart, as far as the request has them."""


class Passed(NamedTuple):
    warnings: tuple[str, ...] = ()
    broken_glass: bool = False
    """A budget would have refused the request, but the user is in the group for emergencies."""
    only_warned: bool = False
    """A budget would have refused the request, but it has the mode Warn."""
    covered: bool = False
    """A budget protects the pod from this operation."""


class Refused(NamedTuple):
    message: str
    warnings: tuple[str, ...] = ()
    by_pdb: bool = False
    """A PodDisruptionBudget allows no eviction of the pod."""


class ReadOwners(NamedTuple):
    """Read these objects live, then decide again."""

    owners: tuple[Owner, ...]


class AwaitPods(NamedTuple):
    """Wait until the watch has brought the pods of `budget` up to `version`, or list them. Then decide again."""

    budget: PodUnavailableBudget
    version: int


class Reserve(NamedTuple):
    """Store a record of the request in this budget, then decide again."""

    budget: PodUnavailableBudget


Step = Passed | Refused | ReadOwners | AwaitPods | Reserve
