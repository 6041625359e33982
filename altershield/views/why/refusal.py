"""Who refuses the deletion or the eviction of a pod, from the answers of the API server. Pure functions."""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

from altershield.api.schema import doc
from altershield.views import permission
from altershield.views.document import Document, Part
from altershield.views.names import printable
from kube_base.access.errors import ApiError, ForbiddenError, InvalidError

_WEBHOOK = re.compile(r'admission webhook "([^"]+)" denied the request(?:: (.*))?', re.DOTALL)
_POLICY = re.compile(r"ValidatingAdmissionPolicy '([^']+)' with binding '[^']+' denied request: (.*)", re.DOTALL)
_UNANSWERED = re.compile(r'failed calling webhook "([^"]+)"')
_OURS = re.compile(r"((?:PodUnavailableBudget|PodDeletionFlowControl) [a-z0-9.-]*[a-z0-9])")
_PDB_BY_GATEKEEPER = re.compile(r"the pod's disruption budget ([a-z0-9.-]*[a-z0-9])")
_PDB = re.compile(r"The disruption budget ([a-z0-9.-]*[a-z0-9]) ")
_WIDTH = 11


class Outcome(StrEnum):
    ALLOWED = "allowed"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """The API server did not ask whoever may refuse."""


class Answer(Part, frozen=True):
    """What the API server says about a request that changes nothing."""

    outcome: Annotated[Outcome, doc("`unknown`: the API server did not ask whoever may refuse.")]
    by: Annotated[str, doc("The object and the webhook that refuse; may be empty.")]
    message: Annotated[str, doc("The reason; may be empty.")]
    warnings: Annotated[tuple[str, ...], doc("The warnings of the answer.")]


class PodExplanation(Document, frozen=True):
    """Whether a pod could be deleted and evicted now by this user, and who refuses."""

    namespace: Annotated[str, doc("The namespace of the pod.")]
    name: Annotated[str, doc("The name of the pod.")]
    deletion: Annotated[Answer, doc("The answer to a deletion.")]
    eviction: Annotated[Answer, doc("The answer to an eviction.")]


def answer(error: ApiError | None, warnings: Sequence[str]) -> Answer:
    """Read an answer. None: the request would pass."""
    if error is None:
        return Answer(Outcome.ALLOWED, "", "", tuple(warnings))
    outcome, by, message = _refusal(error)
    return Answer(outcome, by, message, tuple(warnings))


def _refusal(error: ApiError) -> tuple[Outcome, str, str]:
    text = str(error)
    if found := _WEBHOOK.search(text):
        webhook, message = found[1], found[2] or "it gives no reason"
        return Outcome.REFUSED, _by_webhook(webhook, message), message
    if found := _POLICY.search(text):
        return Outcome.REFUSED, f"ValidatingAdmissionPolicy {found[1]}", found[2]
    if found := _UNANSWERED.search(text):
        return Outcome.REFUSED, f"webhook {found[1]}, which does not answer", text
    causes = error.details.get("causes") or ()
    message = next((each.get("message", "") for each in causes if each.get("reason") == "DisruptionBudget"), None)
    if error.code == 429 and message is not None:
        found = _PDB.search(message)
        return Outcome.REFUSED, f"PodDisruptionBudget {found[1]}" if found else "a PodDisruptionBudget", message or text
    if permission.is_missing(error):
        return Outcome.UNKNOWN, "", f"you may not do this, so nobody else was asked: {text}"
    if isinstance(error, ForbiddenError | InvalidError) or "more than one PodDisruptionBudget" in text:
        return Outcome.REFUSED, "the API server", text
    return Outcome.UNKNOWN, "", text


def _by_webhook(webhook: str, message: str) -> str:
    if found := _OURS.match(message):
        return f"{found[1]} (webhook {webhook})"
    if found := _PDB_BY_GATEKEEPER.search(message):
        return f"PodDisruptionBudget {found[1].rstrip('.')} (webhook {webhook})"
    return f"webhook {webhook}"


def explain_pod(of: PodExplanation) -> list[str]:
    """The lines about a pod."""
    first = f"pod/{of.name} in namespace {of.namespace}"
    return [printable(line) for line in (first, *_lines("Deletion:", of.deletion), *_lines("Eviction:", of.eviction))]


def _lines(title: str, answer: Answer) -> list[str]:
    by = f" by {answer.by}" if answer.by else ""
    more = [*([answer.message] if answer.message else ()), *(f"Warning: {each}" for each in answer.warnings)]
    return [f"{title:{_WIDTH}}{answer.outcome}{by}", *(f"{'':{_WIDTH}}{line}" for line in more)]
