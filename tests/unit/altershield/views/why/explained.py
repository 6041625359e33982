"""The lines of `altershield why` about releases, for tests."""

from collections.abc import Sequence

from altershield.api.change_pod import ChangePod
from altershield.gates.release import Closed
from altershield.views.releases.model import Release
from altershield.views.why.advice import accesses, advice
from altershield.views.why.explanation import Facts, explanation, proposed
from altershield.views.why.model import ReleaseExplanation
from altershield.views.why.text import lines
from altershield.workloads.pods import Pod


def explained(facts: Facts, program: str = "altershield") -> ReleaseExplanation:
    """The explanation for a user who may do everything."""
    proposals = proposed(facts, program)
    return explanation(facts, advice(proposals, dict.fromkeys(accesses(proposals), True), "ann"))


def explain(
    found: Sequence[Release],
    batches: Sequence[ChangePod],
    now: float,
    program: str = "altershield",
    blocking: Sequence[Pod] = (),
    closed: Sequence[Closed] = (),
) -> list[str]:
    """The lines for a user who may do everything."""
    return lines(explained(Facts(found, batches, blocking, closed, now), program))
