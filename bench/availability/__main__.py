"""The command: runs all measurements at full length, prints tables, and writes JSON to bench/results."""

import datetime
import json
import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
import uvloop
from rich.console import Console
from rich.table import Table

from bench.availability import admissions, budgets, disruptions, hung, outage, releases
from bench.availability.gatekeepers import process
from bench.availability.phases import Phase
from bench.availability.waiting import until
from kube_base.access.client import Client
from kube_sandbox.backends import ASSETS

RESULTS = Path(__file__).parent.parent / "results" / "availability.json"
_START_SECONDS = 150.0
_PARTS = ("admissions", "hung", "releases", "outage", "disruptions", "budgets")
_CAUSES = ("under way", "unnoticed", "hung")


def main(
    kubeconfig: Annotated[
        Path | None, typer.Option(help="A cluster whose API server can connect to this machine's loopback addresses.")
    ] = None,
    phase: Annotated[float, typer.Option(min=1, help="Minimum seconds of each admission phase.")] = 30,
    rate: Annotated[float, typer.Option(min=1, help="Releases per second.")] = 25,
    kills: Annotated[int, typer.Option(min=1, help="How many leading reconcilers to kill.")] = 10,
    gone: Annotated[float, typer.Option(min=1, help="Seconds without the API server.")] = 60,
    output: Annotated[Path, typer.Option(help="The JSON file for the figures.")] = RESULTS,
) -> None:
    """Measure availability. Exits with 1 if a result is wrong. By default on a new sandbox."""
    if not uvloop.run(_start(kubeconfig, admissions.Plan(phase=phase, rate=rate), kills, gone, output)):
        raise typer.Exit(1)


async def _start(kubeconfig: Path | None, plan: admissions.Plan, kills: int, gone: float, output: Path) -> bool:
    if kubeconfig is not None:
        return await _run("a cluster's", kubeconfig, plan, kills, gone, output)
    kind = "kube-apiserver" if os.environ.get(ASSETS) else "sandbox as"
    with tempfile.TemporaryDirectory() as name:
        made = Path(name, "kubeconfig")
        async with process(Path(name), "command", "sandbox", "--output", str(made)):
            await until(lambda: made.exists() and made.stat().st_size > 0, "the sandbox", _START_SECONDS)
            return await _run(kind, made, plan, kills, gone, output)


async def _run(kind: str, kubeconfig: Path, plan: admissions.Plan, kills: int, gone: float, output: Path) -> bool:
    """Run all measurements, print and write the results. Returns whether all results are right."""
    console = Console(soft_wrap=True)

    def report(what: str) -> None:
        console.print(what, style="dim")

    with tempfile.TemporaryDirectory() as name:
        directories = [Path(name, part) for part in _PARTS]
        for directory in directories:
            directory.mkdir()
        admitted = await admissions.measure(kubeconfig, directories[0], plan, report)
        console.print(_phases(f"{plan.rate:g} releases per second through three gatekeepers", admitted.phases))
        stuck = await hung.measure(kubeconfig, directories[1], hung.Plan(after=plan.phase, rate=plan.rate), report)
        console.print(_phases(f"{plan.rate:g} releases per second while one gatekeeper hangs", stuck.phases))
        released = await releases.measure(kubeconfig, directories[2], kills, report)
        console.print(_fields("Releases while the leading reconciler is killed", asdict(released)))
        cut_off = await outage.measure(kubeconfig, directories[3], gone, report)
        console.print(_fields("Outage of the API server", asdict(cut_off)))
        disrupted = await disruptions.measure(kubeconfig, directories[4], disruptions.Plan(after=plan.phase), report)
        console.print(_phases("Releases while the infrastructure is disrupted", disrupted.phases))
        fields = {name: value for name, value in asdict(disrupted).items() if name != "phases"}
        console.print(_fields("Disruptions of the infrastructure", fields))
        kept = await budgets.measure(kubeconfig, directories[5], budgets.Plan(), report)
        console.print(_fields("Disruptions of all pods of PodUnavailableBudgets", asdict(kept)))
    figures = {
        "taken": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "api": f"{kind} {await _version(kubeconfig)}",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "plan": asdict(plan),
        "admissions": asdict(admitted),
        "hung": asdict(stuck),
        "releases": asdict(released),
        "outage": asdict(cut_off),
        "disruptions": asdict(disrupted),
        "budgets": asdict(kept),
    }
    _write(output, figures)
    console.print(f"figures in {output}")
    wrong = [*admitted.wrong, *stuck.wrong, *released.wrong, *cut_off.wrong, *disrupted.wrong, *kept.wrong]
    for line in wrong:
        console.print(line, style="red", markup=False)
    return not wrong


def _write(output: Path, figures: Mapping[str, object]) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(figures, indent=2) + "\n")


async def _version(kubeconfig: Path) -> str:
    async with await Client.connect(str(kubeconfig)) as client:
        return str(json.loads(await client.request("GET", "/version"))["gitVersion"])


def _phases(title: str, phases: Sequence[Phase]) -> Table:
    table = Table(title=title)
    for column in ("phase", "s", "releases", "failed", *_CAUSES, "p50 ms", "p99 ms", "worst ms"):
        table.add_column(column, justify="left" if column == "phase" else "right")
    for each in phases:
        counts = (each.requests, len(each.failures), each.under_way, each.unnoticed, each.hung)
        latencies = (each.p50, each.p99, each.worst)
        table.add_row(each.name, f"{each.seconds:g}", *map(str, counts), *(f"{value:.1f}" for value in latencies))
    table.caption = "; ".join(f"{each.name}: {each.happened}" for each in phases if each.happened)
    return table


def _fields(title: str, fields: dict[str, object]) -> Table:
    table = Table("", "", title=title, show_header=False)
    for name, value in fields.items():
        table.add_row(name.replace("_", " "), str(value))
    return table


if __name__ == "__main__":
    typer.run(main)
