"""How many reviews does a gatekeeper answer in a second, how fast, and what does that cost?

Measured: the floor is the least that a webhook in Python does (`bench.harness.floor`: the same HTTP server, TLS and
event loop; it decodes each review and allows it). Both serve HTTPS with persistent connections, in turns, each alone on
one core; wrk sends from another core. Each round starts both again, because the speeds of two processes with the same
code differ by several percent. With `--other`, a third handler takes part in the turns: one in another language, or
another version of the gatekeeper.

A request is the update of a Deployment with a changed template, so that the gatekeeper does all of its work: parse,
compare, fingerprint, patch. The cache contains the ChangeWorkload of a rolled-back version, so the validating webhook
computes the fingerprint too. Then come deletions and evictions of pods: of pods without a budget, and of pods whose
budget allows no disruption. At last, 200,000 requests show whether memory grows.

How to read it: read the shares, not the rates. They are medians of the shares in each round. CPU per request depends
least on other load. Use a Python that is built with profile-guided optimization, as those of Debian and of the image
are: without it, the gatekeeper loses more than the floor server.
"""

import contextlib
import shlex
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import aiohttp
import typer
from rich.table import Table

from altershield.admission.webhooks import webhook_path
from bench.harness import pod_reviews
from bench.harness.answer import Answer
from bench.harness.reviews import write_reviews
from bench.harness.servers import Server, module, port, serving
from bench.harness.stub_api import gatekeeper_on_a_stub
from bench.harness.wrk import CONNECTIONS, SERVER_CORE, Compared, Run, check_machine, compared, in_turns, load
from kube_base.resources import DEPLOYMENTS, PODS

SIZES = {"8 KB": 8_000, "64 KB": 64_000, "1 MB": 1_000_000}
MUTATING_PATH = webhook_path(DEPLOYMENTS, mutating=True)
VALIDATING_PATH = webhook_path(DEPLOYMENTS, mutating=False)
_DELETIONS = webhook_path(PODS, mutating=False)
_EVICTIONS = webhook_path(PODS, "eviction", mutating=False)
_PODS = {
    "8 KB pod": (_DELETIONS, pod_reviews.deletion(pod_reviews.FREE)),
    "eviction": (_EVICTIONS, pod_reviews.eviction(pod_reviews.FREE)),
    "8 KB pod, refused": (_DELETIONS, pod_reviews.deletion(pod_reviews.FROZEN)),
    "eviction, refused": (_EVICTIONS, pod_reviews.eviction(pod_reviews.FROZEN)),
}
_FLOOR, _GATEKEEPER, _OTHER = 0, 1, 2

Bodies = dict[tuple[str, str], list[Path]]
"""The files with reviews, by the size and the path."""


async def ask(
    seconds: Annotated[float, typer.Option(help="Seconds of one run.")] = 4,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds with new processes.")] = 5,
    memory_requests: Annotated[int, typer.Option(help="Requests between two readings of the memory.")] = 200_000,
    other: Annotated[
        str,
        typer.Option(
            metavar="COMMAND",
            help="Another handler of the same reviews that serves HTTPS on loopback. {port}, {certificate}, {key} and "
            "{kubeconfig} in the command are replaced.",
        ),
    ] = "",
) -> Answer:
    check_machine()
    memory: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        bodies = _bodies(directory)
        runs: dict[tuple[str, str], list[list[Run]]] = {key: [] for key in bodies}
        for number in range(1, rounds + 1):
            print(f"round {number} of {rounds} …", flush=True)
            async with _servers(directory, other) as servers:
                for (size, path), files in bodies.items():
                    runs[size, path].append(await in_turns(servers, path, files, seconds))
                if number == rounds:
                    memory = await _memory(servers[_GATEKEEPER], bodies["8 KB", MUTATING_PATH], memory_requests)
    tables = [_table("gatekeeper compared with the floor server", runs, _FLOOR)]
    if other:
        tables.append(_table("gatekeeper compared with the other handler", runs, _OTHER))
    rows = [{"size": size, "path": path, "runs": _figures(found)} for (size, path), found in runs.items()]
    said = "memory: {before} MiB after the runs above, {after} MiB after {requests:,} more requests".format(**memory)
    figures = {"aiohttp": aiohttp.__version__, "connections": CONNECTIONS, "rows": rows, "memory": memory}
    return Answer(figures, tables, [said])


def _bodies(directory: Path) -> Bodies:
    bodies = {}
    for size, length in SIZES.items():
        bodies[size, MUTATING_PATH] = bodies[size, VALIDATING_PATH] = write_reviews(directory, size, length)
    for size, (path, make) in _PODS.items():
        bodies[size, path] = write_reviews(directory, size.replace(",", ""), SIZES["8 KB"], make)
    return bodies


@contextlib.asynccontextmanager
async def _servers(directory: Path, other: str) -> AsyncIterator[list[Server]]:
    """The floor server, the gatekeeper, and the other handler if there is one."""
    async with gatekeeper_on_a_stub(directory, SERVER_CORE) as gatekeeper, contextlib.AsyncExitStack() as stack:
        files = {"certificate": directory / "tls.crt", "key": directory / "tls.key"}

        async def start(name: str, command: Sequence[str], own: int) -> Server:
            return await stack.enter_async_context(serving(command, own, directory / f"{name}.log", SERVER_CORE))

        own = port()
        command = module("bench.harness.floor", str(own), str(files["certificate"]), str(files["key"]))
        servers = [await start("floor", command, own), gatekeeper]
        if other:
            own = port()
            given = {"port": own, "kubeconfig": directory / "kubeconfig", **files}
            servers.append(await start("other", [part.format_map(given) for part in shlex.split(other)], own))
        yield servers


async def _memory(gatekeeper: Server, bodies: list[Path], requests: int) -> dict[str, int]:
    before, sent = gatekeeper.resident, 0
    print(f"memory over {requests:,} requests …", flush=True)
    while sent < requests:
        for path in (MUTATING_PATH, VALIDATING_PATH):
            sent += round((await load(gatekeeper, path, bodies, 5)).rate * 5)
    return {"before": before, "after": gatekeeper.resident, "requests": sent}


def _figures(rounds: list[list[Run]]) -> dict[str, Any]:
    """The medians of each server compared with the floor server, and of the gatekeeper with the other handler."""
    names = ("floor", "gatekeeper", "other")[: len(rounds[0])]
    found = {name: asdict(compared(rounds, own, _FLOOR)) for own, name in enumerate(names)}
    return found | ({"with other": asdict(compared(rounds, _GATEKEEPER, _OTHER))} if "other" in names else {})


def _table(title: str, runs: dict[tuple[str, str], list[list[Run]]], against: int) -> Table:
    table = Table("body", "path", title=title)
    for column in ("its req/s", "req/s", "share", "its p99", "p99 ms", "times", "its CPU", "CPU µs"):
        table.add_column(column, justify="right")
    for (size, path), rounds in runs.items():
        its, ours = (compared(rounds, own, against) for own in (against, _GATEKEEPER))
        table.add_row(size, path.split("-")[0], *_cells(its, ours))
    return table


def _cells(its: Compared, ours: Compared) -> list[str]:
    rates = (f"{its.rate:,.0f}", f"{ours.rate:,.0f}", f"{ours.share:.0%}")
    latencies = (f"{its.p99:.2f}", f"{ours.p99:.2f}", f"{ours.times:.2f}")
    return [*rates, *latencies, f"{its.cpu:,.0f}", f"{ours.cpu:,.0f}"]
