"""Each call, as the server receives it: method, path, and body field by field."""

import dataclasses
from typing import Any

import orjson
import pytest

from reconciler.server import messages
from reconciler.server.messages import BatchStart, FinishState, Location, Order, Stage, Workload
from reconciler.server.server_settings import Settings
from tests.unit.reconciler.server.fake_server import FINISH, NOW, ORDER, START, WORKLOAD, calling, success

SETTINGS = Settings(url="http://server")
SCENE = "com.alipay.altershield.kubernetes.rollingupdate"
BASE = {
    "tenantCode": "default",
    "changeSceneKey": SCENE,
    "bizExecOrderId": "shop/web/1",
    "platform": "kubernetes",
}
NAMES = {"namespace": "shop", "workloadType": "Deployment", "workloadName": "web"}
LISTS = {"namespace": ["shop"], "workloadType": ["Deployment"], "workloadName": ["web"]}
LONG = "発布" * 10_000


def size(text: str) -> int:
    return len(text.encode())


async def test_create_order_sends_the_order() -> None:
    async with calling() as (server, client):
        await client.create_order(
            Order(
                id="shop/web/1",
                title="web in shop",
                creator="jane",
                workload=Workload(namespace="shop", kind="Deployment", name="web", app="store"),
                params={"version": "abc", "batches": 3},
                url="http://git/1",
                parent="shop/web/0",
                emergency=True,
            )
        )
    request = server.requests[0]
    assert (request.method, request.path_qs) == ("POST", "/openapi/v1/exe/submitChangeExecOrder")
    fields = request.fields
    assert orjson.loads(fields.pop("changeParamJson")) == {"version": "abc", "batches": 3} | NAMES
    assert fields == BASE | {
        "changeTitle": "web in shop",
        "changeUrl": "http://git/1",
        "creator": "jane",
        "changePhases": ["prod_phase"],
        "changeContents": [{"contentType": {"typeName": "paas.pod"}, "instanceName": "shop/web"}],
        "changeApps": ["store"],
        "parentOrderInfo": {"orderId": "shop/web/0", "orderTitle": "shop/web/0", "orderUrl": ""},
        "changeScenarioCode": "01",
    }


def test_order_without_optional_values_has_all_required_fields_and_no_others() -> None:
    body = messages.order_body(SETTINGS, Order(id="shop/web/1", title="", creator="", workload=WORKLOAD))
    assert orjson.loads(body.pop("changeParamJson")) == NAMES
    assert body == BASE | {
        "changeTitle": "shop/web/1",
        "creator": "altershield",
        "changePhases": ["prod_phase"],
        "changeContents": [{"contentType": {"typeName": "paas.pod"}, "instanceName": "shop/web"}],
        "changeApps": ["web"],
    }


async def test_start_batch_sends_the_batch_and_returns_the_node() -> None:
    async with calling() as (server, client):
        server.answers = [success({"nodeId": "n1", "skipCheck": False, "url": ""})]
        start = BatchStart(
            order="shop/web/1",
            workload=WORKLOAD,
            number=2,
            total=2,
            last=True,
            pods=[Location(namespace="shop", pod="web-1", ip="10.0.0.1", host="node-1")] * 2,
            start_time=NOW + 0.25,
            emergency=True,
        )
        assert await client.start_batch(start) == "n1"
    request = server.requests[0]
    assert (request.method, request.path_qs) == ("POST", "/openapi/v1/exe/submitChangeExecBatchStartNotify")
    fields = request.fields
    (location,) = fields.pop("effectiveTargetLocations")
    assert orjson.loads(location) == {
        "app": "web",
        "hostName": "node-1",
        "workSpace": "default",
        "pod": "web-1",
        "ip": "10.0.0.1",
        "namespace": "shop",
    }
    assert fields == BASE | {
        "executor": "altershield",
        "batchNo": 1,
        "totalBatchNum": 2,
        "totalBatchNumInChangePhase": 2,
        "isLastBatchTag": "last",
        "isLastBatchInChangePhaseTag": "last",
        "changePhase": "prod_phase",
        "effectiveTargetType": "paas.pod",
        "extensionInfo": LISTS,
        "extInfo": NAMES,
        "startTime": 1_700_000_000_250,
        "emergency": True,
    }


def test_first_batch_has_number_0_and_is_not_the_last() -> None:
    body = messages.start_body(SETTINGS, START)
    assert body["batchNo"] == 0
    assert (body["isLastBatchTag"], body["isLastBatchInChangePhaseTag"]) == ("not_last", "not_last")
    assert {"emergency", "startTime", "trace"}.isdisjoint(body)


def test_total_number_of_batches_is_never_less_than_the_number_of_the_batch() -> None:
    body = messages.start_body(
        SETTINGS, BatchStart(order="o", workload=WORKLOAD, number=7, total=3, last=False, pods=[])
    )
    assert (body["totalBatchNum"], body["totalBatchNumInChangePhase"]) == (7, 7)
    assert body["effectiveTargetLocations"] == []


async def test_finish_batch_sends_result_and_time() -> None:
    async with calling() as (server, client):
        await client.finish_batch(FINISH)
    request = server.requests[0]
    assert (request.method, request.path_qs) == ("POST", "/openapi/v1/exe/submitChangeFinishNotify")
    assert request.fields == BASE | {
        "nodeId": "n1",
        "success": True,
        "msg": "",
        "finishTime": 1_700_000_000_000,
        "extensionInfo": LISTS,
    }


@pytest.mark.parametrize("stage", list(Stage))
async def test_poll_sends_node_and_stage(stage: Stage) -> None:
    async with calling() as (server, client):
        server.answers = [success({"finished": False, "verdict": None})]
        await client.poll("shop/web/1", "n1", stage)
    request = server.requests[0]
    assert (request.method, request.path_qs) == ("POST", "/openapi/v1/exe/retrieveChangeCheck")
    assert request.fields == BASE | {"nodeId": "n1", "defenseStage": stage.value}


@pytest.mark.parametrize("state", list(FinishState))
async def test_close_order_sends_state_message_and_time(state: FinishState) -> None:
    async with calling() as (server, client):
        await client.close_order("shop/web/1", state, "all batches passed")
    request = server.requests[0]
    assert (request.method, request.path_qs) == ("POST", "/openapi/v1/exe/finishChangeExecOrderAction")
    assert request.fields == BASE | {
        "finishState": state.value,
        "msg": "all batches passed",
        "finishTime": 1_700_000_000_000,
    }


async def test_resubmit_sends_the_node() -> None:
    async with calling() as (server, client):
        await client.resubmit("shop/web/1", "n1")
    request = server.requests[0]
    assert (request.method, request.path_qs) == ("POST", "/openapi/v1/exe/resubmitChangeStartNotifyAction")
    assert request.fields == BASE | {"nodeId": "n1"}


@pytest.mark.parametrize(("comment", "sent"), [("false alarm", "false alarm"), ("ok", "skipped: ok")])
async def test_skip_sends_each_rule_with_operator_and_comment(comment: str, sent: str) -> None:
    async with calling() as (server, client):
        await client.skip("shop/web/1", "n1", Stage.POST, ["r1", "r2"], "jane", comment)
    request = server.requests[0]
    assert (request.method, request.path_qs) == ("POST", "/openapi/v1/exe/skipChangeCheckAction")
    feedback = {
        "feedbackTypeEnum": "UNREASONABLE_RULE",
        "operator": "jane",
        "skipComments": sent,
        "traceIgnore": False,
    }
    assert request.fields == BASE | {
        "nodeId": "n1",
        "defenseStage": "POST",
        "feedbackVOList": [{"ruleExeId": "r1"} | feedback, {"ruleExeId": "r2"} | feedback],
    }


async def test_heartbeat_is_a_get_request_with_the_platform() -> None:
    async with calling() as (server, client):
        server.answers = [success({})]
        assert await client.enabled()
    request = server.requests[0]
    assert (request.method, request.path_qs) == ("GET", "/openapi/v1/heartbeat/config?platform=kubernetes")
    assert request.body == b""


def test_settings_appear_in_every_body() -> None:
    settings = dataclasses.replace(SETTINGS, platform="p", tenant="t", scene="s", phase="gray_phase")
    base = {"tenantCode": "t", "changeSceneKey": "s", "platform": "p"}
    bodies = [
        messages.order_body(settings, ORDER),
        messages.start_body(settings, START),
        messages.finish_body(settings, FINISH),
        messages.poll_body(settings, "o", "n", Stage.PRE),
        messages.close_body(settings, "o", FinishState.CANCEL, "", NOW),
    ]
    assert all(base.items() <= body.items() for body in bodies)
    assert bodies[0]["changePhases"] == ["gray_phase"]
    assert bodies[1]["changePhase"] == "gray_phase"


def test_long_texts_of_an_order_are_within_the_limits_in_bytes() -> None:
    order = Order(id=LONG, title=LONG, creator=LONG, workload=WORKLOAD, url="http://" + LONG, parent=LONG)
    body = messages.order_body(SETTINGS, order)
    assert size(body["bizExecOrderId"]) <= 128
    assert size(body["changeTitle"]) <= 256
    assert size(body["creator"]) <= 56
    assert "changeUrl" not in body
    assert body["parentOrderInfo"]["orderId"] == body["bizExecOrderId"]


def test_long_creators_that_differ_at_the_end_stay_different() -> None:
    creators = {
        messages.order_body(SETTINGS, Order(id="o", title="t", creator=f"{LONG}{end}", workload=WORKLOAD))["creator"]
        for end in "ab"
    }
    assert len(creators) == 2


def test_all_calls_of_an_order_shorten_its_id_alike() -> None:
    def changed(value: Any) -> Any:
        return type(value)(**{field: getattr(value, field) for field in value.__struct_fields__} | {"order": LONG})

    ids = {
        messages.order_body(SETTINGS, Order(id=LONG, title="t", creator="c", workload=WORKLOAD))["bizExecOrderId"],
        messages.start_body(SETTINGS, changed(START))["bizExecOrderId"],
        messages.finish_body(SETTINGS, changed(FINISH))["bizExecOrderId"],
        messages.poll_body(SETTINGS, LONG, "n", Stage.PRE)["bizExecOrderId"],
        messages.close_body(SETTINGS, LONG, FinishState.SUCCESS, "", NOW)["bizExecOrderId"],
    }
    assert len(ids) == 1


def test_long_messages_and_comments_are_cut() -> None:
    close = messages.close_body(SETTINGS, "o", FinishState.ROLLBACK, LONG, NOW)
    skip = messages.skip_body(SETTINGS, "o", "n", Stage.PRE, ["r"], "jane", LONG)
    assert size(close["msg"]) <= 16384
    assert size(skip["feedbackVOList"][0]["skipComments"]) <= 4096
