"""The command line of `altershield status`."""

import asyncio
import functools
import sys
import time
from collections.abc import Sequence
from contextlib import aclosing
from typing import Annotated, NamedTuple

import typer

from altershield.process import options
from altershield.releases import Outcome
from altershield.views.durations import age, seconds
from altershield.views.releases.attention import triage
from altershield.views.releases.goals import Goal, demand_step, reached
from altershield.views.releases.images import ImagesReader
from altershield.views.releases.model import Release, Snapshot, StatusError, demand, outcomes, shown, under_way
from altershield.views.releases.nothing import demand_namespace, why_nothing
from altershield.views.releases.reading import Reader
from altershield.views.releases.words import with_words
from altershield.views.selection import Selection, parse
from command.namespace_option import Namespace, require_namespace
from command.shell import candidates
from command.status.exit_codes import exit_code
from command.status.printers import Output, Printer
from command.status.table import progress
from command.status.trees import Trees
from kube_base.access.client import Client
from kube_base.errors import UsageError


class Mode(NamedTuple):
    """How often to print, when to stop, and what counts as a success."""

    watch: bool
    wait: bool
    timeout: float | None
    """In seconds. None: no timeout."""
    allow_empty: bool = False
    """Whether it is a success that there is no release."""
    asked: frozenset[str] = frozenset()
    """Versions whose success is what the user asked for, although another version was rolled back."""
    goal: Goal = Goal()
    """How far a release has to come."""
    urgent: bool = False
    """Whether only the workloads are shown that need somebody or have a release under way."""

    def outcomes(self, snapshot: Snapshot) -> list[Outcome]:
        """The outcome of each workload. A release that has come as far as the goal counts as a success."""
        return outcomes(snapshot, self.asked, functools.partial(reached, self.goal))


Workloads = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TYPE[/NAME]|NAME",
        autocompletion=candidates.workloads,
        help="The workloads: web, deploy/web, sts/db, or a type and names as in kubectl. Without a type: all "
        "workloads with that name. Without a name: all workloads of that type. Default: all.",
        show_default=False,
    ),
]
Printed = Annotated[
    Output | None,
    typer.Option(
        "--output",
        "-o",
        help="The format: json or yaml (a List of ChangeWorkloads), name, or wide (more columns). Without this "
        "option: a table.",
        show_default=False,
    ),
]


def status(
    workload: Workloads = None,
    namespace: Namespace = "",
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Show the releases of all namespaces.")
    ] = False,
    every: Annotated[
        bool,
        typer.Option("--all", help="Show all releases, also of workloads that need nobody, and earlier versions."),
    ] = False,
    output: Printed = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show the releases and then every change, until Ctrl-C.")
    ] = False,
    wait: Annotated[
        bool,
        typer.Option("--wait", help="Wait until no release is under way, then show them. With -w, show every change."),
    ] = False,
    timeout: Annotated[
        str,
        typer.Option(
            "--timeout",
            help="The timeout of --wait, as 90s, 5m or 1h30m. After it, the exit code is 4. 0: no timeout.",
        ),
    ] = "0",
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Exit with 0 if there is no release to show.")
    ] = False,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Show releases: their state, the numbers of pods that passed, failed and wait, and the reason for the state.

    If you name no workload, only those are shown that need somebody (suspended, failed, waiting for approval, held or
    stalled) and then those with a release under way; --all, --wait and -o json, yaml and name show all. The version
    with a * is the present one. On a terminal, messages are cut to its width; with -o wide, and in a pipe, they are
    whole.

    If you name a workload whose release is made in steps, the steps follow as a tree: their pods, checks and times,
    what the release waits for, and its earliest end. With -w on a terminal, a workload that you name is drawn as a tree
    of its versions, steps, batches and pods, again after every change.

    The exit code is 3 if a release is suspended, else 4 if one is under way, else 5 if one was rolled back, else 0. A
    present pod template that is not verified yet is under way. The exit code is 1 if a workload does not exist, if
    there is no release to show, or if you may not list them.
    """
    limit = seconds(timeout, "--timeout")
    if limit and not wait:
        raise UsageError("--timeout is the timeout of --wait; add --wait, or remove --timeout")
    require_namespace(namespace)
    selections = parse(workload or ())
    if all_namespaces and any(selection.name for selection in selections):
        raise UsageError("-A cannot be combined with the name of a workload; set its namespace with -n")
    urgent = not workload and not every and not wait and output in (None, Output.WIDE)
    mode = Mode(watch, wait, limit or None, allow_empty, urgent=urgent)
    code = asyncio.run(
        _status(context, kubeconfig, "" if all_namespaces else namespace or None, selections, output, mode)
    )
    raise typer.Exit(code)


async def _status(
    context: str | None,
    kubeconfig: str | None,
    namespace: str | None,
    selections: Sequence[Selection],
    output: Output | None,
    mode: Mode,
) -> int:
    async with await Client.connect(kubeconfig, context=context) as client:
        return await show(client, client.namespace if namespace is None else namespace, selections, output, mode)


async def show(
    client: Client, namespace: str, selections: Sequence[Selection], output: Output | None, mode: Mode
) -> int:
    """Show the releases of the selections, and return the exit code. An empty namespace means all namespaces."""
    reader, printer, images = Reader(client, namespace, selections), Printer(output, namespace), ImagesReader(client)
    trees = Trees(client, printer, wanted=printer.is_table and any(selection.name for selection in selections))
    snapshot = await reader.read()
    if not snapshot.workloads and any(selection.name for selection in selections):
        await demand_namespace(client, namespace)
    demand(snapshot, selections, namespace)
    demand_step(mode.goal, shown(snapshot))
    if mode.watch and not mode.wait and not shown(snapshot):
        print(f"{await why_nothing(client, namespace, selections)}; waiting for releases", file=sys.stderr, flush=True)
    if mode.urgent and shown(snapshot):
        await _urgent(client, printer, images, shown(snapshot))
        if mode.watch:
            printer.known(await images.added(shown(snapshot), shown(snapshot)))
    if mode.watch or (mode.wait and Outcome.UNDER_WAY in mode.outcomes(snapshot)):
        try:
            async with asyncio.timeout(mode.timeout), trees.drawn_again():
                snapshot = await _follow(reader, printer, images, trees, selections, namespace, mode)
        except TimeoutError:
            snapshot = await reader.read()
            _report_timeout(snapshot, mode)
    if not shown(snapshot):
        text = await why_nothing(client, namespace, selections)
        if not mode.allow_empty:
            raise StatusError(text)
        print(text, file=sys.stderr)
    if not mode.watch and not mode.urgent:
        found = shown(snapshot)
        if printer.is_table:
            found = await with_words(client, await images.added(found, found), time.time())
        printer.whole(found)
        await trees.whole(found)
    return exit_code(mode.outcomes(snapshot))


async def _urgent(client: Client, printer: Printer, images: ImagesReader, found: Sequence[Release]) -> None:
    """Print the releases that need somebody or are under way, and how many workloads are not shown."""
    urgent = triage(found)
    printer.changes(await with_words(client, await images.added(urgent.releases, found), time.time()))
    if urgent.summary:
        print(f"\n{urgent.summary}" if urgent.releases else urgent.summary, file=sys.stderr, flush=True)


async def _follow(
    reader: Reader,
    printer: Printer,
    images: ImagesReader,
    trees: Trees,
    selections: Sequence[Selection],
    namespace: str,
    mode: Mode,
) -> Snapshot:
    """Show the changes. With --wait, return the first snapshot in which each release has come as far as the goal, or is
    not under way."""
    said = ""
    async with aclosing(reader.changes()) as snapshots:
        async for snapshot in snapshots:
            if mode.watch:
                found = await images.added(shown(snapshot), shown(snapshot)) if printer.is_table else shown(snapshot)
                if not await trees.draw(found):
                    printer.changes(found)
                    await trees.changes(found)
            if not mode.wait:
                continue
            demand(snapshot, selections, namespace)
            demand_step(mode.goal, shown(snapshot))
            if Outcome.UNDER_WAY not in mode.outcomes(snapshot):
                return snapshot
            lines = "\n".join(_waits_for(snapshot, mode))
            if not mode.watch and lines != said:
                said = lines
                print(lines, file=sys.stderr, flush=True)
    raise AssertionError("changes never end")


def _waits_for(snapshot: Snapshot, mode: Mode) -> list[str]:
    """A line for each present release that is under way, and has not come as far as the goal."""
    return [progress(each) for each in shown(snapshot) if under_way(each) and not reached(mode.goal, each)]


def _report_timeout(snapshot: Snapshot, mode: Mode) -> None:
    if mode.timeout is not None:
        for line in _waits_for(snapshot, mode):
            print(f"error: timed out after {age(mode.timeout)} {line[0].lower()}{line[1:]}", file=sys.stderr)
