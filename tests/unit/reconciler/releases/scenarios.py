"""Workloads in typical states, and constants of the tests of releases."""

import pytest

from altershield.api.change_workload import WorkloadState
from altershield.api.condition_types import ConditionType

from .world import KINDS, SimPod, World, fingerprint

RUNNING, SUCCESS, SUSPEND = WorkloadState.RUNNING, WorkloadState.SUCCESS, WorkloadState.SUSPEND
FAILED, ROLLBACK = WorkloadState.FAILED, WorkloadState.ROLLBACK
VERIFIED, SETTLED, STALLED = ConditionType.VERIFIED, ConditionType.SETTLED, ConditionType.STALLED
NO_REPLICAS, ROLLED_BACK = ConditionType.NO_REPLICAS, ConditionType.ROLLED_BACK

each_kind = pytest.mark.parametrize("kind", KINDS)


def first_release(kind: str, **world: float) -> World:
    """The first release of a workload, before any pod exists."""
    made = World(kind, **world)  # type: ignore[arg-type]
    made.release("v1")
    made.rest()
    return made


def second_release(kind: str, count: int = 1, **world: float) -> tuple[World, list[SimPod]]:
    """Release v2 of a workload whose v1 passed and still serves. `count` pods of v2 exist and are not up."""
    made = World(kind, **world)  # type: ignore[arg-type]
    made.roll_out("v1")
    made.release("v2")
    made.rest()
    pods = made.make(count)
    made.rest()
    return made, pods


def is_restored(world: World, image: str = "v1") -> bool:
    """Whether the workload is back at this image and its version."""
    return world.image == image and world.version == fingerprint(image)


def serving(kind: str, replicas: int, image: str = "v1") -> World:
    """A workload whose release of this image passed and settled."""
    world = World(kind, replicas=replicas)
    world.roll_out(image)
    return world


def release_bad(world: World, image: str) -> SimPod:
    """Release an image whose first pod never comes up."""
    world.release(image)
    world.rest()
    (pod,) = world.make(1)
    world.touch(pod.wait_for_image())
    return pod


def is_over(world: World, image: str) -> bool:
    """Whether the release was rolled back or suspended."""
    return world.image != image or world.state() == SUSPEND
