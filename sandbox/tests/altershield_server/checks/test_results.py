"""How checks end: results, late results, timeouts, crashes, trial rules."""

from kube_sandbox.altershield_server.nodes import Node
from kube_sandbox.altershield_server.script import CRASH, FAIL, NEVER, STUCK, RuleScript
from kube_sandbox.altershield_server.server import AlterShieldServer
from kube_sandbox.altershield_server.simulated_time import SimulatedTime
from kube_sandbox.altershield_server.vocabulary import Call, NodeState, Stage
from support.altershield import Caller

PRE, POST = Stage.PRE, Stage.POST


async def test_failed_check_is_polled_as_fail_without_rules(
    caller: Caller, server: AlterShieldServer, node: Node, simulated: SimulatedTime
) -> None:
    await simulated.advance(5)
    server.script.post.verdict = FAIL
    await caller.call(Call.FINISH, nodeId=node.id)
    await simulated.advance(5)
    assert (node.state, await caller.polls(node.id)) == (NodeState.POST_AOP_FINISH, ("pass", "fail"))


async def test_expired_check_is_polled_as_fail_until_its_late_result_arrives(
    caller: Caller, server: AlterShieldServer, simulated: SimulatedTime
) -> None:
    server.script.pre.timeout = server.script.post.timeout = 2.0
    await caller.create_order()
    node = server.nodes[await caller.start_batch()]
    await simulated.advance(2)
    seen = [(node.state, await caller.polls(node.id))]
    await simulated.advance(3)
    seen.append((node.state, await caller.polls(node.id)))
    await caller.call(Call.FINISH, nodeId=node.id)
    await simulated.advance(2)
    seen.append((node.state, await caller.polls(node.id)))
    await simulated.advance(3)
    seen.append((node.state, await caller.polls(node.id)))
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


async def test_crashed_check_allows_a_finish(
    caller: Caller, server: AlterShieldServer, simulated: SimulatedTime
) -> None:
    server.script.post.verdict = CRASH
    await caller.create_order()
    node = server.nodes[await caller.start_batch()]
    await simulated.advance(5)
    await caller.call(Call.FINISH, nodeId=node.id)
    await simulated.advance(5)
    assert (node.state, await caller.polls(node.id)) == (NodeState.POST_AOP_FAIL, ("pass", "fail"))
