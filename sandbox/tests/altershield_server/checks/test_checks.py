"""What polls and finishes say in each state of a node."""

import pytest

from kube_sandbox.altershield_server.nodes import Node
from kube_sandbox.altershield_server.script import FAIL
from kube_sandbox.altershield_server.server import AlterShieldServer
from kube_sandbox.altershield_server.simulated_time import SimulatedTime
from kube_sandbox.altershield_server.vocabulary import Call, NodeState, Stage
from support.altershield import Caller, feedback

PRE, POST = Stage.PRE, Stage.POST


async def test_poll_says_finished_and_fail_until_a_check_has_passed(
    caller: Caller, node: Node, simulated: SimulatedTime
) -> None:
    seen = [(node.state, await caller.polls(node.id))]
    await simulated.advance(4.9)
    seen.append((node.state, await caller.polls(node.id)))
    await simulated.advance(0.1)
    seen.append((node.state, await caller.polls(node.id)))
    await caller.call(Call.FINISH, nodeId=node.id)
    await simulated.advance(1)
    seen.append((node.state, await caller.polls(node.id)))
    await simulated.advance(4)
    seen.append((node.state, await caller.polls(node.id)))
    assert seen == [
        (NodeState.PRE_AOP, ("fail", "fail")),
        (NodeState.PRE_AOP, ("fail", "fail")),
        (NodeState.PRE_AOP_FINISH, ("pass", "fail")),
        (NodeState.POST_AOP, ("pass", "fail")),
        (NodeState.POST_AOP_FINISH, ("pass", "pass")),
    ]


async def test_poll_of_a_server_without_this_defect_says_unfinished(
    caller: Caller, node: Node, simulated: SimulatedTime
) -> None:
    caller.server.script.unfinished_polls = True
    envelope = await caller.call(Call.POLL, nodeId=node.id, defenseStage=PRE)
    assert envelope["domain"] == {"finished": False, "verdict": None, "url": node.id}
    await simulated.advance(5)
    assert await caller.poll(node.id, PRE) == "pass"


async def test_finish_is_refused_with_103_while_the_pre_check_runs(
    caller: Caller, server: AlterShieldServer, node: Node, simulated: SimulatedTime
) -> None:
    code, message = await caller.code(Call.FINISH, nodeId=node.id)
    assert (code, message) == ("103", f"402:unsupported operation in PRE_AOP, nodeId={node.id}")
    server.script.pre.start_delay = (5.0, 5.0)
    waiting = await caller.start_batch()
    assert (await caller.code(Call.FINISH, nodeId=waiting))[1].startswith("402:unsupported operation in PRE_AOP_SUBMIT")


async def test_finish_answers_with_skip_check_although_the_post_check_runs(
    caller: Caller, node: Node, simulated: SimulatedTime
) -> None:
    await simulated.advance(5)
    envelope = await caller.call(Call.FINISH, nodeId=node.id, success=False, msg="2 pods crash")
    assert envelope["domain"] == {"nodeId": node.id, "skipCheck": True, "url": node.id}
    assert node.finishes[-1]["success"] is False
    assert node.runs(POST)


async def test_finish_is_accepted_after_a_failed_pre_check(
    caller: Caller, server: AlterShieldServer, simulated: SimulatedTime
) -> None:
    server.script.pre.verdict = FAIL
    await caller.create_order()
    node = server.nodes[await caller.start_batch()]
    await simulated.advance(5)
    assert (await caller.call(Call.FINISH, nodeId=node.id))["success"]
    await simulated.advance(5)
    assert await caller.polls(node.id) == ("fail", "pass")


async def test_finish_sent_again_is_103_while_the_post_check_runs(
    caller: Caller, node: Node, simulated: SimulatedTime
) -> None:
    await simulated.advance(5)
    await caller.call(Call.FINISH, nodeId=node.id)
    await simulated.advance(1)
    code, message = await caller.code(Call.FINISH, nodeId=node.id)
    assert code == "103"
    assert message.startswith("402:unsupported operation in POST_AOP,")


async def test_finish_sent_again_after_the_post_check_starts_no_check(
    caller: Caller, server: AlterShieldServer, node: Node, simulated: SimulatedTime
) -> None:
    await simulated.advance(5)
    await caller.call(Call.FINISH, nodeId=node.id)
    await simulated.advance(5)
    server.script.post.verdict = FAIL
    assert (await caller.call(Call.FINISH, nodeId=node.id))["success"]
    await simulated.advance(3600)
    assert (node.state, await caller.polls(node.id)) == (NodeState.POST_AOP_SUBMIT, ("pass", "pass"))
    code, message = await caller.code(Call.FINISH, nodeId=node.id)
    assert (code, "POST_AOP_SUBMIT" in message) == ("103", True)


@pytest.mark.parametrize("call", [Call.FINISH, Call.POLL, Call.RESUBMIT, Call.SKIP])
async def test_unknown_node_is_refused_with_103(caller: Caller, call: Call) -> None:
    members = {"defenseStage": PRE, "feedbackVOList": feedback("r")}
    assert await caller.code(call, nodeId="none", **members) == ("103", "node not found, nodeId:none")


async def test_order_and_platform_of_a_finish_are_not_compared_with_the_node(
    caller: Caller, node: Node, simulated: SimulatedTime
) -> None:
    await simulated.advance(5)
    assert (await caller.call(Call.FINISH, nodeId=node.id, bizExecOrderId="x", platform="y"))["success"]
