"""The command line of `altershield protected`."""

import asyncio
import sys
from enum import StrEnum
from typing import Annotated

import typer

from altershield.process import options
from altershield.views.names import resource_name
from altershield.views.protection import Deletion, Found, Protected, find, protected_list, staying
from command.columns import Columns
from command.namespace_option import Namespace, require_namespace
from command.output import write
from kube_base.access.client import Client
from kube_base.errors import ReportedError

EXIT_STAYS = 3
"""Of `altershield protected`: an object stays although its owner or namespace is deleted."""

_HEADER = ("NAMESPACE", "NAME", "LEVEL", "DELETION", "REASON", "STAYS")


class Format(StrEnum):
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


def protected(
    namespace: Namespace = "",
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Show all namespaces, and objects outside of namespaces.")
    ] = False,
    stays: Annotated[
        bool,
        typer.Option("--stays", help="Show only objects that stay although their owner or namespace is deleted."),
    ] = False,
    output: Annotated[
        Format | None,
        typer.Option(
            "--output", "-o", help="The format: json, yaml or name. Without this option: a table.", show_default=False
        ),
    ] = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Show the objects that are protected from deletion, and whether a deletion would be refused now.

    STAYS says which objects only their label keeps: the garbage collector or the namespace controller tries to delete
    them, because their owner or namespace is deleted. The exit code is 3 if there is one, else 0. It is 1 if a kind
    cannot be listed.
    """
    require_namespace(namespace)
    found, where = asyncio.run(_find(context, kubeconfig, "" if all_namespaces else namespace or None))
    shown = staying(found.items) if stays else found.items
    if shown or not found.problems:
        _print(shown, output, where)
    if found.problems:
        raise ReportedError("; ".join(found.problems))
    raise typer.Exit(EXIT_STAYS if staying(found.items) else 0)


async def _find(context: str | None, kubeconfig: str | None, namespace: str | None) -> tuple[Found, str]:
    async with await Client.connect(kubeconfig, context=context) as client:
        where = client.namespace if namespace is None else namespace
        return await find(client, where), where


def _print(items: list[Protected], output: Format | None, namespace: str) -> None:
    match output:
        case Format.JSON | Format.YAML:
            write(protected_list(items), output)
        case Format.NAME:
            sys.stdout.writelines(f"{resource_name(item.kind.resource, item.metadata.name)}\n" for item in items)
        case _ if items:
            rows = [_HEADER, *map(_row, items)]
            sys.stdout.writelines(f"{line}\n" for line in Columns(len(_HEADER)).lines(rows))
        case _:
            where = f" in {namespace} namespace" if namespace else ""
            print(f"No protected objects found{where}.", file=sys.stderr)


def _row(item: Protected) -> tuple[str, ...]:
    deletion = {
        Deletion.ASKS: "refused while it has content",
        Deletion.BEGUN: "has begun",
    }.get(item.deletion, str(item.deletion))
    return (
        item.metadata.namespace,
        resource_name(item.kind.resource, item.metadata.name),
        str(item.level or "invalid"),
        f"{deletion}: {item.because}" if item.because else deletion,
        item.reason,
        item.stays,
    )
