from collections.abc import AsyncIterator

import aiohttp
import pytest

from kube_sandbox.altershield_server.server import AlterShieldServer
from kube_sandbox.altershield_server.simulated_time import SimulatedTime
from support.altershield import TOKEN, Caller, Receiver, receiving


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


@pytest.fixture
async def server(receiver: Receiver) -> AsyncIterator[AlterShieldServer]:
    """A server whose checks end at once."""
    async with AlterShieldServer(token=TOKEN, callback_url=receiver.url) as server:
        yield server


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
def caller(server: AlterShieldServer, session: aiohttp.ClientSession) -> Caller:
    return Caller(server, session)


@pytest.fixture
def simulated() -> SimulatedTime:
    return SimulatedTime()


@pytest.fixture
async def slow(receiver: Receiver, simulated: SimulatedTime) -> AsyncIterator[AlterShieldServer]:
    """A server in simulated time; each check takes 5 s."""
    async with AlterShieldServer(
        token=TOKEN, callback_url=receiver.url, clock=simulated.clock, sleep=simulated.sleep
    ) as server:
        server.script.pre.delay = server.script.post.delay = (5.0, 5.0)
        yield server


@pytest.fixture
def slow_caller(slow: AlterShieldServer, session: aiohttp.ClientSession) -> Caller:
    return Caller(slow, session)
