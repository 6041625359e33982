"""The states of a node in time: what polls, finishes, resubmits and skips say in each of them."""

import pytest

from kube_sandbox.altershield_server.nodes import Node
from kube_sandbox.altershield_server.script import CRASH, FAIL, NEVER, STUCK, RuleScript
from kube_sandbox.altershield_server.server import AlterShieldServer
from kube_sandbox.altershield_server.simulated_time import SimulatedTime
from kube_sandbox.altershield_server.vocabulary import Call, NodeState, Stage
from support.altershield import Caller, feedback

PRE, POST = Stage.PRE, Stage.POST


@pytest.fixture
def server(slow: AlterShieldServer) -> AlterShieldServer:
    return slow


@pytest.fixture
def caller(slow_caller: Caller) -> Caller:
    return slow_caller


@pytest.fixture
async def node(caller: Caller) -> Node:
    """A new node, whose PRE check takes 5 s."""
    await caller.create_order()
    return caller.server.nodes[await caller.start_batch()]


async def polls(caller: Caller, node: Node) -> tuple[str, str]:
    return await caller.poll(node.id, PRE), await caller.poll(node.id, POST)


async def test_poll_says_finished_and_fail_until_a_check_has_passed(
    caller: Caller, node: Node, simulated: SimulatedTime
) -> None:
    seen = [(node.state, await polls(caller, node))]
    await simulated.advance(4.9)
    seen.append((node.state, await polls(caller, node)))
    await simulated.advance(0.1)
    seen.append((node.state, await polls(caller, node)))
    await caller.call(Call.FINISH, nodeId=node.id)
    await simulated.advance(1)
    seen.append((node.state, await polls(caller, node)))
    await simulated.advance(4)
    seen.append((node.state, await polls(caller, node)))
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


async def test_failed_check_is_polled_as_fail_without_rules(
    caller: Caller, server: AlterShieldServer, node: Node, simulated: SimulatedTime
) -> None:
    await simulated.advance(5)
    server.script.post.verdict = FAIL
    await caller.call(Call.FINISH, nodeId=node.id)
    await simulated.advance(5)
    assert (node.state, await polls(caller, node)) == (NodeState.POST_AOP_FINISH, ("pass", "fail"))


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
    assert await polls(caller, node) == ("fail", "pass")


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
    assert (node.state, await polls(caller, node)) == (NodeState.POST_AOP_SUBMIT, ("pass", "pass"))
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
    assert await polls(caller, node) == ("pass", "fail")
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


async def test_expired_check_is_polled_as_fail_until_its_late_result_arrives(
    caller: Caller, server: AlterShieldServer, simulated: SimulatedTime
) -> None:
    server.script.pre.timeout = server.script.post.timeout = 2.0
    await caller.create_order()
    node = server.nodes[await caller.start_batch()]
    await simulated.advance(2)
    seen = [(node.state, await polls(caller, node))]
    await simulated.advance(3)
    seen.append((node.state, await polls(caller, node)))
    await caller.call(Call.FINISH, nodeId=node.id)
    await simulated.advance(2)
    seen.append((node.state, await polls(caller, node)))
    await simulated.advance(3)
    seen.append((node.state, await polls(caller, node)))
    assert seen == [
        (NodeState.PRE_AOP_TIMEOUT, ("fail", "fail")),
        (NodeState.PRE_AOP_TIMEOUT, ("pass", "fail")),
        (NodeState.POST_AOP_TIMEOUT, ("pass", "fail")),
        (NodeState.POST_AOP_FINISH, ("pass", "pass")),
    ]


async def test_late_pre_result_is_stored_as_the_post_result(
    caller: Caller, server: AlterShieldServer, simulated: SimulatedTime
) -> None:
    server.script.pre.timeout = 2.0
    server.script.pre.verdict = FAIL
    await caller.create_order()
    node = server.nodes[await caller.start_batch()]
    await simulated.advance(2)
    await caller.call(Call.FINISH, nodeId=node.id)
    await simulated.advance(3)  # the PRE result; the POST check would end 2 s later, with a pass
    assert (node.state, await caller.poll(node.id, POST)) == (NodeState.POST_AOP_FINISH, "fail")
    await simulated.advance(10)
    assert (node.state, await caller.poll(node.id, POST)) == (NodeState.POST_AOP_FINISH, "fail")


async def test_zero_timeout_expires_at_once(
    caller: Caller, server: AlterShieldServer, simulated: SimulatedTime
) -> None:
    server.script.pre.timeout = 0.0
    server.script.pre.delay = (0.0, 0.0)
    server.script.pre.verdict = NEVER
    await caller.create_order()
    node = server.nodes[await caller.start_batch()]
    await simulated.advance(0)
    assert (node.state, await caller.poll(node.id, PRE)) == (NodeState.PRE_AOP_TIMEOUT, "fail")


async def test_check_that_never_ends_times_out_and_one_that_is_stuck_does_not(
    caller: Caller, server: AlterShieldServer, simulated: SimulatedTime
) -> None:
    await caller.create_order()
    states = {}
    for verdict in (NEVER, STUCK):
        server.script.pre.verdict = verdict
        node = server.nodes[await caller.start_batch()]
        await simulated.advance(659)
        before = node.state
        await simulated.advance(100_000)
        states[verdict] = (before, node.state)
    assert states == {
        NEVER: (NodeState.PRE_AOP, NodeState.PRE_AOP_TIMEOUT),
        STUCK: (NodeState.PRE_AOP_SUBMIT, NodeState.PRE_AOP_SUBMIT),
    }


async def test_order_content_without_a_type_crashes_the_checks(caller: Caller, simulated: SimulatedTime) -> None:
    await caller.create_order(changeContents=[{"instanceName": "web"}])
    node = caller.server.nodes[await caller.start_batch()]
    await simulated.advance(5)
    assert (node.state, await caller.poll(node.id, PRE)) == (NodeState.PRE_AOP_FAIL, "fail")
    assert (await caller.call(Call.FINISH, nodeId=node.id))["success"]


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
        assert await polls(caller, node) == ("pass", "pass")
    assert caller.server.nodes[await caller.start_batch()].emergency is (scenario == "01")


async def test_check_without_rules_passes_at_once(
    caller: Caller, server: AlterShieldServer, simulated: SimulatedTime
) -> None:
    server.script.pre.rules = []
    await caller.create_order()
    node = await caller.start_batch()
    await simulated.advance(0)
    assert await caller.poll(node, PRE) == "pass"


async def test_failed_trial_rule_does_not_fail_the_check(
    caller: Caller, server: AlterShieldServer, simulated: SimulatedTime
) -> None:
    server.script.pre.rules = [RuleScript(name="trial", verdict="FAIL"), RuleScript()]
    await caller.create_order()
    node = server.nodes[await caller.start_batch()]
    await simulated.advance(5)
    assert await caller.poll(node.id, PRE) == "pass"
    assert [each.verdict for each in node.pre.executions] == ["FAIL", "PASS"]


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


async def test_crashed_check_allows_a_finish(
    caller: Caller, server: AlterShieldServer, simulated: SimulatedTime
) -> None:
    server.script.post.verdict = CRASH
    await caller.create_order()
    node = server.nodes[await caller.start_batch()]
    await simulated.advance(5)
    await caller.call(Call.FINISH, nodeId=node.id)
    await simulated.advance(5)
    assert (node.state, await polls(caller, node)) == (NodeState.POST_AOP_FAIL, ("pass", "fail"))
