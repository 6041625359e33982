"""`altershield why` suggests the requests that the reconciler carries out, in every state of a release."""

import pytest

from altershield.api.workload_requests import Result, Verb
from altershield.views.releases.model import Release, StoredRelease
from altershield.views.why.explanation import Facts, proposed

from .test_requests import TABLE, Make, passed
from .world import World

_VERBS = {verb.lower(): verb for verb in Verb}


def suggested(world: World) -> list[Verb]:
    """The requests that `altershield why` suggests about the present release of the world."""
    found = [Release(world.workload, StoredRelease(each, b"")) for each in world.releases.values()]
    words = [each.command.split() for each in proposed(Facts(found, (), (), (), world.now), "altershield")]
    return [
        Verb.PROMOTE_FULL if "--full" in each else _VERBS[each[1]]
        for each in words
        if each[0] == "altershield" and each[1] in _VERBS
    ]


@pytest.mark.parametrize("make", [pytest.param(make, id=make.__name__) for make in TABLE])
def test_each_suggested_request_works_and_each_that_works_is_suggested(kind: str, make: Make) -> None:
    works = {verb for verb, (result, _, _) in TABLE[make].items() if result == Result.DONE}
    if make is passed:
        works.remove(Verb.ROLLBACK)  # it works, but nothing is to be done about a release that passed
    found = suggested(make(kind))
    assert set(found) == works
    assert len(found) == len(works), "each is suggested once"
