"""The page of a workload: the state of its release, the reason for it, and what to do."""

from typing import Any

from altershield.views.finding import only
from altershield.views.releases.family import mark
from altershield.views.selection import parse
from altershield.views.why.reading import explain
from altershield.views.why.text import others_advice, own_advice
from kube_base.access.client import Client


async def page(client: Client, namespace: str, kind: str, name: str, system_namespace: str) -> dict[str, Any]:
    """What the template gets. StatusError: there is no such workload, or it has no release. UsageError: AlterShield
    does not know this kind, or no workload can have the name."""
    selection = only(parse([f"{kind}/{name}"]))
    found = await explain(client, namespace, selection, system_namespace, "altershield")
    explanation = found.explanations[0]
    return {
        "of": explanation,
        "look": mark(explanation.state) or "plain",
        "own": own_advice(explanation.advice),
        "others": others_advice(explanation.advice),
    }
