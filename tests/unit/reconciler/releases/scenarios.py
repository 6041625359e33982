"""Workloads in typical states, and constants of the tests of releases."""

from altershield.api.change_workload import WorkloadState
from altershield.api.condition_types import ConditionType

from .world import SimPod, World, fingerprint

RUNNING, SUCCESS, SUSPEND = WorkloadState.RUNNING, WorkloadState.SUCCESS, WorkloadState.SUSPEND
FAILED, ROLLBACK = WorkloadState.FAILED, WorkloadState.ROLLBACK
VERIFIED, SETTLED, STALLED = ConditionType.VERIFIED, ConditionType.SETTLED, ConditionType.STALLED
NO_REPLICAS, ROLLED_BACK = ConditionType.NO_REPLICAS, ConditionType.ROLLED_BACK


def first_release(kind: str, **world: float) -> World:
    """The first release of a workload, before any pod exists."""
    made = World(kind, **world)  # type: ignore[arg-type]
    made.begin("v1")
    return made


def first_release_up(kind: str, count: int = 3, **world: float) -> tuple[World, list[SimPod]]:
    """The first release of a workload, and its pods, which came up just now."""
    made = first_release(kind, **world)
    return made, made.make_up(count)


def second_release(kind: str, count: int = 1, **world: float) -> tuple[World, list[SimPod]]:
    """Release v2 of a workload whose v1 passed and still serves. `count` pods of v2 exist and are not up."""
    made = World(kind, **world)  # type: ignore[arg-type]
    made.roll_out("v1")
    made.begin("v2")
    pods = made.make(count)
    made.rest()
    return made, pods


def is_restored(world: World, image: str = "v1") -> bool:
    """Whether the workload is back at this image and its version."""
    return world.image == image and world.version == fingerprint(image)


def assert_rolled_back_after(world: World, seconds: float) -> None:
    """The release v2 is rolled back after `seconds`, and not before."""
    world.run(seconds - 1)
    assert world.image == "v2"
    world.run(1)
    assert is_restored(world)


def serving(kind: str, replicas: int, image: str = "v1") -> World:
    """A workload whose release of this image passed and settled."""
    world = World(kind, replicas=replicas)
    world.roll_out(image)
    return world


def release_bad(world: World, image: str) -> SimPod:
    """Release an image whose first pod never comes up."""
    world.begin(image)
    (pod,) = world.make(1)
    world.touch(pod.wait_for_image())
    return pod


def is_over(world: World, image: str) -> bool:
    """Whether the release was rolled back or suspended."""
    return world.image != image or world.state() == SUSPEND
