"""The requests that `altershield why` suggests."""

from altershield.api.workload_requests import Verb
from altershield.views.releases.model import Release, StoredRelease
from altershield.views.why.explanation import Facts, proposed

from .world import World

_VERBS = {verb.lower(): verb for verb in Verb}


def suggested(world: World) -> list[Verb]:
    """Those about the present release of the world."""
    found = [Release(world.workload, StoredRelease(each, b"")) for each in world.releases.values()]
    words = [each.command.split() for each in proposed(Facts(found, (), (), (), world.now), "altershield")]
    return [
        Verb.PROMOTE_FULL if "--full" in each else _VERBS[each[1]]
        for each in words
        if each[0] == "altershield" and each[1] in _VERBS
    ]
