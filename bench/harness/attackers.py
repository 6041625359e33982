"""Hostile callers of the gatekeeper, without credentials, in a process of their own.

python -m bench.harness.attackers NAME PORT
"""

import asyncio
import contextlib
import functools
import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import typer
import uvloop

from altershield.admission.webhooks import webhook_path
from bench.harness.reviews import write_reviews
from bench.harness.servers import module, running
from kube_base.resources import DEPLOYMENTS

ATTACKERS = 40
EVERYTHING = "everything"
"""The name of all attacks at once."""
PATH = webhook_path(DEPLOYMENTS, mutating=True)
MIB = 2**20
_PART = 256 * 1024  # bytes that an attacker writes at a time
_REPORT_SECONDS = 0.1


def head(length: int, *more: str) -> bytes:
    lines = [f"POST {PATH} HTTP/1.1", "Host: gatekeeper", "Content-Type: application/json", f"Content-Length: {length}"]
    return "\r\n".join([*lines, *more, "", ""]).encode()


_DEEP = b"[" * 200 + b"]" * 200
_DENSE = b'{"a":[1,2,3],"b":4}'  # almost as many lists and objects as are refused
_SMALL = (
    b'{"a":[1,2,3],"b":"' + b"x" * 84 + b'"}'
)  # 64 KiB of it have almost as many values as a review may have that is decoded without waiting for a turn


def nested(size: int, value: bytes = _DEEP) -> bytes:
    """A review of about `size` bytes whose template consists of copies of this value."""
    labels = b'"metadata":{"name":"x"},"apiVersion":"apps/v1","kind":"Deployment"'
    start = (
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE",'
        b'"name":"x","namespace":"default","object":{' + labels + b',"spec":{"template":{"spec":['
    )
    end = b"]}}}}}"
    count = (size - len(start) - len(end)) // (len(value) + 1)
    return start + b",".join([value] * count) + end


@dataclass
class Sent:
    """The totals of the attackers: opened connections, completely sent requests, and bytes."""

    connections: int = 0
    requests: int = 0
    bytes: int = 0


Attack = Callable[[int], Awaitable[None]]
_sent = Sent()


@functools.cache
def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    opened = await asyncio.open_connection("127.0.0.1", port, ssl=_context())
    _sent.connections += 1
    return opened


async def send(writer: asyncio.StreamWriter, data: bytes) -> None:
    for start in range(0, len(data), _PART):
        writer.write(data[start : start + _PART])
        await writer.drain()
        _sent.bytes += len(data[start : start + _PART])


def sending(body: bytes) -> Attack:
    """Send this review repeatedly, on one connection until it is closed."""

    async def attack(port: int) -> None:
        reader, writer = await connected(port)
        with contextlib.closing(writer):
            while True:
                await send(writer, head(len(body)) + body)
                _sent.requests += 1
                length = 0
                while line := (await reader.readline()).strip():
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                if not length:
                    return
                await reader.readexactly(length)

    return attack


async def unfinished(port: int) -> None:
    """Three bodies of 8 MiB whose last byte does not come."""
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(_unfinished(port))


async def _unfinished(port: int) -> None:
    reader, writer = await connected(port)
    with contextlib.closing(writer):
        await send(writer, head(8 * MIB) + b" " * (8 * MIB - 1))
        await reader.readline()


async def idle(port: int) -> None:
    """25 connections without a handshake: 1,000 of all attackers."""
    writers = []
    try:
        for _ in range(25):
            writers.append(await asyncio.open_connection("127.0.0.1", port))
            _sent.connections += 1
        await writers[-1][0].read(1)
    finally:
        for _, writer in writers:
            writer.close()


async def handshake(port: int) -> None:
    """A connection that is closed after the handshake."""
    _, writer = await connected(port)
    writer.close()


def attacks() -> dict[str, Attack]:
    with tempfile.TemporaryDirectory() as name:
        (large, *_) = (file.read_bytes() for file in write_reviews(Path(name), "3MB", 3_000_000))
    return {
        "8 MiB, wide and 200 deep": sending(nested(8 * MIB - 1024)),
        "256 KiB, wide and 200 deep": sending(nested(255 * 1024)),
        "32 KiB, wide and 200 deep": sending(nested(31 * 1024)),
        "64 KiB, 4,000 values": sending(nested(64 * 1024 - 64, _SMALL)),
        "3 MB, valid": sending(large),
        "8 MiB, dense": sending(nested(8 * MIB - 1024, _DENSE)),
        "256 KiB, dense": sending(nested(255 * 1024, _DENSE)),
        "120 unfinished bodies of 8 MiB": unfinished,
        "1,000 idle connections": idle,
        "TLS handshakes": handshake,
    }


class Attackers:
    """A process of attackers."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.sent = Sent()
        self._process = process
        self._started = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    @contextlib.asynccontextmanager
    async def running(cls, attack: str, port: int) -> AsyncIterator["Attackers"]:
        command = module("bench.harness.attackers", attack, str(port))
        async with running(command, stdout=asyncio.subprocess.PIPE) as process:
            attackers = cls(process)
            await attackers._started.wait()
            yield attackers
        await attackers._reading

    async def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101  (it is a pipe)
        async for line in self._process.stdout:
            with contextlib.suppress(ValueError):  # the process was killed while it wrote
                self.sent = Sent(**json.loads(line))
            self._started.set()


def main(name: str, port: int) -> None:
    """Run the attackers until they are killed. They print their totals. `name`: that of an attack, or `everything`."""
    kinds = attacks()
    chosen = list(kinds.values()) if name == EVERYTHING else [kinds[name]]

    async def again(act: Attack) -> None:
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, ExceptionGroup):
                await act(port)
            await asyncio.sleep(0.001)

    async def report() -> None:
        while True:
            print(json.dumps(asdict(_sent)), flush=True)
            await asyncio.sleep(_REPORT_SECONDS)

    async def run() -> None:
        await asyncio.gather(report(), *(again(chosen[number % len(chosen)]) for number in range(ATTACKERS)))

    uvloop.run(run())


if __name__ == "__main__":
    typer.run(main)
