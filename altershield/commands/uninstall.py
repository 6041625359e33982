"""`altershield uninstall`: takes AlterShield out of a cluster, however it came there."""

import asyncio
import functools
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, TextIO

import typer

from altershield.api.resources import NAMESPACES
from altershield.errors import AlterShieldError, UsageError
from altershield.install.inventory import Inventory, Item, find
from altershield.kube.backoff import retry_while_unavailable
from altershield.kube.client import Client
from altershield.kube.errors import ApiError, NotFoundError
from altershield.process import options

_GONE_SECONDS = 60.0  # finalizers, and the records of a kind that goes, take a while
_POLL = 1.0

_KEEPERS = {
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "argocd.argoproj.io/instance": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
}
"""Labels and annotations of tools that put back what is deleted."""


class LeftOverError(AlterShieldError):
    """Something of AlterShield may still be in the cluster."""


def uninstall(
    crds: Annotated[
        bool, typer.Option("--crds", help="Delete the kinds too, and with them the records of all releases.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted.")] = False,
    yes: options.Yes = False,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Take AlterShield out of the cluster, however it was installed; its webhooks first, so that nothing is blocked.

    Deletes what the chart, `altershield dev` and AlterShield itself made, and nothing else. Keeps the records of
    releases (but for --crds), the namespace, and the labels on your namespaces and workloads. What is refused is
    reported, and the rest goes on. Run it as often as you like. Exit code 1 when something is left.
    """
    if not (yes or dry_run or sys.stdin.isatty()):
        raise UsageError("nobody is there to confirm it: say --yes, or see with --dry-run what would be deleted")
    asyncio.run(_run(kubeconfig, context, crds=crds, dry_run=dry_run, yes=yes))


async def _run(kubeconfig: str | None, context: str | None, *, crds: bool, dry_run: bool, yes: bool) -> None:
    async with await Client.connect(kubeconfig, context=context) as client:
        await take_out(client, crds=crds, dry_run=dry_run, yes=yes)


async def take_out(client: Client, *, crds: bool = False, dry_run: bool = False, yes: bool = False) -> None:
    """Do it, and say so. LeftOverError where something is left or may be."""
    found = await find(client)
    doomed = _doomed(found, crds=crds)
    if dry_run or not yes:
        _say(f"would delete {item}" for item in doomed)
    _say(_kept(found, crds=crds))
    _say((*_put_back(doomed), *found.problems), sys.stderr)
    if not doomed:
        print(f"found nothing to delete on {client.server}")
    elif not dry_run:
        if not yes:
            typer.confirm(f"Delete these {len(doomed)} objects on {client.server}?", abort=True)
        refused = await _delete(client, found.items)
        if refused or found.problems:  # `helm uninstall` may have to take the rest away
            _say((f"kept {item}, as long as something of the release is left" for item in found.history), sys.stderr)
            refused += found.history
        else:
            refused += await _delete(client, found.history)
        if crds:
            refused += await _delete(client, found.crds)
        left = await _left(client, doomed, refused, crds=crds)
        _say(left, sys.stderr)
        if refused or left:
            raise LeftOverError("some of AlterShield is left: mend what is said above, and run this again")
    if found.problems:
        raise LeftOverError("some of AlterShield may be left: mend what is said above, and run this again")


def _doomed(found: Inventory, *, crds: bool) -> list[Item]:
    """What is to be deleted, in this order."""
    return [*found.items, *found.history, *(found.crds if crds else ())]


def _kept(found: Inventory, *, crds: bool) -> Iterator[str]:
    if not crds:
        yield from (f"kept {item}, with its records; --crds deletes them" for item in found.crds)
    for release in found.shared:
        yield f"kept the history of the Helm release {release}, which is not of this chart alone: `helm list` shows it"
    if found.items:
        gone = {item.metadata.name for item in found.items if item.resource == NAMESPACES}
        for namespace in sorted({item.metadata.namespace for item in found.items} - gone - {""}):
            yield f"kept Namespace {namespace}"
        yield "kept the labels on your namespaces and workloads: taking a version off would restart pods"


def _put_back(doomed: Sequence[Item]) -> Iterator[str]:
    first: dict[str, Item] = {}
    for item in doomed:
        for key in item.metadata.labels.keys() | item.metadata.annotations.keys():
            if tool := _KEEPERS.get(key):
                first.setdefault(tool, item)
    for tool, item in first.items():
        yield f"{tool} keeps {item} and will put back what is deleted here: take it out there first"


async def _delete(client: Client, doomed: Sequence[Item]) -> list[Item]:
    """Delete one after the other; those that could not be. UnreachableError where the API server is gone for good."""
    refused = []
    for item in doomed:
        metadata = item.metadata
        request = functools.partial(
            client.delete,
            item.resource,
            metadata.name,
            metadata.namespace,
            uid=metadata.uid,
            propagation="Background",
        )
        try:
            await retry_while_unavailable(request)
        except NotFoundError:
            print(f"gone already {item}", flush=True)
        except ApiError as error:
            print(f"cannot delete {item}: {error}", file=sys.stderr, flush=True)
            refused.append(item)
        else:
            print(f"deleted {item}", flush=True)
    return refused


async def _left(client: Client, doomed: Sequence[Item], refused: Sequence[Item], *, crds: bool) -> list[str]:
    """Wait until all is gone; what is not, and why."""
    ours = {item.metadata.uid for item in doomed}
    reported = {item.metadata.uid for item in refused}
    deadline = asyncio.get_running_loop().time() + _GONE_SECONDS
    while True:
        found = _doomed(await find(client), crds=crds)
        left = [item for item in found if item.metadata.uid not in reported]
        if not left or asyncio.get_running_loop().time() > deadline:
            break
        await asyncio.sleep(_POLL)
    return [
        f"{item} is not gone after {_GONE_SECONDS:.0f} s: whoever set its finalizers has to take them away"
        if item.metadata.uid in ours
        else f"{item} came back: take it out of the tool that makes it"
        for item in left
    ]


def _say(lines: Iterable[str], file: TextIO | None = None) -> None:
    for line in lines:
        print(line, file=file, flush=True)
