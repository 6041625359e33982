"""The form of callbacks, and what they say in each state."""

import json

import pytest

from kube_sandbox.altershield_server import signature
from kube_sandbox.altershield_server.script import CRASH, FAIL, NEVER, STUCK, RuleScript
from kube_sandbox.altershield_server.server import AlterShieldServer
from kube_sandbox.altershield_server.simulated_time import SimulatedTime
from kube_sandbox.altershield_server.vocabulary import PLATFORM, SCENE, Call, Stage
from support.altershield import ORDER, TOKEN, Caller, Receiver, finished_node, new_node
from support.polling import until


async def test_callback_is_signed_and_has_sorted_keys_without_nulls(caller: Caller, receiver: Receiver) -> None:
    node = await new_node(caller)
    await caller.server.settled()
    text, headers = receiver.bodies[0].decode(), receiver.headers[0]
    body = json.loads(text)
    assert text == json.dumps(body, sort_keys=True, separators=(",", ":"))
    assert "null" not in text
    assert headers["Content-Type"] == "application/json;UTF-8"
    assert headers["X-AlterShield-Platform"] == PLATFORM
    timestamp = int(headers["X-AlterShield-Timestamp"])
    assert timestamp > 1_700_000_000_000  # milliseconds
    assert headers["X-AlterShield-Sign"] == signature.sign(timestamp, text, TOKEN)
    assert body["changeCheckType"] == "CHANGE_BATCH"
    request = body["callbackRequest"]
    assert {**request, "verdict": None} == {
        "bizExecOrderId": ORDER,
        "changeSceneKey": SCENE,
        "defenseStageEnum": "PRE",
        "nodeId": node.id,
        "verdict": None,
    }
    assert set(request["verdict"]) == {"allFinish", "checkPass", "emergency", "rollback", "rules", "verdict"}


@pytest.mark.parametrize(
    ("call", "kind"),
    [(Call.START_ORDER, "CHANGE_ORDER"), (Call.START_BATCH, "CHANGE_BATCH"), (Call.START_ACTION, "CHANGE_ACTION")],
)
async def test_callback_names_the_kind_of_its_node(caller: Caller, receiver: Receiver, call: Call, kind: str) -> None:
    await caller.create_order()
    await caller.call(call)
    await caller.server.settled()
    assert json.loads(receiver.bodies[0])["changeCheckType"] == kind


async def test_failed_rules_are_in_the_callback(caller: Caller, receiver: Receiver) -> None:
    rule = RuleScript(name="error rate", owner="team-web", msg="5 % errors, 1 % allowed")
    caller.server.script.post.verdict = FAIL
    caller.server.script.post.rules = [rule, RuleScript(name="latency", verdict="PASS")]
    await finished_node(caller)
    verdict = receiver.requests()[1]["verdict"]
    assert {**verdict, "rules": None} == {
        "allFinish": True,
        "checkPass": False,
        "emergency": False,
        "rollback": False,
        "rules": None,
        "verdict": "fail",
    }
    first, second = verdict["rules"]
    assert (first["name"], first["owner"], first["msg"]) == ("error rate", "team-web", "5 % errors, 1 % allowed")
    assert (first["stage"], first["status"], first["verdict"]) == ("POST", "SUCCESS", "FAIL")
    assert (first["ignored"], first["allowIgnore"], first["riskLevel"]) == (False, True, "BLOCK")
    assert first["gmtStart"] <= first["gmtFinish"]
    assert (second["verdict"], "msg" in second) == ("PASS", False)


async def test_rules_before_a_resubmit_are_in_the_callback_too(caller: Caller, receiver: Receiver) -> None:
    caller.server.script.pre.verdict = FAIL
    node = await new_node(caller)
    await caller.server.settled()
    caller.server.script.pre.verdict = "pass"
    await caller.call(Call.RESUBMIT, nodeId=node.id)
    await caller.server.settled()
    assert receiver.verdicts() == [("PRE", "fail"), ("PRE", "pass")]
    rules = receiver.requests()[1]["verdict"]["rules"]
    assert [(each["relationId"], each["verdict"]) for each in rules] == [("pre-0", "FAIL"), ("pre-0", "PASS")]


@pytest.mark.parametrize("verdict", [NEVER, CRASH])
async def test_check_that_expires_or_crashes_is_called_back_as_pass_without_rules(
    caller: Caller, receiver: Receiver, verdict: str
) -> None:
    caller.server.script.pre.verdict = verdict
    caller.server.script.pre.timeout = 0.05
    node = await new_node(caller)
    await caller.server.settled()
    assert receiver.verdicts() == [("PRE", "pass")]
    assert receiver.requests()[0]["verdict"]["rules"] == []
    assert await caller.poll(node.id, Stage.PRE) == "fail"


async def test_late_result_sends_no_second_callback(caller: Caller, receiver: Receiver) -> None:
    script = caller.server.script.post
    script.verdict, script.timeout, script.delay = FAIL, 0.05, (0.2, 0.2)
    node = await finished_node(caller)
    assert receiver.verdicts() == [("PRE", "pass"), ("POST", "pass")]
    assert node.post.passed is False


async def test_stuck_check_sends_no_callback(caller: Caller, receiver: Receiver) -> None:
    caller.server.script.pre.verdict = STUCK
    await new_node(caller)
    await caller.server.settled()
    assert receiver.bodies == []


async def test_pre_callback_after_a_finish_says_pass_without_rules(
    slow: AlterShieldServer, slow_caller: Caller, receiver: Receiver, simulated: SimulatedTime
) -> None:
    slow.script.pre.verdict = FAIL
    slow.script.callbacks.delay = (1.0, 1.0)
    node = await new_node(slow_caller)
    await simulated.advance(5)
    assert node.pre.passed is False
    await slow_caller.call(Call.FINISH, nodeId=node.id)
    await simulated.advance(1)
    await until(lambda: len(receiver.bodies) == 1)
    first = receiver.requests()[0]
    assert (first["defenseStageEnum"], first["verdict"]["verdict"], first["verdict"]["rules"]) == ("PRE", "pass", [])


async def test_late_pre_result_is_called_back_as_the_post_result(
    slow: AlterShieldServer, slow_caller: Caller, receiver: Receiver, simulated: SimulatedTime
) -> None:
    slow.script.pre.timeout = 2.0
    slow.script.pre.verdict = FAIL
    node = await new_node(slow_caller)
    await simulated.advance(2)
    await slow_caller.call(Call.FINISH, nodeId=node.id)
    await simulated.advance(3)
    await until(lambda: len(receiver.bodies) == 2)
    assert receiver.verdicts() == [("PRE", "pass"), ("POST", "fail")]
    (rule,) = receiver.requests()[1]["verdict"]["rules"]
    assert (rule["status"], rule["verdict"]) == ("EXE", "NONE")


@pytest.mark.parametrize(
    ("verdict", "passes", "polled"),
    [("none", True, "pass"), ("inconc", False, "fail"), ("maybe", True, "fail")],
)
async def test_other_verdicts_are_called_back_as_they_are(
    caller: Caller, receiver: Receiver, verdict: str, passes: bool, polled: str
) -> None:
    caller.server.script.post.verdict = verdict
    node = await finished_node(caller)
    found = receiver.requests()[1]["verdict"]
    assert (found["verdict"], found["checkPass"]) == (verdict, passes)
    assert await caller.poll(node.id, Stage.POST) == polled
