"""The effects of each call on orders and nodes, without time or I/O."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kube_sandbox.altershield_server.binding import Body
from kube_sandbox.altershield_server.errors import CrashError, RefusedError
from kube_sandbox.altershield_server.nodes import Node
from kube_sandbox.altershield_server.orders import Order
from kube_sandbox.altershield_server.rules import verdict_body
from kube_sandbox.altershield_server.script import Script
from kube_sandbox.altershield_server.vocabulary import (
    EMERGENCY_SCENARIO,
    FINISH_STATES,
    PHASES,
    SCENARIOS,
    SCENE,
    Call,
    Code,
    NodeKind,
    Stage,
)

MAX_ORDERS = 20_000
MAX_NODES = 100_000
_STARTED = {
    Call.START_ORDER: NodeKind.ORDER,
    Call.START_BATCH: NodeKind.BATCH,
    Call.START_ACTION: NodeKind.ACTION,
}
_MAX_CREATOR = 56  # bytes; columns of the database
_MAX_PHASES = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A registered kind of change."""

    key: str = SCENE
    has_batch_step: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The answer to a call, and the check that it starts."""

    domain: Any = None
    success: bool = True
    code: Code | None = Code.OK
    message: str | None = None
    starts: tuple[Node, Stage] | None = None


@dataclass(slots=True, kw_only=True)
class Operations:
    """The state of the server. The oldest orders and nodes are dropped when there are too many."""

    scenes: Mapping[str, Scene]
    script: Callable[[], Script]
    orders: dict[tuple[str, str], Order] = field(default_factory=dict)
    """By platform and the client's order id."""

    nodes: dict[str, Node] = field(default_factory=dict)
    events: dict[tuple[str, str], Body] = field(default_factory=dict)

    def handle(self, call: Call, request: Body) -> Result:
        """Raises RefusedError or CrashError."""
        match call:
            case Call.CREATE_ORDER:
                return self._create_order(request)
            case Call.START_ORDER | Call.START_BATCH | Call.START_ACTION:
                return self._start(request, _STARTED[call])
            case Call.FINISH:
                return self._finish(request)
            case Call.POLL:
                return self._poll(request)
            case Call.RESUBMIT:
                node = self._node(request)
                node.resubmit()
                return Result(domain=_receipt(node, skip_check=False), starts=(node, Stage.PRE))
            case Call.SKIP:
                return self._skip(request)
            case Call.CLOSE_ORDER:
                return self._close(request)
            case Call.EVENT:
                return self._event(request)
            case Call.RULES:
                raise CrashError("the published server has no implementation of this call")
            case Call.HEARTBEAT:
                return self._heartbeat()

    def _create_order(self, request: Body) -> Result:
        self._scene(request)
        order = self._new_order(request)
        if (order.platform, order.id) in self.orders:
            raise RefusedError(Code.DUPLICATE_ORDER, f"duplicate order: {order.platform}, {order.id}")
        self.orders[order.platform, order.id] = order
        _bound(self.orders, MAX_ORDERS)
        return Result(domain={"orderId": order.server_id, "url": order.server_id})

    def _start(self, request: Body, kind: NodeKind) -> Result:
        """A new node, also for the same batch: the call is not idempotent."""
        scene = self._scene(request)
        if kind == NodeKind.BATCH and not scene.has_batch_step:
            raise _illegal("illegal start notify request type: the change scene has no batch step")
        order = self._order(request)
        emergency = request["emergency"]
        node = Node(
            id=str(uuid.uuid4()),
            kind=kind,
            order=order,
            scene=scene.key,
            emergency=order.scenario == EMERGENCY_SCENARIO if emergency is None else emergency,
            start=request,
            batch=request.get("batchNo"),
        )
        self.nodes[node.id] = node
        _bound(self.nodes, MAX_NODES)
        return Result(domain=_receipt(node, skip_check=False), starts=(node, Stage.PRE))

    def _finish(self, request: Body) -> Result:
        node = self._node(request)
        starts = node.finish(request)
        # The published server always says `skipCheck: true` here, and runs the check nevertheless.
        return Result(domain=_receipt(node, skip_check=True), starts=(node, Stage.POST) if starts else None)

    def _poll(self, request: Body) -> Result:
        node, stage = self._node(request), Stage(request["defenseStage"])
        passed = node.poll(stage)
        if self.script().unfinished_polls and node.runs(stage):
            return Result(domain={"finished": False, "verdict": None, "url": node.id})
        # A check without a result is `fail` too, also while it runs.
        verdict = verdict_body("pass" if passed else "fail", [], msg=None, nodeId=node.id, url=node.id)
        return Result(domain={"finished": True, "verdict": verdict, "url": node.id})

    def _skip(self, request: Body) -> Result:
        node = self._node(request)
        feedback = request["feedbackVOList"]
        if not feedback:
            raise _illegal("feedbackVOList must not be empty")
        reason = node.skip(Stage(request["defenseStage"]), [each["ruleExeId"] for each in feedback])
        if reason:
            return Result(success=False, message=reason)  # with code 000
        return Result(domain={"checkFinished": True, "blockRuleExeIds": []})

    def _close(self, request: Body) -> Result:
        if request["changeSceneKey"] not in self.scenes:
            raise RefusedError(Code.SERVER_ERROR, f"change scene:{request['changeSceneKey']} not found")
        order = self._order(request)
        if request["finishState"] not in FINISH_STATES:
            raise _illegal(f"unknown finishState:{request['finishState']}")
        order.close(request)
        return Result()

    def _event(self, request: Body) -> Result:
        self._scene(request)
        order = self._new_order(request)
        key = (order.platform, order.id)
        if key in self.events:
            return Result(code=None)
        self.events[key] = request
        _bound(self.events, MAX_ORDERS)
        return Result(code=None, domain={"orderId": order.server_id, "url": order.server_id})

    def _heartbeat(self) -> Result:
        switches = self.script().heartbeat
        return Result(
            domain={
                "OPSCLOUD_CLIENT_SWITCH_CHG_SRV_CHECK": "true" if switches.checks else "false",
                "OPSCLOUD_CLIENT_SWITCH_OFF_CHANGE_SCENE_KEYS": ",".join(switches.off_scenes),
            }
        )

    def _new_order(self, request: Body) -> Order:
        scenario, phases = request["changeScenarioCode"], request["changePhases"]
        if scenario not in SCENARIOS:
            raise _illegal(f"unknown changeScenarioCode:{scenario}")
        if unknown := [phase for phase in phases if str(phase).lower() not in PHASES]:
            raise _illegal(f"unknown changePhases:{unknown}")
        joined = ",".join(phases)
        if (
            not joined
            or len(joined) > _MAX_PHASES
            or len(request["creator"].encode()) > _MAX_CREATOR
            or request["changeContents"] is None
        ):
            raise RefusedError(Code.SERVER_ERROR, "the order cannot be stored")  # validation allows these values
        return Order(
            id=request["bizExecOrderId"],
            server_id=str(uuid.uuid4()),
            platform=request["platform"],
            scene=request["changeSceneKey"],
            scenario=scenario,
            request=request,
        )

    def _scene(self, request: Body) -> Scene:
        key = request["changeSceneKey"]
        if key not in self.scenes:
            raise _illegal(f"change scene:{key} not found")
        return self.scenes[key]

    def _order(self, request: Body) -> Order:
        platform, order = request["platform"], request["bizExecOrderId"]
        if (platform, order) not in self.orders:
            raise _illegal(f"none order found for platform:{platform}, bizExecOrderId={order}")
        return self.orders[platform, order]

    def _node(self, request: Body) -> Node:
        """The node of the request. Its order and platform are not compared with those of the request."""
        self._scene(request)
        if (node := self.nodes.get(request["nodeId"])) is None:
            raise RefusedError(Code.NOT_SUPPORTED, f"node not found, nodeId:{request['nodeId']}")
        return node


def _illegal(message: str) -> RefusedError:
    return RefusedError(Code.ILLEGAL_ARGUMENT, message)


def _receipt(node: Node, *, skip_check: bool) -> Body:
    return {"nodeId": node.id, "skipCheck": skip_check, "url": node.id}


def _bound(kept: dict[Any, Any], limit: int) -> None:
    while len(kept) > limit:
        del kept[next(iter(kept))]
