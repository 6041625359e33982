"""The gates, and the order in which they judge.

To add one: a file with a pure function `(Change, View) -> Opinion`, and its place in a list below.
"""

from altershield.install.webhooks import MUTATING, VALIDATING, Webhook
from gatekeeper.gates.bypass import BYPASSES
from gatekeeper.gates.inheritance import inherit
from gatekeeper.gates.opinion import NOTHING, Gate, Opinion
from gatekeeper.gates.ownership import protect
from gatekeeper.gates.rolled_back import deny_rolled_back
from gatekeeper.gates.suspension import deny_suspended
from gatekeeper.gates.template_labels import purge
from gatekeeper.gates.version import stamp
from gatekeeper.patch import patch
from gatekeeper.review import Response, Review
from gatekeeper.view import View

_MUTATING: dict[str, tuple[Gate, ...]] = {
    "CREATE": (stamp, purge, inherit),
    "UPDATE": (stamp, purge, protect),
}
_VALIDATING: dict[str, tuple[Gate, ...]] = {
    "CREATE": (deny_rolled_back,),
    "UPDATE": (deny_suspended, deny_rolled_back),
}

_MUTATING_OUTCOMES = (
    ("patched", "new-version"),
    ("patched", "restored"),
    ("allowed", "new-version"),  # stamped already, as when the webhook is called twice
    ("allowed", "passed"),
)
_VALIDATING_OUTCOMES = (
    ("allowed", "passed"),
    *(("allowed", bypass) for bypass in BYPASSES),
    ("denied", "suspended"),
    ("denied", "rolled-back"),
)
OUTCOMES = {
    **{webhook.name: _MUTATING_OUTCOMES for webhook in MUTATING},
    **{webhook.name: _VALIDATING_OUTCOMES for webhook in VALIDATING},
}
"""Every decision and reason that a webhook's requests can end with, by the webhook's name."""

_PASSED = Response("allowed", "passed")


def decide(webhook: Webhook, review: Review, view: View) -> Response:
    """Ask the gates of `webhook` in their order; the first denial ends it, the first reason names it."""
    change = review.change
    if change is None:
        return _PASSED
    opinions: list[Opinion] = []
    for gate in (_MUTATING if webhook.mutating else _VALIDATING).get(review.operation, ()):
        opinion = gate(change, view)
        if opinion is not NOTHING:
            opinions.append(opinion)
        if opinion.denial is not None:
            break
    if not opinions:
        return _PASSED
    opinion = opinions[0] if len(opinions) == 1 else _together(opinions)
    operations = patch(change.new, opinion.labels, opinion.template_labels)
    return Response(
        "denied" if opinion.denial else "patched" if operations else "allowed",
        opinion.reason,
        operations,
        opinion.warnings,
        opinion.audit,
        opinion.denial,
    )


def _together(opinions: list[Opinion]) -> Opinion:
    """No two gates speak of one label."""
    wanted: dict[str, str | None] = {}
    template_wanted: dict[str, str | None] = {}
    warnings: list[str] = []
    audit: dict[str, str] = {}
    for opinion in opinions:
        wanted.update(opinion.labels)
        template_wanted.update(opinion.template_labels)
        warnings += opinion.warnings
        audit.update(opinion.audit)
    return Opinion(
        wanted, template_wanted, tuple(warnings), audit, denial=opinions[-1].denial, reason=opinions[0].reason
    )
