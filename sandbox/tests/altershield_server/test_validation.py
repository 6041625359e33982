"""Which bodies are refused, and how."""

import json
from typing import Any

import pytest

from kube_sandbox.altershield_server.vocabulary import Call, Stage
from support.altershield import BODIES, NOW, Caller, feedback

REQUIRED = [
    (call, name, text)
    for call, names in {
        Call.CREATE_ORDER: ["changeTitle", "creator", "changeParamJson"],
        Call.START_ORDER: ["executor"],
        Call.START_BATCH: ["executor", "changePhase", "effectiveTargetType"],
        Call.FINISH: ["nodeId"],
        Call.POLL: ["nodeId"],
        Call.RESUBMIT: ["nodeId"],
        Call.SKIP: ["nodeId"],
        Call.CLOSE_ORDER: ["finishState"],
    }.items()
    for name in ["tenantCode", "changeSceneKey", "bizExecOrderId", "platform", *names]
    for text in (None, " ")
]


async def test_blank_required_field_is_refused_with_101(caller: Caller) -> None:
    for call, name, text in REQUIRED:
        members = {"nodeId": "n", "defenseStage": "PRE", name: text}
        assert await caller.code(call, **members) == ("101", f"{name} must not be blank"), (call, text)


async def test_message_has_a_line_for_each_wrong_field(caller: Caller) -> None:
    code, message = await caller.code(Call.CREATE_ORDER, tenantCode=None, creator="", changePhases=None)
    assert code == "101"
    assert set(message.split("\n")) == {
        "tenantCode must not be blank",
        "creator must not be blank",
        "changePhases must not be null",
    }


@pytest.mark.parametrize(
    ("name", "limit"),
    [("changeSceneKey", 256), ("bizExecOrderId", 128), ("platform", 32), ("changeTitle", 256), ("creator", 128)],
)
async def test_length_is_limited_in_utf_8_bytes(caller: Caller, name: str, limit: int) -> None:
    message = f"{name} must have at most {limit} bytes in UTF-8"
    assert await caller.code(Call.CREATE_ORDER, **{name: "é" * (limit // 2) + "a"}) == ("101", message)


@pytest.mark.parametrize("name", ["batchNo", "totalBatchNum", "totalBatchNumInChangePhase"])
async def test_batch_numbers_are_required_because_their_default_is_invalid(caller: Caller, name: str) -> None:
    await caller.create_order()
    message = f"{name} must be greater than or equal to 0"
    assert await caller.code(Call.START_BATCH, **{name: None}) == ("101", message)


async def test_locations_may_be_empty_but_not_null(caller: Caller) -> None:
    await caller.create_order()
    await caller.start_batch(effectiveTargetLocations=[])
    code, message = await caller.code(Call.START_BATCH, effectiveTargetLocations=None)
    assert (code, message) == ("101", "effectiveTargetLocations must not be null")


@pytest.mark.parametrize(("name", "text"), [("serviceResult", "{"), ("changeResultJsn", "no"), ("msg", "x" * 16385)])
async def test_wrong_result_texts_of_a_finish_are_refused_with_101(caller: Caller, name: str, text: str) -> None:
    assert (await caller.code(Call.FINISH, nodeId="n", **{name: text}))[0] == "101"


async def test_comment_of_a_skip_is_4_to_4096_bytes_long(caller: Caller) -> None:
    for comment in ("abc", "x" * 4097):
        reasons = [{**feedback("r")[0], "skipComments": comment}]
        code, message = await caller.code(Call.SKIP, nodeId="n", defenseStage="PRE", feedbackVOList=reasons)
        assert code == "101"
        assert message.startswith("feedbackVOList[0].skipComments must have at")


@pytest.mark.parametrize(
    ("call", "members"),
    [
        (Call.POLL, {"nodeId": "n", "defenseStage": "pre"}),
        (Call.SKIP, {"nodeId": "n", "defenseStage": "PRE", "feedbackVOList": [{"feedbackTypeEnum": "NONE"}]}),
        (Call.START_BATCH, {"batchNo": "first"}),
        (Call.START_BATCH, {"batchNo": 2**31}),
        (Call.START_BATCH, {"emergency": "maybe"}),
        (Call.START_BATCH, {"startTime": "2026-01-01T00:00:00"}),
        (Call.START_BATCH, {"startTime": "soon"}),
        (Call.START_BATCH, {"effectiveTargetLocations": "web-1"}),
        (Call.CREATE_ORDER, {"changeTitle": {}}),
        (Call.CREATE_ORDER, {"changeContents": [{"contentType": {}}, 1]}),
    ],
)
async def test_value_of_a_wrong_type_is_status_400(caller: Caller, call: Call, members: dict[str, Any]) -> None:
    status, _ = await caller.raw(call, json.dumps({**BODIES[call], **members}).encode())
    assert status == 400


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"text"', b"\xff{}"])
async def test_body_that_is_no_json_object_is_status_400(caller: Caller, body: bytes) -> None:
    assert (await caller.raw(Call.CREATE_ORDER, body))[0] == 400


async def test_body_with_another_content_type_is_status_415(caller: Caller) -> None:
    assert (await caller.raw(Call.CREATE_ORDER, b"{}", content_type="text/plain"))[0] == 415


async def test_unknown_fields_are_ignored(caller: Caller) -> None:
    await caller.create_order(changeTargets=["x"], tldcTenantCode="y")


async def test_scalars_and_dates_are_converted(caller: Caller) -> None:
    await caller.create_order(changeTitle=7, planStartTime="2023-11-14T22:13:20Z")
    node = await caller.start_batch(batchNo="3", startTime=NOW, emergency="true")
    stored = caller.server.nodes[node]
    assert (stored.batch, stored.start["startTime"], stored.emergency) == (3, NOW, True)
    order = stored.order.request
    assert (order["changeTitle"], order["planStartTime"]) == ("7", NOW)


async def test_poll_without_stage_is_refused_with_101(caller: Caller) -> None:
    assert await caller.code(Call.POLL, nodeId="n") == ("101", "defenseStage must not be null")


@pytest.mark.parametrize("call", [call for call in Call if call != Call.HEARTBEAT])
async def test_unknown_scene_is_refused(caller: Caller, call: Call) -> None:
    members: dict[str, Any] = {"changeSceneKey": "unknown"}
    if call in (Call.FINISH, Call.POLL, Call.RESUBMIT, Call.SKIP):
        members |= {"nodeId": "n", "defenseStage": Stage.PRE}
    if call == Call.RULES:
        return
    code, message = await caller.code(call, **members)
    assert code == ("901" if call == Call.CLOSE_ORDER else "101")
    assert "unknown" in message
