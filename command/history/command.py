"""The command line of `altershield history`."""

import asyncio
import sys
from enum import StrEnum
from typing import Annotated

import typer

from altershield.process import options
from altershield.views import history as reading
from altershield.views.finding import only
from altershield.views.releases import objects
from altershield.views.selection import Selection, parse
from command.history.table import about, difference, table
from command.namespace_option import Namespace, require_namespace
from command.shell import candidates
from kube_base.access.client import Client
from kube_base.errors import UsageError


class Format(StrEnum):
    JSON = "json"
    YAML = "yaml"
    WIDE = "wide"


def history(
    workload: Annotated[
        list[str],
        typer.Argument(
            metavar="TYPE/NAME|TYPE NAME",
            autocompletion=candidates.workloads,
            help="The workload: deploy/web, deploy web, or web.",
            show_default=False,
        ),
    ],
    version: Annotated[
        str,
        typer.Option(
            "--version",
            autocompletion=candidates.versions,
            help="Print the pod template of this version, and as comments who released it and who decided what about "
            "it; its first digits are enough.",
            show_default=False,
        ),
    ] = "",
    diff: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--diff",
            metavar="VERSION VERSION",
            autocompletion=candidates.versions,
            help="Print the difference between the pod templates of two versions.",
            show_default=False,
        ),
    ] = None,
    namespace: Namespace = "",
    output: Annotated[
        Format | None,
        typer.Option(
            "--output",
            "-o",
            help="The format: json or yaml (a List of the objects; with --version, its pod template), or wide (more "
            "columns). Without this option: a table.",
            show_default=False,
        ),
    ] = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Show the releases of a workload: when, by whom and how each version was released, and how the release ended.

    The newest release is first, and the present version has a *. AlterShield keeps a release when it ends, or when
    another one replaces it. On a terminal, messages are cut to its width; with -o wide, and in a pipe, they are whole.
    To go back, run `altershield rollback TYPE/NAME --to VERSION`, or `--to NUMBER`.
    """
    if version and diff:
        raise UsageError("--version and --diff cannot be combined; set one of them")
    if diff and output:
        raise UsageError("--diff cannot be combined with -o; the difference has one format")
    if version and output is Format.WIDE:
        raise UsageError("-o wide is a format of the table; with --version, set -o yaml or -o json")
    require_namespace(namespace)
    selection = only(parse(workload))
    asyncio.run(_history(context, kubeconfig, namespace, selection, version, diff, output))


async def _history(
    context: str | None,
    kubeconfig: str | None,
    namespace: str,
    selection: Selection,
    version: str,
    diff: tuple[str, str] | None,
    output: Format | None,
) -> None:
    async with await Client.connect(kubeconfig, context=context) as client:
        found = await reading.read(client, namespace or client.namespace, selection)
    if diff is not None:
        old, new = (reading.version(found, each).entry for each in diff)
        sys.stdout.write(difference(old, new))
        return
    if version:
        entry = reading.version(found, version).entry
        sys.stdout.writelines(f"# {line}\n" for line in (about(entry) if output is None else ()))
        sys.stdout.write((objects.to_json if output is Format.JSON else objects.to_yaml)(entry.template))
        return
    match output:
        case Format.JSON | Format.YAML:
            items = objects.as_list([each.obj for each in found.versions])
            sys.stdout.write(objects.to_json(items) if output is Format.JSON else objects.to_yaml(items))
        case _:
            sys.stdout.writelines(f"{line}\n" for line in table(found, wide=output is Format.WIDE))
