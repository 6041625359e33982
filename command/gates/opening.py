"""Waits until workloads may be released, for `altershield wait --for=open`."""

import asyncio
import sys
from collections.abc import Sequence

from altershield.views.gates.documents import answer_list
from altershield.views.gates.reading import Asked
from altershield.views.selection import Selection
from command.gates.command import asked, explained, named_one
from command.output import Format, write
from command.status.exit_codes import EXIT_UNDER_WAY
from kube_base.access.client import Client
from kube_base.access.server_clock import ServerClock
from kube_base.times import unix

OPEN = "open"
"""The value of `--for`."""

_AGAIN = 30.0  # seconds: a person may open a gate at any time
_SOON = 1.0


async def wait_until_open(
    context: str | None,
    kubeconfig: str | None,
    namespace: str,
    selections: Sequence[Selection],
    limit: float | None,
    output: Format | None,
) -> int:
    """Ask until each workload may be released. The exit code is 4 after `limit` seconds, else 0. With `output`, stdout
    has only the last answers."""
    clock, told = ServerClock(), sys.stdout if output is None else sys.stderr
    async with await Client.connect(kubeconfig, context=context) as client:
        client.on_date(clock.update)
        where = namespace or client.namespace
        said: list[Asked] = []
        try:
            async with asyncio.timeout(limit):
                while True:
                    found = [await asked(client, named_one([each]), where, clock()) for each in selections]
                    for each in found:
                        if each not in said:
                            print("\n".join(explained(each, clock())), file=told, flush=True)
                    said = found
                    if all(each.verdict.allowed for each in found):
                        break
                    await asyncio.sleep(_pause(found, clock()))
            code = 0
        except TimeoutError:
            code = EXIT_UNDER_WAY
    if output is not None:
        write(answer_list(said), output)
    return code


def _pause(found: Sequence[Asked], now: float) -> float:
    """Seconds until the next question: the workloads may be released then, or a person may have opened a gate."""
    edges = [unix(each.verdict.opens_at) - now for each in found if each.verdict.opens_at]
    return min(_AGAIN, max(_SOON, min(edges, default=_AGAIN)))
