"""Scripted faults of calls."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from kube_sandbox.altershield_server.script import Fault, FaultKind
from kube_sandbox.altershield_server.server import AlterShieldServer
from kube_sandbox.altershield_server.simulated_time import SimulatedTime
from kube_sandbox.altershield_server.vocabulary import PLATFORM, Call, Code
from support.altershield import BODIES, ORDER, Caller
from support.polling import until


async def outcome(caller: Caller, call: Call = Call.CREATE_ORDER, **members: Any) -> str:
    """`ok`, the result code, the HTTP status, `empty` or `dropped`."""
    try:
        status, body = await caller.raw(call, json.dumps({**BODIES[call], **members}).encode())
    except aiohttp.ServerDisconnectedError:
        return "dropped"
    if status != 200:
        return str(status)
    if not body:
        return "empty"
    envelope = json.loads(body)
    return "ok" if envelope["success"] else envelope["resultCode"]


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault(kind=FaultKind.REFUSE), "101"),
        (Fault(kind=FaultKind.REFUSE, code=Code.SERVER_ERROR), "901"),
        (Fault(kind=FaultKind.HTTP), "500"),
        (Fault(kind=FaultKind.HTTP, status=503), "503"),
        (Fault(kind=FaultKind.EMPTY), "empty"),
        (Fault(kind=FaultKind.DROP), "dropped"),
    ],
)
@pytest.mark.parametrize("processed", [False, True])
async def test_fault_applies_before_or_after_the_call_is_processed(
    caller: Caller, fault: Fault, expected: str, processed: bool
) -> None:
    fault.processed = processed
    caller.server.script.faults = [fault]
    assert await outcome(caller) == expected
    assert ((PLATFORM, ORDER) in caller.server.orders) is processed
    assert caller.server.calls[-1].fault == fault.kind


async def test_dropped_batch_start_leaves_a_node_that_the_client_does_not_know(caller: Caller) -> None:
    await caller.create_order()
    caller.server.script.faults = [Fault(kind=FaultKind.DROP, calls=[Call.START_BATCH], times=1, processed=True)]
    assert await outcome(caller, Call.START_BATCH) == "dropped"
    assert await outcome(caller, Call.START_BATCH) == "ok"
    await caller.server.settled()
    assert len(caller.server.nodes) == len(caller.server.callbacks) == 2


async def test_refusal_has_the_message_of_the_script(caller: Caller) -> None:
    caller.server.script.faults = [Fault(kind=FaultKind.REFUSE, message="变更窗口已关闭")]
    assert await caller.code(Call.CREATE_ORDER) == ("101", "变更窗口已关闭")


async def test_fault_applies_to_its_calls_orders_and_number_of_calls(caller: Caller) -> None:
    caller.server.script.faults = [
        Fault(kind=FaultKind.HTTP, calls=[Call.CREATE_ORDER], order="shop/*", skip=1, times=2),
    ]
    names = ["shop/1", "shop/2", "other", "shop/3", "shop/4"]
    assert [await outcome(caller, bizExecOrderId=name) for name in names] == ["ok", "500", "ok", "500", "ok"]
    assert await outcome(caller, Call.START_ORDER, bizExecOrderId="shop/1") == "ok"


async def test_replaced_fault_counts_from_zero(caller: Caller) -> None:
    for _ in range(2):
        caller.server.script.faults = [Fault(kind=FaultKind.HTTP, times=1)]
        assert await outcome(caller) == "500"


async def test_share_of_calls_is_the_same_in_each_run_with_the_same_seed(caller: Caller) -> None:
    async def run(seed: int) -> list[str]:
        server = AlterShieldServer(token=caller.token)
        server.script.seed = seed
        server.script.faults = [Fault(kind=FaultKind.HTTP, share=0.3)]
        async with server:
            return [
                await outcome(Caller(server, caller.session), bizExecOrderId=f"order-{number}") for number in range(100)
            ]

    first = await run(1)
    assert 15 <= first.count("500") <= 45
    assert first == await run(1) != await run(2)


async def test_share_is_decided_anew_when_a_call_is_repeated(caller: Caller) -> None:
    caller.server.script.faults = [Fault(kind=FaultKind.HTTP, share=0.5)]
    assert {await outcome(caller) for _ in range(30)} == {"500", "ok", "106"}


async def test_hanging_call_ends_when_the_server_stops(caller: Caller) -> None:
    caller.server.script.faults = [Fault(kind=FaultKind.HANG, processed=True)]
    call = asyncio.create_task(outcome(caller))
    await until(lambda: (PLATFORM, ORDER) in caller.server.orders)
    assert not call.done()
    await caller.server.stop()
    assert await call == "dropped"


async def test_slow_call_is_answered_late(
    slow: AlterShieldServer, slow_caller: Caller, simulated: SimulatedTime
) -> None:
    slow.script.faults = [Fault(kind=FaultKind.SLOW, seconds=30)]
    call = asyncio.create_task(outcome(slow_caller))
    await until(lambda: simulated.sleepers == 1)
    assert (PLATFORM, ORDER) in slow.orders
    await simulated.advance(29)
    assert simulated.sleepers == 1
    await simulated.advance(1)
    assert await call == "ok"


async def test_latency_delays_each_call(slow: AlterShieldServer, slow_caller: Caller, simulated: SimulatedTime) -> None:
    slow.script.latency = (2.0, 2.0)
    call = asyncio.create_task(outcome(slow_caller))
    await until(lambda: simulated.sleepers == 1)
    await simulated.advance(1.9)
    assert simulated.sleepers == 1
    assert slow.orders == {}
    await simulated.advance(0.1)
    assert await call == "ok"


async def test_server_that_is_down_drops_each_connection_but_not_those_of_the_sandbox(caller: Caller) -> None:
    caller.server.script.down = True
    assert await outcome(caller) == "dropped"
    assert [(each.call, each.fault) for each in caller.server.calls] == [(Call.CREATE_ORDER, "down")]
    async with caller.session.get(f"{caller.server.url}/sandbox/script") as response:
        assert (await response.json())["down"] is True
    caller.server.script.down = False
    assert await outcome(caller) == "ok"


async def test_closed_listener_refuses_connections_while_checks_go_on(caller: Caller) -> None:
    await caller.create_order()
    caller.server.script.pre.delay = (0.2, 0.2)
    await caller.start_batch()
    await caller.server.close_listener()
    async with aiohttp.ClientSession() as session:  # without a connection from before
        with pytest.raises(aiohttp.ClientConnectorError):
            await outcome(Caller(caller.server, session))
    await caller.server.settled()
    assert [each.status for each in caller.server.callbacks] == [200]
    await caller.server.listen()
    async with aiohttp.ClientSession() as session:
        assert await outcome(Caller(caller.server, session)) == "106"
