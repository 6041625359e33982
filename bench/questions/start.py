"""How long does a gatekeeper take until it is ready, on an empty cluster?

Measured: the wall time and the CPU time from the start of the process until /readyz answers 200. The process reads its
credentials from the files of a service account, as in a pod.

How to read it: the wall time includes other load of the machine; the least CPU time is what the code costs.
"""

import asyncio
import ssl
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import aiohttp
import typer

from altershield.process.health import is_ready
from bench.harness.answer import Answer
from bench.harness.proc import cpu
from bench.harness.servers import LOOPBACK, certificate, running
from bench.harness.stub_api import api
from kube_base.processes import free_ports

_START = """
import sys
from pathlib import Path
from kube_base.access import configuration
configuration.SERVICE_ACCOUNT = Path(sys.argv.pop(1))
from altershield.process.startup import main
from gatekeeper.__main__ import app
main(app)
"""


async def ask(rounds: Annotated[int, typer.Option(min=1, help="How often to start the gatekeeper.")] = 5) -> Answer:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        tls = certificate(directory)
        (directory / "token").write_text("bench")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(directory / "tls.crt", directory / "tls.key")
        async with api({}, context) as port:
            times = [await _start(directory, tls, port) for _ in range(rounds)]
    walls, cpus = [wall for wall, _ in times], [cpu for _, cpu in times]
    notes = [
        f"ready after {statistics.median(walls):.2f} s (median of {rounds}, minimum {min(walls):.2f} s)",
        f"CPU time {statistics.median(cpus):.2f} s (minimum {min(cpus):.2f} s)",
    ]
    return Answer({"seconds": walls, "cpu_seconds": cpus}, notes=notes)


async def _start(directory: Path, tls: list[str], api_port: int) -> tuple[float, float]:
    """The wall time and the CPU time until a gatekeeper is ready, in seconds."""
    webhook, health = free_ports(2)
    command = [
        *(sys.executable, "-c", _START, str(directory), "--host", LOOPBACK, "--port", str(webhook)),
        *("--metrics-port", str(health), "--shutdown-delay", "0", *tls),
    ]
    api_server = {"KUBERNETES_SERVICE_HOST": LOOPBACK, "KUBERNETES_SERVICE_PORT": str(api_port)}
    began = time.perf_counter()
    async with running(command, more=api_server) as process, aiohttp.ClientSession() as client, asyncio.timeout(60):
        while not await is_ready(client, health):  # noqa: ASYNC110  (no event tells the state of another process)
            await asyncio.sleep(0.005)
        return time.perf_counter() - began, cpu(process.pid)
