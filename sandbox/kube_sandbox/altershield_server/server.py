"""The server: it serves HTTP on loopback and keeps all orders in memory.

In a test:

    async with AlterShieldServer(token="secret", callback_url="http://127.0.0.1:8090/callback") as server:
        server.script.post.verdict = "fail"         # see script.Script
        ...                                         # a client calls server.url
        await server.settled()                      # all checks have ended, all callbacks were sent
        server.calls, server.callbacks, server.orders, server.nodes
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Self

import aiohttp
from aiohttp import web

from kube_sandbox.altershield_server.api import Api
from kube_sandbox.altershield_server.callbacks import Callback, Callbacks, callback_body
from kube_sandbox.altershield_server.calls import Calls
from kube_sandbox.altershield_server.checks import Checks, Clock, Sleep
from kube_sandbox.altershield_server.control import Control
from kube_sandbox.altershield_server.nodes import Node
from kube_sandbox.altershield_server.operations import Operations, Scene
from kube_sandbox.altershield_server.orders import Order
from kube_sandbox.altershield_server.rules import Execution, verdict_body
from kube_sandbox.altershield_server.script import Script
from kube_sandbox.altershield_server.tasks import Tasks
from kube_sandbox.altershield_server.vocabulary import PLATFORM, Stage

_HOST = "127.0.0.1"
_MAX_BODY = 1 << 20  # bytes


class AlterShieldServer:
    """One server with its own orders. Call `start` and `stop`, or use `async with`.

    It serves on a free port. With a `token`, signatures must be right; without one, requests still need the three
    headers, but any signature is accepted. `clock` returns Unix seconds. `sleep` waits for delays and timeouts; a test
    can simulate time with it. Delays of 0 s end after one turn of the event loop.
    """

    def __init__(
        self,
        *,
        token: str = "",
        platform: str = PLATFORM,
        callback_url: str | None = None,
        scenes: Iterable[Scene] = (Scene(),),
        script: Script | None = None,
        clock: Clock = time.time,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.token = token
        self.platform = platform
        self.script = script or Script()
        self._port = 0
        self._tasks = Tasks()
        self._operations = Operations(scenes={scene.key: scene for scene in scenes}, script=self._script)
        self._callbacks = Callbacks(
            url=callback_url, platform=platform, token=token, script=self._script, clock=clock, sleep=sleep
        )
        self._api = Api(
            operations=self._operations,
            checks=Checks(self._script, self._callbacks.deliver, self._tasks, clock, sleep),
            script=self._script,
            platform=platform,
            token=token,
            clock=clock,
            sleep=sleep,
        )
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://{_HOST}:{self._port}"

    @property
    def callback_url(self) -> str | None:
        return self._callbacks.url

    @callback_url.setter
    def callback_url(self, url: str | None) -> None:
        self._callbacks.url = url

    @property
    def calls(self) -> Calls:
        """The newest calls, also those that failed."""
        return self._api.calls

    @property
    def callbacks(self) -> deque[Callback]:
        """The newest callbacks."""
        return self._callbacks.sent

    @property
    def orders(self) -> dict[tuple[str, str], Order]:
        """By platform and the client's order id."""
        return self._operations.orders

    @property
    def nodes(self) -> dict[str, Node]:
        """By node id, the oldest first."""
        return self._operations.nodes

    async def settled(self) -> None:
        """Wait until all checks that are under way have ended and their callbacks were sent."""
        await self._tasks.settled()

    async def send_callback(self, node: Node, stage: Stage, verdict: str) -> int | None:
        """Send a signed callback without a check. Returns the HTTP status, or None without an answer."""
        return await self.send_verdict(node, stage, verdict, node.checks[stage].executions)

    async def send_verdict(self, node: Node, stage: Stage, verdict: str, rules: Sequence[Execution]) -> int | None:
        """Send a signed callback with these rules. A callback about an earlier run has its rules, or none."""
        content = callback_body(node, stage, verdict_body(verdict, rules))
        return (await self._callbacks.post(content))[0]

    async def start(self) -> None:
        self._callbacks.session = aiohttp.ClientSession(trust_env=False, connector=aiohttp.TCPConnector(limit=100))
        await self.listen()

    async def stop(self) -> None:
        """Close the listener and cancel all checks."""
        await self.close_listener()
        await self._tasks.cancel()
        if self._callbacks.session is not None:
            await self._callbacks.session.close()
            self._callbacks.session = None

    async def listen(self) -> None:
        """Accept connections again, on the same port."""
        app = web.Application(client_max_size=_MAX_BODY)
        app.add_routes([*self._api.routes(), *Control(self).routes()])
        self._api.stopping.clear()
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, _HOST, self._port).start()
        self._port = self._runner.addresses[0][1]

    async def close_listener(self) -> None:
        """Connections are refused, and open ones are closed, until `listen`. Checks and callbacks go on."""
        self._api.stopping.set()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.stop()

    def _script(self) -> Script:
        return self.script
