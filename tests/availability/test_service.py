"""The Service of the measurements hides no failure: clients see every lost call, and a call counts as a loss only if a
gatekeeper was killed or hung."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench.availability.losses import Cause
from bench.availability.service import NEVER, Endpoint, Service
from kube_base.processes import free_ports
from tests.support.polling import until
from tests.unit.gatekeeper.serving import Files, trust

QUESTION = b"?" * 100


@dataclass
class Pod:
    """Answers each request with its name while `answers` is true."""

    name: bytes
    endpoint: Endpoint
    answers: bool = True
    open: list[asyncio.StreamWriter] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open.append(writer)
        with contextlib.suppress(ConnectionError):
            while await reader.read(1000):
                if self.answers:
                    writer.write(self.name)
        self.open.remove(writer)

    def die(self) -> None:
        for writer in self.open:
            writer.transport.abort()


def endpoint() -> Endpoint:
    port, health_port = free_ports(2)
    return Endpoint(port, health_port, ready=True)


def now() -> float:
    return asyncio.get_running_loop().time()


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, service: Service) -> "Client":
        return cls(*await asyncio.open_connection("127.0.0.1", service.port, ssl=trust()))

    async def ask(self) -> bytes:
        """The response. Empty if the connection ended instead."""
        self.writer.write(QUESTION)
        with contextlib.suppress(ConnectionError):
            return await self.reader.read(1000)
        return b""


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    service = Service()
    async with service.running():
        yield service


Start = Callable[[bytes], Awaitable[Pod]]


@pytest.fixture
async def start(service: Service, tmp_path: Path) -> AsyncIterator[Start]:
    """A function that starts a pod, which is a ready endpoint of the Service."""
    files = Files.at(tmp_path)
    files.issue()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.certificate, files.key)
    async with contextlib.AsyncExitStack() as stack:

        async def start(name: bytes) -> Pod:
            pod = Pod(name, endpoint())
            server = await asyncio.start_server(pod.serve, "127.0.0.1", pod.endpoint.port, ssl=context)
            await stack.enter_async_context(server)
            stack.callback(pod.die)
            service.endpoints.append(pod.endpoint)
            return pod

        yield start


def causes(service: Service) -> list[Cause]:
    return [loss.cause for loss in service.losses]


async def unanswered(client: Client) -> asyncio.Task[bytes]:
    """A request that has been sent and has no response yet."""
    asking = asyncio.create_task(client.ask())
    await asyncio.wait([asking], timeout=0.1)
    return asking


async def test_new_connections_go_to_ready_endpoints_and_established_ones_stay(service: Service, start: Start) -> None:
    a, _ = await start(b"a"), await start(b"b")
    first, second = await Client.connect(service), await Client.connect(service)
    assert {await first.ask(), await second.ask()} == {b"a", b"b"}
    a.endpoint.ready = False
    assert [await (await Client.connect(service)).ask() for _ in range(3)] == [b"b"] * 3
    assert {await first.ask(), await second.ask()} == {b"a", b"b"}
    assert service.losses == []


@pytest.mark.parametrize("before", [0, 1, 2])
async def test_a_call_in_flight_when_its_endpoint_is_killed_is_a_loss(
    service: Service, start: Start, before: int
) -> None:
    pod = await start(b"a")
    client = await Client.connect(service)
    assert [await client.ask() for _ in range(before)] == [b"a"] * before
    pod.answers = False
    began = now()
    asking = await unanswered(client)
    pod.endpoint.killed_at = now()
    pod.die()
    assert await asking == b""
    client.writer.close()
    await until(lambda: causes(service) == [Cause.UNDER_WAY], "the connection's end")
    assert began <= service.losses[0].asked <= pod.endpoint.killed_at


async def test_an_idle_connection_closed_by_a_kill_is_an_unnoticed_loss(service: Service, start: Start) -> None:
    pod = await start(b"a")
    client = await Client.connect(service)
    assert [await client.ask() for _ in range(2)] == [b"a"] * 2
    pod.endpoint.killed_at = now()
    pod.die()
    assert await client.reader.read() == b""
    client.writer.close()
    await until(lambda: causes(service) == [Cause.UNNOTICED], "the connection's end")
    assert service.losses[0].asked >= pod.endpoint.killed_at, "the loss counts from the end of the connection"


async def test_a_call_dropped_by_a_healthy_endpoint_is_not_a_loss(service: Service, start: Start) -> None:
    pod = await start(b"a")
    pod.answers = False
    asking = await unanswered(await Client.connect(service))
    pod.die()
    assert await asking == b""
    assert service.losses == []


async def test_a_new_connection_to_a_killed_endpoint_is_an_unnoticed_loss(service: Service) -> None:
    service.endpoints.append(endpoint())
    service.endpoints[0].killed_at = now()

    with pytest.raises(OSError):  # noqa: PT011  (a reset, or an error of TLS)
        await Client.connect(service)
    assert causes(service) == [Cause.UNNOTICED]


async def test_a_refused_connection_without_a_kill_is_not_a_loss(service: Service) -> None:
    service.endpoints.append(endpoint())

    with pytest.raises(OSError):  # noqa: PT011
        await Client.connect(service)
    assert service.losses == []


@pytest.mark.parametrize("hangs", [True, False])
async def test_an_abandoned_call_is_a_loss_only_if_the_endpoint_hung(
    service: Service, start: Start, hangs: bool
) -> None:
    pod = await start(b"a")
    client = await Client.connect(service)
    pod.answers = False
    asking = await unanswered(client)
    pod.endpoint.hung_at = now() if hangs else NEVER
    client.writer.transport.abort()
    await asking
    await until(lambda: not pod.open, "the connection's end")
    assert causes(service) == [Cause.HUNG] * hangs


async def test_a_connection_fails_if_there_are_no_endpoints(service: Service) -> None:
    with pytest.raises(OSError):  # noqa: PT011
        await Client.connect(service)
