"""The page of a workload: the state of its release, the reason for it, and what to do."""

from typing import Any

from altershield.views.finding import only
from altershield.views.selection import parse
from altershield.views.why.model import Advice, ReleaseExplanation
from altershield.views.why.reading import explain
from kube_base.access.client import Client

_GOOD, _BAD = ("Success",), ("Suspend", "Failed", "Rollback")


async def page(client: Client, namespace: str, kind: str, name: str, system_namespace: str) -> dict[str, Any]:
    """What the template gets. StatusError: there is no such workload, or it has no release. UsageError: AlterShield
    does not know this kind, or no workload can have the name."""
    selection = only(parse([f"{kind}/{name}"]))
    found = await explain(client, namespace, selection, system_namespace, "altershield")
    explanation = found.explanations[0]
    return {
        "of": explanation,
        "look": "good" if explanation.state in _GOOD else "bad" if explanation.state in _BAD else "plain",
        "own": [each for each in explanation.advice if each.allowed is not False],
        "others": _others(explanation),
    }


def _others(explanation: ReleaseExplanation) -> list[tuple[str, str, list[Advice]]]:
    """What others may do: the role, its namespace, and the commands."""
    refused = [each for each in explanation.advice if each.allowed is False]
    who = dict.fromkeys((each.role, each.role_namespace) for each in refused)
    return [
        (role, namespace, [each for each in refused if (each.role, each.role_namespace) == (role, namespace)])
        for role, namespace in who
    ]
