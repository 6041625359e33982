"""The gates, and the order in which they judge.

To add one: a file with a pure function `(Change, View) -> Opinion`, and its place in a list below.
"""

import msgspec

from altershield.install.webhooks import MUTATING_WEBHOOK, VALIDATING_WEBHOOK
from gatekeeper.gates.bypass import BYPASSES
from gatekeeper.gates.opinion import Gate, Opinion
from gatekeeper.gates.ownership import protect
from gatekeeper.gates.rolled_back import deny_rolled_back
from gatekeeper.gates.suspension import deny_suspended
from gatekeeper.gates.version import stamp
from gatekeeper.patch import patch
from gatekeeper.review import Response, Review
from gatekeeper.view import View

_GATES: dict[tuple[str, str], tuple[Gate, ...]] = {
    (MUTATING_WEBHOOK, "CREATE"): (stamp, protect),
    (MUTATING_WEBHOOK, "UPDATE"): (stamp, protect),
    (VALIDATING_WEBHOOK, "UPDATE"): (deny_suspended, deny_rolled_back),
}


class Decision(msgspec.Struct, frozen=True):
    """The response, and what to call it in metrics and logs (see `OUTCOMES`)."""

    response: Response
    decision: str
    reason: str


OUTCOMES = {
    MUTATING_WEBHOOK: (
        ("patched", "new-version"),
        ("patched", "restored"),
        ("allowed", "new-version"),  # it carries its stamp already
        ("allowed", "unchanged"),
        ("allowed", "untouched"),
    ),
    VALIDATING_WEBHOOK: (
        ("allowed", "new-version"),
        ("allowed", "unchanged"),
        ("allowed", "untouched"),
        *(("allowed", bypass) for bypass in BYPASSES),
        ("denied", "suspended"),
        ("denied", "rolled-back"),
    ),
}
"""Every decision and reason that a webhook's requests can end with. `untouched` are those there is nothing to
decide about: deletions and subresources."""

_UNTOUCHED = Decision(Response(), "allowed", "untouched")


def decide(webhook: str, review: Review, view: View) -> Decision:
    """Ask the gates of `webhook` in their order; the first denial ends it."""
    change = review.change
    if change is None:
        return _UNTOUCHED
    opinions: list[Opinion] = []
    for gate in _GATES.get((webhook, review.operation), ()):
        opinions.append(gate(change, view))
        if opinions[-1].denial is not None:
            break
    wanted: dict[str, str | None] = {}
    template_wanted: dict[str, str | None] = {}
    warnings: list[str] = []
    audit: dict[str, str] = {}
    for opinion in opinions:
        wanted.update(opinion.labels)
        template_wanted.update(opinion.template_labels)
        warnings.extend(opinion.warnings)
        audit.update(opinion.audit)
    denial = opinions[-1].denial if opinions else None
    operations = patch(change.new, wanted, template_wanted)
    decision = "denied" if denial else "patched" if operations else "allowed"
    reason = next((opinion.reason for opinion in reversed(opinions) if opinion.reason), "")
    return Decision(
        Response(patch=operations, warnings=warnings, audit=audit, denial=denial),
        decision,
        reason or ("new-version" if change.template_changed else "unchanged"),
    )
