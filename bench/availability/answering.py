"""Runs a measurement on a cluster, and makes its result the answer to a question."""

import contextlib
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.table import Table

from bench.harness.answer import Answer, fields
from bench.harness.sandbox import sandbox
from kube_base.access.client import Client
from kube_sandbox.backends import ASSETS

T = TypeVar("T")

Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        help="A cluster whose API server can connect to this machine's loopback addresses. By default a new sandbox; "
        f"with {ASSETS} in the environment, a real control plane."
    ),
]
Rate = Annotated[float, typer.Option(min=1, help="Releases per second.")]


Measure = Callable[[Path, Path, T, Callable[[str], None]], Awaitable[Any]]
"""Gets a kubeconfig, an empty directory, a plan, and a function to report what happens. Returns a dataclass with the
field `wrong`, and perhaps with `phases` of a constant load."""


async def answered(title: str, kubeconfig: Path | None, measure: Measure[T], plan: T) -> Answer:
    """Measure on this cluster, or on a new sandbox."""
    async with _cluster(kubeconfig) as path:
        with tempfile.TemporaryDirectory() as directory:
            result = await measure(path, Path(directory), plan, print)
        async with await Client.connect(str(path)) as client:
            version = json.loads(await client.request("GET", "/version"))["gitVersion"]
    figures = asdict(result)
    wrong, phases = figures.pop("wrong"), figures.get("phases", ())
    more = {name: value for name, value in figures.items() if name != "phases"}
    tables = [*([_phases(title, phases)] if phases else []), *([fields(title, more)] if more else [])]
    return Answer({"api": version, **figures}, tables, wrong=wrong)


@contextlib.asynccontextmanager
async def _cluster(kubeconfig: Path | None) -> AsyncIterator[Path]:
    if kubeconfig is not None:
        yield kubeconfig
        return
    async with sandbox() as (path, _):
        yield path


def _phases(title: str, phases: Sequence[dict[str, Any]]) -> Table:
    table = Table(title=title)
    for column in (
        "phase",
        "s",
        "releases",
        "failed",
        "under way",
        "unnoticed",
        "hung",
        "p50 ms",
        "p99 ms",
        "worst ms",
    ):
        table.add_column(column, justify="left" if column == "phase" else "right")
    for each in phases:
        counts = (each["requests"], len(each["failures"]), each["under_way"], each["unnoticed"], each["hung"])
        latencies = (f"{each[name]:.1f}" for name in ("p50", "p99", "worst"))
        table.add_row(each["name"], f"{each['seconds']:g}", *map(str, counts), *latencies)
    table.caption = "; ".join(f"{each['name']}: {each['happened']}" for each in phases if each["happened"])
    return table
