"""A client of the AlterShield server, and a receiver of its callbacks."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

from kube_sandbox.altershield_server import signature
from kube_sandbox.altershield_server.nodes import Node
from kube_sandbox.altershield_server.vocabulary import PLATFORM, SCENE, Call, Stage

TOKEN = "altershield-operator"
NOW = 1_700_000_000_000
ORDER = "prod/web/42"

Json = dict[str, Any]


@dataclass
class Caller:
    """Sends signed calls. The bodies are valid; keyword arguments replace their members, None removes one."""

    server: Any
    """An AlterShieldServer, or any object with its `url`."""

    session: aiohttp.ClientSession
    token: str = TOKEN
    headers: dict[str, str] = field(default_factory=dict)
    """Replace the headers of the signature, if not empty."""

    async def raw(self, call: Call, body: bytes, *, content_type: str = "application/json") -> tuple[int, bytes]:
        """Status and body of the answer to a POST."""
        text = body.decode(errors="replace").replace("\r", "").replace("\n", "")
        headers = self.headers or signature.headers(PLATFORM, self.token, text, NOW)
        headers = {**headers, "Content-Type": content_type}
        async with self.session.post(self.server.url + call.path, data=body, headers=headers) as response:
            return response.status, await response.read()

    async def call(self, call: Call, **members: Any) -> Json:
        """The envelope."""
        body = {name: value for name, value in {**BODIES[call], **members}.items() if value is not None}
        status, answer = await self.raw(call, json.dumps(body).encode())
        assert status == 200, answer
        envelope: Json = json.loads(answer)
        return envelope

    async def heartbeat(self, query: Json) -> Json:
        content = signature.get_content(query)
        headers = self.headers or signature.headers(PLATFORM, self.token, content, NOW)
        url = self.server.url + Call.HEARTBEAT.path
        async with self.session.get(url, params=query, headers=headers) as response:
            envelope: Json = await response.json()
            return envelope

    async def create_order(self, **members: Any) -> None:
        assert (await self.call(Call.CREATE_ORDER, **members))["success"]

    async def start_batch(self, **members: Any) -> str:
        """The new node's id. The PRE check may still run."""
        node: str = (await self.call(Call.START_BATCH, **members))["domain"]["nodeId"]
        return node

    async def poll(self, node: str, stage: Stage) -> str:
        """The verdict of a poll."""
        domain = (await self.call(Call.POLL, nodeId=node, defenseStage=stage))["domain"]
        assert domain["finished"] is True
        assert domain["verdict"]["rules"] == []
        verdict: str = domain["verdict"]["verdict"]
        return verdict

    async def polls(self, node: str) -> tuple[str, str]:
        """The verdicts of a PRE and of a POST poll."""
        return await self.poll(node, Stage.PRE), await self.poll(node, Stage.POST)

    async def code(self, call: Call, **members: Any) -> tuple[str, str]:
        """Result code and message of a call that does not succeed."""
        envelope = await self.call(call, **members)
        assert envelope["success"] is False
        assert envelope["domain"] is None
        return envelope["resultCode"], envelope["msg"]


BASE = {"tenantCode": "tenant", "changeSceneKey": SCENE, "bizExecOrderId": ORDER, "platform": PLATFORM}
_FEEDBACK = {"feedbackTypeEnum": "EXCEPTION", "operator": "alice", "skipComments": "known problem"}
BODIES: dict[Call, Json] = {
    Call.CREATE_ORDER: {
        **BASE,
        "changeTitle": "web: release 42",
        "creator": "alice",
        "changePhases": ["prod_phase"],
        "changeContents": [{"contentType": {"typeName": "paas.pod"}, "instanceName": "web"}],
        "changeParamJson": "{}",
        "changeApps": ["web"],
    },
    Call.START_ORDER: {**BASE, "executor": "alice"},
    Call.START_BATCH: {
        **BASE,
        "executor": "alice",
        "batchNo": 0,
        "totalBatchNum": 2,
        "totalBatchNumInChangePhase": 2,
        "changePhase": "prod_phase",
        "effectiveTargetType": "paas.pod",
        "effectiveTargetLocations": ["web-1"],
    },
    Call.START_ACTION: {
        **BASE,
        "executor": "alice",
        "changeKey": "action",
        "changePhase": "prod_phase",
        "changeParamJson": "{}",
        "effectiveTargetType": "paas.pod",
        "effectiveTargetLocations": [],
    },
    Call.FINISH: {**BASE, "finishTime": NOW},
    Call.POLL: BASE,
    Call.RESUBMIT: BASE,
    Call.SKIP: BASE,
    Call.RULES: BASE,
    Call.CLOSE_ORDER: {**BASE, "finishState": "SUCCESS"},
}
BODIES[Call.EVENT] = {**BODIES[Call.CREATE_ORDER], "executor": "alice", "finishTime": NOW}


def feedback(*executions: str) -> list[Json]:
    """`feedbackVOList` for these executions of rules."""
    return [{"ruleExeId": each, **_FEEDBACK} for each in executions]


async def new_node(caller: Caller, **members: Any) -> Node:
    """A node in a new order. Its PRE check may still run."""
    await caller.create_order()
    return caller.server.nodes[await caller.start_batch(**members)]


async def finished_node(caller: Caller, **members: Any) -> Node:
    """A node whose two checks have ended."""
    node = await new_node(caller, **members)
    await caller.server.settled()
    await caller.call(Call.FINISH, nodeId=node.id)
    await caller.server.settled()
    return node


@dataclass
class Receiver:
    """Records the callbacks that it gets. `answer` is the status and the seconds before it."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    status: int = 200
    delay: float = 0.0

    def requests(self) -> list[Json]:
        return [json.loads(body)["callbackRequest"] for body in self.bodies]

    def verdicts(self) -> list[tuple[str, str]]:
        """Stage and verdict of each callback."""
        return [(each["defenseStageEnum"], each["verdict"]["verdict"]) for each in self.requests()]


@contextlib.asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()

    async def receive(request: web.Request) -> web.Response:
        receiver.bodies.append(await request.read())
        receiver.headers.append(dict(request.headers))
        await asyncio.sleep(receiver.delay)
        return web.json_response({"success": False, "retry": True, "msg": None}, status=receiver.status)

    app = web.Application()
    app.add_routes([web.post("/openapi/altershield/callback", receive)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/openapi/altershield/callback"
    try:
        yield receiver
    finally:
        await runner.cleanup()
