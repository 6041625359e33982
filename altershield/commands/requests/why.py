"""`altershield why`: one screen about a workload."""

import asyncio
import time
from collections.abc import Sequence

import typer

from altershield import releases
from altershield.api import labels
from altershield.api.kinds import ChangePod
from altershield.api.names import change_workload_of
from altershield.api.resources import CHANGE_PODS
from altershield.commands.namespace_option import Namespace, require_namespace
from altershield.commands.requests import finding
from altershield.commands.requests.command import Workload
from altershield.commands.requests.explanation import explain
from altershield.commands.status.exit_codes import exit_code
from altershield.commands.status.reading import Reader
from altershield.commands.status.snapshot import Release, demand, outcomes, shown
from altershield.commands.status.targets import parse
from altershield.kube.client import Client
from altershield.kube.errors import ForbiddenError
from altershield.process import options


def why(
    workload: Workload,
    namespace: Namespace = "",
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Explain the state of a workload's release: since when, why, which check and which pods, who decided what, and
    what to do, with commands to paste.

    The exit code is that of `altershield status`: 3 if the release is suspended, 4 if it is under way, 5 if it was
    rolled back, else 0.
    """
    require_namespace(namespace)
    target = finding.only(parse([workload]))

    async def run() -> int:
        async with await Client.connect(kubeconfig, context=context) as client:
            where = namespace or client.namespace
            snapshot = await Reader(client, where, [target]).read()
            demand(snapshot, [target], where)
            found = [each for each in shown(snapshot) if each.workload.metadata.name == target.name]
            for uid in dict.fromkeys(each.workload.metadata.uid for each in found):
                own = [each for each in found if each.workload.metadata.uid == uid]
                print("\n".join(explain(own, await _batches(client, own), time.time())))
            return exit_code(outcomes(snapshot))

    raise typer.Exit(asyncio.run(run()))


async def _batches(client: Client, found: Sequence[Release]) -> list[ChangePod]:
    """The ChangePods of the present release."""
    present = next((each for each in found if each.present and each.stored is not None), None)
    if present is None or present.stored is None:
        return []
    metadata = present.stored.metadata
    selector = f"{labels.VERSION}={releases.version(present.stored.release)}"
    try:
        listed = await client.list(CHANGE_PODS, metadata.namespace, as_=ChangePod, label_selector=selector)
    except ForbiddenError:
        return []
    return [each for each in listed.items if change_workload_of(each.metadata.name) == metadata.name]
