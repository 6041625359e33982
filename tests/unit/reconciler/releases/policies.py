"""Releases under a DefensePolicy."""

from typing import Any

from altershield.api.policy import AppliedPolicy
from tests.unit.reconciler.releases.world import SimPod, World


def policy(**rules: Any) -> AppliedPolicy:
    return AppliedPolicy(namespace="shop", name="web", generation=1, **rules)


def released(
    kind: str, image: str = "v2", *, pods: int = 1, up: bool = True, rolling: bool = True, **rules: Any
) -> tuple[World, list[SimPod]]:
    """A release under the policy, with its first pods. They are `up` for 30 s, or do not come up. v1 passed
    before v2."""
    world = World(kind)
    world.rolling = rolling
    if image != "v1":
        world.roll_out("v1")
    world.policy = policy(**rules)
    world.begin(image)
    made = world.make(pods)
    if up:
        world.up(*made)
        world.run(30)
    return world, made


def failing(kind: str, image: str = "v2", **rules: Any) -> tuple[World, SimPod]:
    """The same, and a person fails the first pod."""
    world, (pod, *_) = released(kind, image, **rules)
    assert world.judge(pod, "unpass")
    return world, pod


def text(world: World, reason: str) -> str:
    return next(each.message for each in world.announced if each.reason == reason)
