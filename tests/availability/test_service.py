"""The Service of the measurements hides no failure: what is lost is seen by the client, and counted."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from altershield.processes import free_ports
from bench.availability.service import Endpoint, Service
from bench.availability.waiting import until

QUESTION = b"?" * 100


@dataclass
class Pod:
    """Answers each question with its name, as long as it knows an answer."""

    name: bytes
    endpoint: Endpoint
    ready: bool = True
    answers: bool = True
    open: list[asyncio.StreamWriter] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open.append(writer)
        while await reader.read(1000):
            if self.answers:
                writer.write(self.name)

    async def health(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        code = b"200" if self.ready else b"503"
        writer.write(b"HTTP/1.1 " + code + b" X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    def die(self) -> None:
        for writer in self.open:
            writer.transport.abort()


@contextlib.asynccontextmanager
async def running(name: bytes, service: Service) -> AsyncIterator[Pod]:
    pod = Pod(name, Endpoint(*free_ports(2)))
    async with (
        await asyncio.start_server(pod.serve, "127.0.0.1", pod.endpoint.port),
        await asyncio.start_server(pod.health, "127.0.0.1", pod.endpoint.health_port),
    ):
        service.endpoints.append(pod.endpoint)
        await until(lambda: pod.endpoint.ready, "the probe")
        yield pod
        pod.die()


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, service: Service) -> "Client":
        return cls(*await asyncio.open_connection("127.0.0.1", service.port))

    async def ask(self) -> bytes:
        """The answer; empty where the connection ended instead."""
        self.writer.write(QUESTION)
        with contextlib.suppress(ConnectionError):
            return await self.reader.read(1000)
        return b""


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    service = Service()
    async with service.running():
        yield service


async def test_only_ready_endpoints_get_new_connections_and_established_ones_stay(service: Service) -> None:
    async with running(b"a", service) as a, running(b"b", service):
        first, second = await Client.connect(service), await Client.connect(service)
        assert {await first.ask(), await second.ask()} == {b"a", b"b"}
        a.ready = False
        await until(lambda: not a.endpoint.ready, "the probe")
        assert [await (await Client.connect(service)).ask() for _ in range(3)] == [b"b"] * 3
        assert {await first.ask(), await second.ask()} == {b"a", b"b"}
    assert (service.cut, service.refused) == (0, 0)


async def test_a_request_that_an_endpoint_leaves_unanswered_fails_and_is_counted(service: Service) -> None:
    async with running(b"a", service) as a, running(b"b", service) as b:
        idle, waiting = await Client.connect(service), await Client.connect(service)
        await asyncio.gather(idle.ask(), waiting.ask())
        a.answers = b.answers = False
        asking = asyncio.create_task(waiting.ask())
        await asyncio.wait([asking], timeout=0.1)
        a.die()
        b.die()
        assert await asking == b""
        assert await idle.reader.read() == b""
        for client in (idle, waiting):
            client.writer.close()
        await until(lambda: service.cut == 1, "the connection's end")
    assert service.refused == 0


async def test_a_connection_to_a_dead_endpoint_fails_and_is_counted(service: Service) -> None:
    service.endpoints.append(Endpoint(*free_ports(2), ready=True))

    assert await (await Client.connect(service)).ask() == b""
    assert service.refused == 1


async def test_without_endpoints_a_connection_fails(service: Service) -> None:
    assert await (await Client.connect(service)).ask() == b""
