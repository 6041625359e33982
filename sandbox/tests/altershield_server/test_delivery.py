"""Each callback is sent once, unless the script loses, duplicates, delays or reorders it."""

import pytest

from kube_sandbox.altershield_server import callbacks
from kube_sandbox.altershield_server.script import FAIL
from kube_sandbox.altershield_server.server import AlterShieldServer
from kube_sandbox.altershield_server.simulated_time import SimulatedTime
from kube_sandbox.altershield_server.vocabulary import Call, Stage
from support.altershield import Caller, Receiver, finished_node, new_node
from support.polling import until


@pytest.mark.parametrize("status", [200, 500])
async def test_each_check_sends_one_callback_whatever_the_answer(
    caller: Caller, receiver: Receiver, status: int
) -> None:
    receiver.status = status
    await finished_node(caller)
    assert receiver.verdicts() == [("PRE", "pass"), ("POST", "pass")]
    assert [each.status for each in caller.server.callbacks] == [status, status]


async def test_callback_that_cannot_be_sent_is_not_sent_again(caller: Caller) -> None:
    caller.server.callback_url = "http://127.0.0.1:1/callback"
    await finished_node(caller)
    assert [(each.status, each.error.split(":")[0]) for each in caller.server.callbacks] == [
        (None, "ClientConnectorError")
    ] * 2


async def test_callback_gives_up_on_a_slow_receiver(
    caller: Caller, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callbacks.TIMEOUT.sock_connect == callbacks.TIMEOUT.sock_read == 6.0
    monkeypatch.setattr(callbacks, "TIMEOUT", callbacks.aiohttp.ClientTimeout(sock_read=0.5))
    receiver.delay = 30.0
    await new_node(caller)
    await caller.server.settled()
    assert [each.status for each in caller.server.callbacks] == [None]
    assert len(receiver.bodies) == 1


async def test_scene_without_callback_url_is_only_polled(caller: Caller, receiver: Receiver) -> None:
    caller.server.callback_url = None
    node = await finished_node(caller)
    assert await caller.poll(node.id, Stage.POST) == "pass"
    assert receiver.bodies == []


async def test_lost_callbacks_are_recorded_and_not_sent(caller: Caller, receiver: Receiver) -> None:
    caller.server.script.callbacks.lose = 1.0
    await finished_node(caller)
    assert receiver.bodies == []
    assert [each.error for each in caller.server.callbacks] == ["lost by the script"] * 2


async def test_duplicate_callbacks_are_the_same_bytes_two_times(caller: Caller, receiver: Receiver) -> None:
    caller.server.script.callbacks.duplicate = 1.0
    await new_node(caller)
    await caller.server.settled()
    assert len(receiver.bodies) == 2
    assert receiver.bodies[0] == receiver.bodies[1]
    assert receiver.headers[0]["X-AlterShield-Sign"] == receiver.headers[1]["X-AlterShield-Sign"]


async def test_late_callback_keeps_the_verdict_and_the_timestamp_of_its_creation(
    slow: AlterShieldServer, slow_caller: Caller, receiver: Receiver, simulated: SimulatedTime
) -> None:
    slow.script.callbacks.late, slow.script.callbacks.late_by = 1.0, (600.0, 600.0)
    slow.script.pre.verdict = FAIL
    node = await new_node(slow_caller)
    await simulated.advance(5)
    created = simulated.clock()
    await slow_caller.call(Call.FINISH, nodeId=node.id)
    await simulated.advance(599)
    assert not receiver.bodies
    await simulated.advance(1)
    await until(lambda: len(receiver.bodies) == 1)
    assert receiver.verdicts() == [("PRE", "fail")]
    assert receiver.headers[0]["X-AlterShield-Timestamp"] == str(int(created * 1000))


async def test_held_callback_arrives_after_a_later_one(caller: Caller, receiver: Receiver) -> None:
    faults = caller.server.script.callbacks
    await caller.create_order()
    faults.reorder = 1.0
    first = await caller.start_batch(batchNo=0)
    await until(lambda: caller.server.nodes[first].pre.passed is True)
    faults.reorder = 0.0
    second = await caller.start_batch(batchNo=1)
    await caller.server.settled()
    assert [each["nodeId"] for each in receiver.requests()] == [second, first]


async def test_held_callback_is_sent_after_5_s_without_another(
    slow: AlterShieldServer, slow_caller: Caller, receiver: Receiver, simulated: SimulatedTime
) -> None:
    slow.script.callbacks.reorder = 1.0
    await new_node(slow_caller)
    await simulated.advance(9.9)
    assert not slow.callbacks
    assert not receiver.bodies
    await simulated.advance(0.1)
    await until(lambda: len(receiver.bodies) == 1)


async def test_callback_can_arrive_before_the_answer_to_its_call(caller: Caller, receiver: Receiver) -> None:
    caller.server.script.callbacks.before_answer = True
    await caller.create_order()
    node = await caller.start_batch()
    assert [each["nodeId"] for each in receiver.requests()] == [node]  # without waiting for the server


async def test_test_can_send_any_signed_callback(caller: Caller, receiver: Receiver) -> None:
    node = await new_node(caller)
    await caller.server.settled()
    assert await caller.server.send_callback(node, Stage.POST, "fail") == 200
    assert receiver.verdicts() == [("PRE", "pass"), ("POST", "fail")]
