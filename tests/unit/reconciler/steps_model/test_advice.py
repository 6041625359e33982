"""`altershield why` suggests only promotions and holds that the reconciler carries out, at each moment of a release."""

import copy
from collections.abc import Iterator

import pytest

from altershield.api.rollout import Phase, Rollout, Step
from altershield.api.workload_requests import Action, Result, Verb
from altershield.releases import steps
from tests.unit.reconciler.releases.suggested import suggested

from .cluster import Cluster, spec_of, with_second_version

ROLLOUT = Rollout(steps=(Step(1, 20), Step("50%", 20, approval=True)))
_EVERY = 4.0  # seconds


def moments(world: Cluster, image: str) -> Iterator[Cluster]:
    """The world at each moment of a release, in which a person promotes it where it waits, and holds it once."""
    world.release(image)
    world.on_release(image)
    held = False
    for _ in range(60):
        world.go_on(_EVERY)
        yield world
        if steps.waits_for_person(world.steps_status):
            world.request(Verb.PROMOTE)
        elif not held and world.steps_status.step == 1:
            held = True
            world.request(Verb.HOLD)


def answer(world: Cluster, verb: Verb) -> Action:
    """The answer of a copy of this world to a request about the present version."""
    tried, own = copy.deepcopy(world), world.image
    tried.request(verb, image=own)
    tried.go_on(10.0)
    return [each for each in tried.status(own).actions if each.verb == verb][-1]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
@pytest.mark.parametrize("image", ["good-3", "bad-3", "dud-3"])
def test_each_suggested_request_works(kind: str, image: str) -> None:
    own = spec_of(kind, 1, 0, 0, parallel=False)
    world = with_second_version(kind, own, replicas=4, rollout=ROLLOUT, observe=2, seconds=300.0)
    seen = set()
    for moment in moments(world, image):
        found = set(suggested(moment))
        if steps.waits_for_person(moment.steps_status):
            assert {Verb.PROMOTE, Verb.PROMOTE_FULL} <= found
        for verb in found:
            told = answer(moment, verb)
            assert told.result == Result.DONE, (moment.steps_status, told)
            seen.add((moment.steps_status.phase, verb))
    phases = {phase for phase, _ in seen}
    assert phases >= ({Phase.ROLLING} if image == "dud-3" else {Phase.ROLLING, Phase.VERIFYING, Phase.SOAKING})
