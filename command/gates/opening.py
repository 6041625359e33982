"""Waits until workloads may be released, for `altershield wait --for=open`."""

import asyncio
from collections.abc import Sequence

from altershield.views.gates.reading import Verdict
from altershield.views.selection import Selection
from command.gates.command import asked, explained, named_one
from command.status.exit_codes import EXIT_UNDER_WAY
from kube_base.access.client import Client
from kube_base.access.server_clock import ServerClock
from kube_base.times import unix

OPEN = "open"
"""The value of `--for`."""

_AGAIN = 30.0  # seconds: a person may open a gate at any time
_SOON = 1.0


async def wait_until_open(
    context: str | None, kubeconfig: str | None, namespace: str, selections: Sequence[Selection], limit: float | None
) -> int:
    """Ask until each workload may be released. The exit code is 4 after `limit` seconds, else 0."""
    clock = ServerClock()
    async with await Client.connect(kubeconfig, context=context) as client:
        client.on_date(clock.update)
        where = namespace or client.namespace
        said: dict[str, Verdict] = {}
        try:
            async with asyncio.timeout(limit):
                while True:
                    found: dict[str, Verdict] = {}
                    for selection in selections:
                        found |= await asked(client, named_one([selection]), where, clock())
                    for name, verdict in found.items():
                        if said.get(name) != verdict:
                            print("\n".join(explained(name, verdict, clock())), flush=True)
                    said = found
                    if all(each.allowed for each in found.values()):
                        return 0
                    await asyncio.sleep(_pause(found, clock()))
        except TimeoutError:
            return EXIT_UNDER_WAY


def _pause(found: dict[str, Verdict], now: float) -> float:
    """Seconds until the next question: the workloads may be released then, or a person may have opened a gate."""
    edges = [unix(each.opens_at) - now for each in found.values() if each.opens_at]
    return min(_AGAIN, max(_SOON, min(edges, default=_AGAIN)))
