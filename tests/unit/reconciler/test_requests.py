"""What a person's request does, in every state of a release."""

from altershield.api.kinds import Action, Result, Verb
from altershield.api.ops_config import Settings

from .scenarios import (
    ROLLBACK,
    SUCCESS,
    SUSPEND,
    each_kind,
    first_release,
    second_release,
)
from .world import World


def suspended(kind: str = "Deployment") -> World:
    """A release that a person failed; its pods are up."""
    world = first_release(kind)
    pods = world.roll_out("v1")
    world.judge(pods[0], "unpass")
    world.rest()
    assert (world.state(), world.suspended) == (SUSPEND, True)
    return world


def not_started(kind: str = "Deployment") -> World:
    """A second release whose pod did not come up in time. It is not rolled back, so it is suspended."""
    world, _ = second_release(kind)
    world.settings = Settings(rollback=False)
    world.run(121)
    world.settings = Settings()
    assert (world.state(), world.suspended) == (SUSPEND, True)
    return world


def write_refused(kind: str = "Deployment") -> World:
    """A rollback that the API server refuses."""
    world, _ = second_release(kind)
    world.write_refused = "a policy"
    world.run(121)
    assert (world.state(), world.suspended) == (ROLLBACK, True)
    return world


def ask(world: World, verb: Verb, *, to: str = "", image: str = "") -> Action:
    """Ask, and return the answer."""
    world.request(verb, to=to, image=image)
    for _ in range(5):
        world.reconcile()
        if world.status(image).request is None:
            break
    answer = world.status(image).actions[-1]
    assert (answer.verb, answer.by, answer.reason) == (verb, "alice", "seen")
    assert world.status(image).request is None
    return answer


@each_kind
def test_approve_of_a_failed_verdict_ends_the_suspension_and_the_release_succeeds(kind: str) -> None:
    world = suspended(kind)
    answer = ask(world, Verb.APPROVE)
    assert answer.result == Result.DONE
    assert not world.suspended
    world.rest()
    assert (world.state(), world.suspended) == (SUCCESS, False)
    (batch,) = [each for each in world.batches.values() if each.status.pod_results]
    (result,) = batch.status.pod_results
    assert (result.verdict, result.by, result.message) == ("pass", "alice", "approved by alice: seen")
