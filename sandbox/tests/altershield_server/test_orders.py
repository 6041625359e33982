"""Orders, nodes and the calls that change no check: E1 to E4, E9, E11 to E13."""

import json
from typing import Any

import pytest

from kube_sandbox.altershield_server import operations
from kube_sandbox.altershield_server.operations import Scene
from kube_sandbox.altershield_server.script import Heartbeat
from kube_sandbox.altershield_server.server import AlterShieldServer
from kube_sandbox.altershield_server.vocabulary import PLATFORM, SCENE, Call, NodeKind
from support.altershield import BODIES, ORDER, TOKEN, Caller


async def test_new_order_has_a_server_id(caller: Caller) -> None:
    envelope = await caller.call(Call.CREATE_ORDER)
    order = caller.server.orders[PLATFORM, ORDER]
    assert envelope == {
        "success": True,
        "resultCode": "000",
        "msg": None,
        "domain": {"orderId": order.server_id, "url": order.server_id},
    }


async def test_second_order_with_the_same_id_is_refused_with_106_and_the_first_is_kept(caller: Caller) -> None:
    await caller.create_order()
    code, _ = await caller.code(Call.CREATE_ORDER, changeTitle="another")
    assert code == "106"
    assert caller.server.orders[PLATFORM, ORDER].request["changeTitle"] == "web: release 42"


async def test_same_id_of_another_platform_is_another_order(caller: Caller) -> None:
    await caller.create_order()
    await caller.create_order(platform="other")  # the platform of the header is not compared
    assert len(caller.server.orders) == 2


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"changeScenarioCode": "02"}, "unknown changeScenarioCode:02"),
        ({"changePhases": ["prod_phase", "night"]}, "unknown changePhases:['night']"),
    ],
)
async def test_unknown_constant_of_an_order_is_refused_with_101(
    caller: Caller, members: dict[str, Any], message: str
) -> None:
    assert await caller.code(Call.CREATE_ORDER, **members) == ("101", message)


@pytest.mark.parametrize(
    "members",
    [{"creator": "x" * 57}, {"changeContents": None}, {"changePhases": []}, {"changePhases": ["DEV_PHASE"] * 15}],
)
async def test_valid_order_that_the_database_refuses_is_901(caller: Caller, members: dict[str, Any]) -> None:
    assert (await caller.code(Call.CREATE_ORDER, **members))[0] == "901"
    assert caller.server.orders == {}


@pytest.mark.parametrize("call", [Call.START_ORDER, Call.START_BATCH, Call.START_ACTION, Call.CLOSE_ORDER])
async def test_call_for_an_unknown_order_is_refused_with_101(caller: Caller, call: Call) -> None:
    message = f"none order found for platform:{PLATFORM}, bizExecOrderId={ORDER}"
    assert await caller.code(call) == ("101", message)


async def test_each_start_of_the_same_batch_creates_a_node_with_its_own_callback(caller: Caller) -> None:
    await caller.create_order()
    nodes = [await caller.start_batch() for _ in range(3)]
    assert len({*nodes}) == 3
    assert all(len(node) == 36 for node in nodes)
    await caller.server.settled()
    assert sorted(each.node for each in caller.server.callbacks) == sorted(nodes)


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (Call.START_ORDER, NodeKind.ORDER),
        (Call.START_BATCH, NodeKind.BATCH),
        (Call.START_ACTION, NodeKind.ACTION),
    ],
)
async def test_start_answers_with_a_node_of_its_kind(caller: Caller, call: Call, kind: NodeKind) -> None:
    await caller.create_order()
    domain = (await caller.call(call))["domain"]
    assert domain == {"nodeId": domain["nodeId"], "skipCheck": False, "url": domain["nodeId"]}
    assert caller.server.nodes[domain["nodeId"]].kind == kind


async def test_batch_of_a_scene_without_batch_step_is_refused_with_101(session: Any) -> None:
    async with AlterShieldServer(token=TOKEN, scenes=[Scene(key=SCENE, has_batch_step=False)]) as server:
        caller = Caller(server, session)
        await caller.create_order()
        code, message = await caller.code(Call.START_BATCH)
        assert code == "101"
        assert message.startswith("illegal start notify request type")


@pytest.mark.parametrize("state", ["SUCCESS", "ROLLBACK", "CANCEL"])
async def test_close_succeeds_again_and_again_and_stores_nothing(caller: Caller, state: str) -> None:
    await caller.create_order()
    for _ in range(2):
        envelope = await caller.call(Call.CLOSE_ORDER, finishState=state)
        assert envelope == {"success": True, "resultCode": "000", "msg": None, "domain": None}
    assert [each["finishState"] for each in caller.server.orders[PLATFORM, ORDER].closings] == [state, state]
    await caller.start_batch()  # also after the close


async def test_close_with_an_unknown_state_is_refused_with_101(caller: Caller) -> None:
    await caller.create_order()
    assert await caller.code(Call.CLOSE_ORDER, finishState="DONE") == ("101", "unknown finishState:DONE")


async def test_event_succeeds_without_code_and_its_repetition_without_domain(caller: Caller) -> None:
    first, second = [await caller.call(Call.EVENT) for _ in range(2)]
    assert (first["success"], first["resultCode"], set(first["domain"])) == (True, None, {"orderId", "url"})
    assert (second["success"], second["resultCode"], second["domain"]) == (True, None, None)
    assert (await caller.code(Call.EVENT, finishTime=None))[0] == "101"


async def test_rules_of_a_node_answer_with_an_empty_body(caller: Caller) -> None:
    body = json.dumps({**BODIES[Call.RULES], "nodeId": "n", "defenseStage": "PRE"})
    assert await caller.raw(Call.RULES, body.encode()) == (200, b"")


async def test_heartbeat_reports_the_switches(caller: Caller) -> None:
    checks, scenes = "OPSCLOUD_CLIENT_SWITCH_CHG_SRV_CHECK", "OPSCLOUD_CLIENT_SWITCH_OFF_CHANGE_SCENE_KEYS"
    assert (await caller.heartbeat({}))["domain"] == {checks: "true", scenes: ""}
    caller.server.script.heartbeat = Heartbeat(checks=False, off_scenes=[SCENE, "other"])
    assert (await caller.heartbeat({"platform": PLATFORM}))["domain"] == {checks: "false", scenes: f"{SCENE},other"}


async def test_unknown_path_is_status_404_and_a_get_of_a_call_405(caller: Caller) -> None:
    for path, status in (("/openapi/v1/exe/unknown", 404), (Call.POLL.path, 405)):
        async with caller.session.get(caller.server.url + path) as response:
            assert response.status == status


async def test_oldest_orders_and_nodes_are_dropped_when_there_are_too_many(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "MAX_ORDERS", 2)
    monkeypatch.setattr(operations, "MAX_NODES", 2)
    for number in range(3):
        await caller.create_order(bizExecOrderId=f"order-{number}")
        await caller.start_batch(bizExecOrderId=f"order-{number}")
    assert [order for _, order in caller.server.orders] == ["order-1", "order-2"]
    assert [node.order.id for node in caller.server.nodes.values()] == ["order-1", "order-2"]
