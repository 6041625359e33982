"""Resubmits, skips, emergencies, and further nodes of a batch."""

import pytest

from kube_sandbox.altershield_server.nodes import Node
from kube_sandbox.altershield_server.script import FAIL
from kube_sandbox.altershield_server.server import AlterShieldServer
from kube_sandbox.altershield_server.simulated_time import SimulatedTime
from kube_sandbox.altershield_server.vocabulary import Call, NodeState, Stage
from support.altershield import Caller, feedback

PRE, POST = Stage.PRE, Stage.POST


async def test_resubmit_runs_the_pre_check_of_the_same_node_again(
    caller: Caller, server: AlterShieldServer, simulated: SimulatedTime
) -> None:
    server.script.pre.verdict = FAIL
    await caller.create_order()
    node = server.nodes[await caller.start_batch()]
    assert (await caller.code(Call.RESUBMIT, nodeId=node.id))[0] == "103"
    await simulated.advance(5)
    server.script.pre.verdict = "pass"
    envelope = await caller.call(Call.RESUBMIT, nodeId=node.id)
    assert envelope["domain"] == {"nodeId": node.id, "skipCheck": False, "url": node.id}
    assert (await caller.code(Call.RESUBMIT, nodeId=node.id))[0] == "103"
    await simulated.advance(5)
    assert await caller.polls(node.id) == ("pass", "fail")
    assert [each.verdict for each in node.pre.executions] == ["FAIL", "PASS"]
    await caller.call(Call.FINISH, nodeId=node.id)
    await simulated.advance(5)
    assert (await caller.code(Call.RESUBMIT, nodeId=node.id))[0] == "103"


async def test_skip_freezes_the_node(caller: Caller, server: AlterShieldServer, simulated: SimulatedTime) -> None:
    server.script.pre.verdict = FAIL
    await caller.create_order()
    node = server.nodes[await caller.start_batch()]
    await simulated.advance(5)
    members = {
        "nodeId": node.id,
        "defenseStage": PRE,
        "feedbackVOList": feedback(*(each.id for each in node.pre.executions)),
    }
    envelope = await caller.call(Call.SKIP, **members)
    assert envelope["success"]
    assert envelope["domain"] == {"checkFinished": True, "blockRuleExeIds": []}
    assert node.state == NodeState.PRE_AOP_IGNORE
    refused = ("101", "exeNodeStateMachine is null by state:PRE_AOP_IGNORE")
    for call in (Call.FINISH, Call.POLL, Call.RESUBMIT, Call.SKIP):
        assert await caller.code(call, **members) == refused


async def test_skip_while_rules_run_does_not_succeed_but_turns_the_check_into_a_pass(
    caller: Caller, server: AlterShieldServer, simulated: SimulatedTime
) -> None:
    server.script.pre.verdict = FAIL
    await caller.create_order()
    node = server.nodes[await caller.start_batch()]
    reasons = feedback(*(each.id for each in node.pre.executions))
    code, message = await caller.code(Call.SKIP, nodeId=node.id, defenseStage=PRE, feedbackVOList=reasons)
    assert (code, message) == ("000", "rules of the node are not finished")
    await simulated.advance(5)
    assert await caller.poll(node.id, PRE) == "pass"


async def test_skip_of_unknown_rules_is_refused_with_000_and_of_no_rules_with_101(
    caller: Caller, node: Node, simulated: SimulatedTime
) -> None:
    await simulated.advance(5)
    members = {"nodeId": node.id, "defenseStage": PRE}
    assert (await caller.code(Call.SKIP, **members, feedbackVOList=feedback("unknown")))[0] == "000"
    assert (await caller.code(Call.SKIP, **members, feedbackVOList=[]))[0] == "101"
    assert (await caller.code(Call.SKIP, **members))[0] == "101"


@pytest.mark.parametrize(
    ("scenario", "emergency", "is_one"),
    [("00", True, True), ("01", None, True), ("01", False, False), ("00", None, False), ("00", False, False)],
)
async def test_emergency_passes_both_checks_at_once(
    caller: Caller, server: AlterShieldServer, simulated: SimulatedTime, scenario: str, emergency: bool, is_one: bool
) -> None:
    server.script.pre.verdict = server.script.post.verdict = FAIL
    await caller.create_order(changeScenarioCode=scenario)
    node = server.nodes[await caller.start_batch(emergency=emergency)]
    await simulated.advance(0)
    assert (await caller.poll(node.id, PRE) == "pass") is is_one
    if is_one:
        await caller.call(Call.FINISH, nodeId=node.id)
        await simulated.advance(0)
        assert await caller.polls(node.id) == ("pass", "pass")
    assert caller.server.nodes[await caller.start_batch()].emergency is (scenario == "01")


async def test_new_node_of_the_same_batch_runs_the_post_check_again(
    caller: Caller, server: AlterShieldServer, node: Node, simulated: SimulatedTime
) -> None:
    second = server.nodes[await caller.start_batch()]
    await simulated.advance(5)
    for each, verdict in ((node, FAIL), (second, "pass")):
        server.script.post.verdict = verdict
        await caller.call(Call.FINISH, nodeId=each.id)
    await simulated.advance(5)
    assert (await caller.poll(node.id, POST), await caller.poll(second.id, POST)) == ("fail", "pass")
