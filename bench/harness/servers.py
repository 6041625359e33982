"""Starts programs, each on a core of its own if asked, with certificates and kubeconfigs."""

import asyncio
import contextlib
import datetime
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import yaml

from bench.harness import proc
from kube_base.errors import UsageError
from kube_base.pki import Authority
from kube_base.processes import free_ports

LOOPBACK = "127.0.0.1"
_START_SECONDS = 30.0
_DAY = datetime.timedelta(days=1)
PIPE, DEVNULL = subprocess.PIPE, subprocess.DEVNULL


@dataclass
class Server:
    """A process, and the port on which it serves."""

    process: asyncio.subprocess.Process
    port: int

    @property
    def cpu(self) -> float:
        """CPU time so far, in seconds."""
        return proc.cpu(self.process.pid)

    @property
    def waited(self) -> float:
        """Time so far in which its main thread was ready to run but had no core, in seconds."""
        return proc.waited(self.process.pid)

    @property
    def resident(self) -> int:
        """Resident memory in MiB."""
        return proc.memory(self.process.pid)


@contextlib.asynccontextmanager
async def running(
    command: Sequence[str],
    *,
    log: Path | None = None,
    core: int | None = None,
    more: Mapping[str, str] | None = None,
    stdin: int | None = None,
    stdout: int | None = None,
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a program until the block ends, then kill it. Its errors go to `log`, else nowhere. `more` are variables for
    its environment, which has no ALTERSHIELD_ variables of this one. `core`: it runs on this core only."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ALTERSHIELD_")}
    with log.open("wb") if log else contextlib.nullcontext(DEVNULL) as errors:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=stdin,
            stdout=stdout,
            stderr=errors,
            env={**environment, **(more or {})},
            preexec_fn=None if core is None else lambda: os.sched_setaffinity(0, {core}),
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            process.kill()
        await process.wait()


@contextlib.asynccontextmanager
async def serving(command: Sequence[str], port: int, log: Path, core: int | None = None) -> AsyncIterator[Server]:
    """Run a server with HTTPS at `port` until the block ends. Yields when it answers. UsageError if it does not."""
    async with running(command, log=log, core=core) as process:
        await _answering(process, port, log)
        yield Server(process, port)


async def _answering(process: asyncio.subprocess.Process, port: int, log: Path) -> None:
    """Wait until the server is ready. Only the gatekeeper has a readiness; of others, any response counts."""
    async with aiohttp.ClientSession() as session, asyncio.timeout(_START_SECONDS):
        while True:
            if process.returncode is not None:
                raise UsageError(f"a server ended during its start: {end_of(log)}")
            with contextlib.suppress(aiohttp.ClientError):
                async with session.get(f"https://{LOOPBACK}:{port}/readyz", ssl=False) as answer:
                    if answer.status != 503:
                        return
            await asyncio.sleep(0.05)


def end_of(log: Path) -> str:
    return log.read_text()[-1000:]


def module(name: str, *arguments: str) -> list[str]:
    """The command that runs a module with this Python."""
    return [sys.executable, "-m", name, *arguments]


def gatekeeper(kubeconfig: Path, port: int, tls: Sequence[str], *, metrics_port: int = 0) -> list[str]:
    """The command of a gatekeeper on loopback that ends at once. `tls`: the options of `certificate`."""
    return module(
        *("gatekeeper", "--kubeconfig", str(kubeconfig), "--host", LOOPBACK, "--port", str(port)),
        *("--metrics-port", str(metrics_port), "--shutdown-delay", "0", *tls),
    )


def reconciler(kubeconfig: Path, *, metrics_port: int) -> list[str]:
    """The command of a reconciler with the default thresholds."""
    return module("reconciler", "--kubeconfig", str(kubeconfig), "--metrics-port", str(metrics_port))


def certificate(directory: Path) -> list[str]:
    """Write a certificate for loopback, its key and its CA's certificate (`tls.crt`, `tls.key`, `ca.crt`). Returns the
    gatekeeper's options for them."""
    authority = Authority.create("bench", lifetime=_DAY)
    pair = authority.issue("bench", hosts=[LOOPBACK], lifetime=_DAY)
    (directory / "ca.crt").write_bytes(authority.pair.certificate)
    (directory / "tls.crt").write_bytes(pair.certificate)
    (directory / "tls.key").write_bytes(pair.key)
    return ["--tls-cert-file", str(directory / "tls.crt"), "--tls-private-key-file", str(directory / "tls.key")]


def write_kubeconfig(file: Path, server: str) -> Path:
    """Write a kubeconfig for the API at this URL. Returns its path."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bench", "cluster": {"server": server}}],
        "users": [{"name": "bench", "user": {"token": "none"}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "current-context": "bench",
    }
    file.write_text(yaml.safe_dump(content))
    return file


def port() -> int:
    """A free port on loopback."""
    return free_ports(1)[0]
