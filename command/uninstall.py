"""`altershield uninstall`: deletes AlterShield from a cluster, whichever tool installed it."""

import asyncio
import contextlib
import functools
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, TextIO

import msgspec
import typer

from altershield.api import labels
from altershield.api.deletion_protection import CASCADING_LABEL, LABEL, level
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.process import options
from altershield.releases import history
from altershield.views import permission
from command import let_go
from command.confirm import ask, can_ask
from command.install.inventory import Inventory, Item, find
from kube_base.access.backoff import retry_while_unavailable
from kube_base.access.client import Client
from kube_base.access.errors import ApiError, NotFoundError
from kube_base.errors import ReportedError, UsageError
from kube_base.resources import NAMESPACES

_GONE_SECONDS = 60.0  # finalizers and the objects of a deleted CustomResourceDefinition take time
_POLL = 1.0

_GITOPS_TOOLS = {
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "argocd.argoproj.io/instance": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
}
"""Labels and annotations of tools that create deleted objects again."""


class LeftOverError(ReportedError):
    """Objects of AlterShield may still be in the cluster."""


def uninstall(
    crds: Annotated[
        bool,
        typer.Option(
            "--crds",
            help="Also delete the CustomResourceDefinitions with all their objects, and the history of workloads.",
        ),
    ] = False,
    only_holds: Annotated[
        bool,
        typer.Option(
            "--only-holds",
            help="Only end the releases in steps: switch the setting `rollout` off, and wait until each workload has "
            "its own fields again.",
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the objects to delete.")] = False,
    system_namespace: options.SystemNamespace = options.SYSTEM_NAMESPACE,
    yes: options.Yes = False,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Delete AlterShield from the cluster, whichever tool installed it. It deletes the webhooks first.

    First ends the releases in steps: their workloads get their own fields back.

    Deletes only objects of the chart, of `altershield dev` and of AlterShield itself. Keeps the
    CustomResourceDefinitions with their objects and the history of workloads (unless --crds is set), the namespace, and
    the labels and annotations on your namespaces and workloads. If the API server refuses a deletion, the command
    reports it and continues. You can repeat the command. The exit code is 1 if objects are left.
    """
    if only_holds:
        if crds or dry_run:
            raise UsageError("--only-holds deletes nothing: leave --crds and --dry-run out")
        asyncio.run(_end_holds(kubeconfig, context, system_namespace))
        return
    if not (yes or dry_run or can_ask()):
        raise UsageError("stdin is not a terminal, so the command cannot ask; add --yes or --dry-run")
    asyncio.run(_run(kubeconfig, context, system_namespace, crds=crds, dry_run=dry_run, yes=yes))


async def _run(
    kubeconfig: str | None, context: str | None, system_namespace: str, *, crds: bool, dry_run: bool, yes: bool
) -> None:
    async with await Client.connect(kubeconfig, context=context) as client:
        await delete_installation(client, system_namespace, crds=crds, dry_run=dry_run, yes=yes)


async def _end_holds(kubeconfig: str | None, context: str | None, system_namespace: str) -> None:
    async with await Client.connect(kubeconfig, context=context) as client:
        left = await let_go.switch_off(client, system_namespace=system_namespace)
    if left:
        raise LeftOverError(
            f"{len(left)} workloads are still held in steps, {left[0]} among them; see the log of the reconciler, and "
            "run this command again"
        )


async def _let_go(client: Client, system_namespace: str) -> None:
    """End the releases in steps, and say which workloads are still held."""
    try:
        left = await let_go.switch_off(client, system_namespace=system_namespace)
    except ApiError as error:
        print(f"cannot end the releases in steps: {error}", file=sys.stderr, flush=True)
        return
    _say((f"{each} is still held, and gets its fields back when the webhooks are deleted" for each in left), sys.stderr)


async def delete_installation(
    client: Client,
    system_namespace: str = SYSTEM_NAMESPACE,
    *,
    crds: bool = False,
    dry_run: bool = False,
    yes: bool = False,
) -> None:
    """Delete the objects and print them. LeftOverError: objects are left or may be left."""
    found = await find(client, entries=crds)
    items = _to_delete(found, crds=crds)
    if dry_run or not yes:
        _say(f"would delete {item}" for item in items)
    _say(_kept(found, crds=crds))
    _say((*_gitops_warnings(items), *found.problems), sys.stderr)
    if not items:
        if not found.problems:
            print(f"found nothing to delete on {client.server}")
    elif not dry_run:
        if not yes:
            ask(f"Delete these {len(items)} objects on {client.server}?")
        if found.items:
            await _let_go(client, system_namespace)
        refused = await _delete(client, found.items)
        if found.items and not refused:  # no webhook is called any more; a release may have begun meanwhile
            await let_go.end_directly(client)
        if refused or found.problems:  # `helm uninstall` may have to delete the rest
            _say((f"kept {item}, because objects of the release are left" for item in found.history), sys.stderr)
            refused += found.history
        else:
            refused += await _delete(client, found.history)
        if crds:
            refused += await _delete(client, found.entries)
            await _unprotect(client, found.crds)
            refused += await _delete(client, found.crds)
        left = await _left(client, items, refused, crds=crds)
        _say(left, sys.stderr)
        if refused or left:
            raise LeftOverError("objects of AlterShield are left; fix the problems above and run this command again")
    if found.problems:
        role = permission.role("cluster-admin", "")
        ask_for = f"ask for {role}, or " if any(map(permission.is_missing, found.problems)) else ""
        raise LeftOverError(
            f"objects of AlterShield may be left; {ask_for}fix the problems above, and run this command again"
        )


def _to_delete(found: Inventory, *, crds: bool) -> list[Item]:
    """The objects to delete, in this order."""
    return [*found.items, *found.history, *found.entries, *(found.crds if crds else ())]


def _kept(found: Inventory, *, crds: bool) -> Iterator[str]:
    if not crds:
        yield from (f"kept {item} with its objects; --crds deletes them" for item in found.crds)
        if found.crds:
            yield f"kept each {history.RESOURCE.kind} with the label {labels.HISTORY}; --crds deletes them"
    for release in found.shared:
        yield f"kept the history of the Helm release {release}, which contains other charts or cannot be read"
    if found.items:
        gone = {item.metadata.name for item in found.items if item.resource == NAMESPACES}
        for namespace in sorted({item.metadata.namespace for item in found.items} - gone - {""}):
            yield f"kept Namespace {namespace}"
        yield "kept the labels and annotations on your namespaces and workloads: removing a version would restart pods"


def _gitops_warnings(items: Sequence[Item]) -> Iterator[str]:
    """A line for each GitOps tool that manages one of the objects."""
    first: dict[str, Item] = {}
    for item in items:
        for key in item.metadata.labels.keys() | item.metadata.annotations.keys():
            if tool := _GITOPS_TOOLS.get(key):
                first.setdefault(tool, item)
    for tool, item in first.items():
        yield f"{tool} manages {item} and will create it again; delete AlterShield there first"


async def _unprotect(client: Client, items: Sequence[Item]) -> None:
    """Take the protection from deletion off the objects, because an API server may apply the admission policies for
    some time after they were deleted. A refusal is not reported here: the deletion then fails too, and reports it."""
    without = {"metadata": {"labels": {LABEL: None, CASCADING_LABEL: None}}}
    for item in items:
        if level(item.metadata.labels) is not None:
            request = functools.partial(client.patch, item.resource, without, item.metadata.name, as_=msgspec.Raw)
            with contextlib.suppress(ApiError):
                await retry_while_unavailable(request)


async def _delete(client: Client, items: Sequence[Item]) -> list[Item]:
    """Delete the objects in this order. Returns the objects that the API server refused to delete. UnreachableError:
    the API server does not answer."""
    refused = []
    for item in items:
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
            print(f"already deleted {item}", flush=True)
        except ApiError as error:
            print(f"cannot delete {item}: {error}", file=sys.stderr, flush=True)
            refused.append(item)
        else:
            print(f"deleted {item}", flush=True)
    return refused


async def _left(client: Client, items: Sequence[Item], refused: Sequence[Item], *, crds: bool) -> list[str]:
    """Wait until the objects are deleted. Returns a line for each object that is left, with the cause."""
    deleted = {item.metadata.uid for item in items}
    reported = {item.metadata.uid for item in refused}
    deadline = asyncio.get_running_loop().time() + _GONE_SECONDS
    while True:
        found = _to_delete(await find(client, entries=crds), crds=crds)
        left = [item for item in found if item.metadata.uid not in reported]
        if not left or asyncio.get_running_loop().time() > deadline:
            break
        await asyncio.sleep(_POLL)
    return [
        f"{item} is not deleted after {_GONE_SECONDS:.0f} s: the controller of its finalizers must remove them"
        if item.metadata.uid in deleted
        else f"{item} was created again: delete it in the tool that creates it"
        for item in left
    ]


def _say(lines: Iterable[str], file: TextIO | None = None) -> None:
    for line in lines:
        print(line, file=file, flush=True)
