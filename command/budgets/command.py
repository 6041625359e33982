"""The command line of `altershield budgets`."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from altershield.api.names import is_name
from altershield.api.resources import POD_UNAVAILABLE_BUDGETS
from altershield.process import options
from altershield.views.budgets.documents import budget_detail, budget_list
from altershield.views.budgets.figures import Figures, detail, figures
from altershield.views.budgets.reading import around, budget_of, budgets_of
from altershield.views.document import Document
from altershield.views.names import resource_name
from command.budgets import printing
from command.namespace_option import Namespace, require_namespace
from command.output import write
from command.status.printers import Output
from kube_base.access.client import Client
from kube_base.access.server_clock import ServerClock
from kube_base.errors import ReportedError, UsageError

EXIT_EXHAUSTED = 3
"""Of `altershield budgets`: a budget refuses disruptions now."""


def budgets(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="The PodUnavailableBudget. Default: all.", show_default=False)
    ] = "",
    namespace: Namespace = "",
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Show the budgets of all namespaces.")
    ] = False,
    output: Annotated[
        Output | None,
        typer.Option(
            "--output",
            "-o",
            help="The format: json, yaml, name, or wide (more columns). Without this option: a table.",
            show_default=False,
        ),
    ] = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Show PodUnavailableBudgets: how many pods may be disrupted now, and what is wrong.

    Without a name, the numbers are those of the status. With a name, they are counted anew, and the command shows the
    disruptions that were admitted, the pods that are not available and why, and PodDisruptionBudgets that allow no
    eviction of the pods. The exit code is 3 if a budget with the mode Enforce allows no disruption now, else 0. It is 1
    if something that the numbers rest on cannot be read.
    """
    require_namespace(namespace)
    if name and all_namespaces:
        raise UsageError("-A cannot be combined with the name of a budget; set its namespace with -n")
    if name and not is_name(name):
        raise UsageError(f'no PodUnavailableBudget can have the name "{name}"')
    shown = asyncio.run(
        _one(context, kubeconfig, namespace, name, output)
        if name
        else _all(context, kubeconfig, "" if all_namespaces else namespace or None, output)
    )
    raise typer.Exit(EXIT_EXHAUSTED if any(each.exhausted for each in shown) else 0)


async def _all(
    context: str | None, kubeconfig: str | None, namespace: str | None, output: Output | None
) -> Sequence[Figures]:
    clock = ServerClock()
    async with await Client.connect(kubeconfig, context=context) as client:
        client.on_date(clock.update)
        where = client.namespace if namespace is None else namespace
        shown = [figures(each, clock()) for each in await budgets_of(client, where)]
    if output in (Output.JSON, Output.YAML, Output.NAME):
        _print(output, budget_list(shown), shown)
    elif shown:
        _print_lines(printing.table(shown, namespaces=not where, wide=output is Output.WIDE))
    else:
        print(f"No PodUnavailableBudgets found{f' in {where} namespace' if where else ''}.", file=sys.stderr)
    return shown


async def _one(
    context: str | None, kubeconfig: str | None, namespace: str, name: str, output: Output | None
) -> Sequence[Figures]:
    clock = ServerClock()
    async with await Client.connect(kubeconfig, context=context) as client:
        client.on_date(clock.update)
        where = namespace or client.namespace
        budget = await budget_of(
            client, where, name
        )  # before the pods: a record that is dropped meanwhile still counts
        found = await around(client, budget)
        shown = detail(budget, found.surroundings, clock())
    if output in (Output.JSON, Output.YAML, Output.NAME):
        _print(output, budget_detail(shown), [shown.figures])
    else:
        _print_lines(printing.lines(shown, clock(), wide=output is Output.WIDE))
    if found.problems:
        raise ReportedError("; ".join(found.problems))
    return [shown.figures]


def _print(output: Output, whole: Document, shown: Sequence[Figures]) -> None:
    if output is Output.NAME:
        _print_lines([resource_name(POD_UNAVAILABLE_BUDGETS, each.budget.metadata.name) for each in shown])
    else:
        write(whole, output)


def _print_lines(found: Sequence[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in found)
