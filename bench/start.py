"""Measures the time from the start of a gatekeeper until it is ready, on an empty cluster.

    python -m bench.start

The process reads its credentials from the files of a service account, as in a pod.
"""

import asyncio
import contextlib
import datetime
import os
import ssl
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import aiohttp
import typer

from bench.processes import Server, api
from kube_base.pki import Authority
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
_DAY = datetime.timedelta(days=1)


def main(rounds: Annotated[int, typer.Option(help="How often to start the gatekeeper.")] = 5) -> None:
    """Start a gatekeeper several times, and print the median and the minimum of the times."""
    times = asyncio.run(_run(rounds))
    walls, cpus = [wall for wall, _ in times], [cpu for _, cpu in times]
    print(f"ready after {statistics.median(walls):.2f} s (median of {rounds}, minimum {min(walls):.2f} s)")
    print(f"CPU time {statistics.median(cpus):.2f} s (minimum {min(cpus):.2f} s)")


async def _run(rounds: int) -> list[tuple[float, float]]:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        authority = Authority.create("bench", lifetime=_DAY)
        pair = authority.issue("bench", hosts=["127.0.0.1"], lifetime=_DAY)
        for file, content in (("tls.crt", pair.certificate), ("tls.key", pair.key), ("token", b"bench")):
            (directory / file).write_bytes(content)
        (directory / "ca.crt").write_bytes(authority.pair.certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(directory / "tls.crt", directory / "tls.key")
        async with api({}, context) as port:
            return [await _start(directory, port) for _ in range(rounds)]


async def _start(directory: Path, api_port: int) -> tuple[float, float]:
    webhook, plain = free_ports(2)
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _START, str(directory), "--host", "127.0.0.1"),
        *("--port", str(webhook), "--metrics-port", str(plain), "--shutdown-delay", "0"),
        *("--tls-cert-file", str(directory / "tls.crt"), "--tls-private-key-file", str(directory / "tls.key")),
        env={**os.environ, "KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(api_port)},
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with aiohttp.ClientSession() as client, asyncio.timeout(60):
            while True:
                with contextlib.suppress(aiohttp.ClientError):
                    async with client.get(f"http://127.0.0.1:{plain}/readyz") as answer:
                        if answer.status == 200:
                            return time.perf_counter() - began, Server(process, webhook).cpu
                await asyncio.sleep(0.005)
    finally:
        process.kill()
        await process.wait()


if __name__ == "__main__":
    typer.run(main)
