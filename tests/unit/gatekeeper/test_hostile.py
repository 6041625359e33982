"""Callers that send too much, too slowly or nothing: other callers still get answers."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client import generate_latest

from altershield.process import listener
from altershield.process.listener import Listener
from gatekeeper.errors import ReviewError
from gatekeeper.intake import body as intake
from gatekeeper.intake.body import MAX_BODY, Intake
from tests.support.polling import until

from .reviews import MUTATING_PATH, deployment, encode, review
from .serving import JSON, Served, head, post, raw, serving, session

SMALL = encode(review(deployment()))


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path) as served:
        yield served


def intake_of(served: Served) -> Intake:
    return served.gatekeeper._intake


async def answered(served: Served) -> bool:
    async with session() as client:
        return (await post(client, served.url(MUTATING_PATH), SMALL))[0] == 200


async def test_a_request_with_expect_100_continue_gets_100_and_then_an_answer(served: Served) -> None:
    reader, writer = await raw(served)
    writer.write(head(f"Content-Length: {len(SMALL)}", "Expect: 100-continue"))
    assert await reader.readline() == b"HTTP/1.1 100 Continue\r\n"
    assert await reader.readline() == b"\r\n"
    writer.write(SMALL)
    assert b" 200 " in await reader.readline()
    writer.close()


async def test_the_largest_body_gets_503_when_all_bodies_exceed_the_budget(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "BUDGET", 500_000)
    monkeypatch.setattr(intake, "_BODY_SECONDS", 3600.0)
    connections = []
    for size in (300_000, 150_000):
        reader, writer = await raw(served)
        writer.write(head(f"Content-Length: {size + 1}") + b" " * size)
        connections.append((reader, writer))

        async def arrived(least: int = size) -> bool:
            return intake_of(served).buffered >= least

        await until(arrived)
    third, writer = await raw(served)
    writer.write(head("Content-Length: 200001") + b" " * 200_000)
    assert b" 503 " in await connections[0][0].readline()
    assert await answered(served)
    assert intake_of(served).buffered <= 500_000
    for _, each in (*connections, (third, writer)):
        each.transport.abort()

    async def given_back() -> bool:
        return intake_of(served).buffered == 0

    await until(given_back)


async def test_no_bytes_stay_counted_after_an_answer_or_a_refusal(served: Served) -> None:
    wide = encode(review(deployment("WIDE"))).replace(b'"WIDE"', b"[" + b"[1,12345]," * 60_000 + b"[]]")
    many = encode(review(deployment("WIDE"))).replace(b'"WIDE"', b"[" + b"[1,12345]," * 300_000 + b"[]]")
    async with session() as client:
        codes = [(await post(client, served.url(MUTATING_PATH), data))[0] for data in (wide, many, b"x" * 100_000)]
    assert codes == [200, 413, 400]
    assert intake_of(served).buffered == 0
    assert await answered(served)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b" " * (MAX_BODY + 1), "larger than 8 MiB"),
        (SMALL.replace(b'"busybox"', b"[" + b"[1,12345]," * 300_000 + b"[]]"), "more than 200,000 values"),
        (SMALL.replace(b'"busybox"', b"[[]," * 20_000 + b"1" + b"]" * 20_000), "more lists and objects than"),
        (SMALL.replace(b'"busybox"', b"[" * 200 + b"1," * 200_000 + b"1" + b"]" * 200), "200,000 values"),
        (SMALL.replace(b'"busybox"', b"[" * 200 + b"1" * 300_000 + b"]" * 200), "nested more than 128 levels deep"),
    ],
)
async def test_the_answer_to_a_review_that_is_too_large_says_what_to_do(served: Served, data: bytes, says: str) -> None:
    async with session() as client:
        code, answer = await post(client, served.url(MUTATING_PATH), data)
    assert code == 413
    assert says in answer["message"]
    assert "make the object smaller: move large texts out of the pod template" in answer["message"]


async def test_a_connection_above_the_limit_closes_the_one_idle_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "_FIRST_REQUEST_SECONDS", 3600.0)

    async def handle(request: Any) -> Any:
        return aiohttp.web.Response(text="ok")

    served = Listener(handle, "127.0.0.1", 0, connections=8)
    await served.start()
    async with aiohttp.ClientSession() as client:
        url = f"http://127.0.0.1:{served.port}/"
        async with client.get(url) as answer:
            assert await answer.text() == "ok"
        idle = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(50)]
        for _ in range(3):
            async with client.get(url) as answer:
                assert await answer.text() == "ok"
        assert served.open <= 8
        closed = [await reader.read(1) for reader, _ in idle[:40]]
        assert closed == [b""] * 40
        for _, writer in idle:
            writer.close()
    await served.stop()


async def test_a_connection_without_a_request_is_closed_after_a_time(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "_FIRST_REQUEST_SECONDS", 0.0)
    reader, writer = await raw(served)
    with contextlib.suppress(ConnectionError):
        assert await reader.read(1) == b""
    writer.close()


async def test_a_connection_without_a_tls_handshake_is_closed_after_a_time(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "_HANDSHAKE_SECONDS", 0.1)
    reader, writer = await asyncio.open_connection("127.0.0.1", served.tls.port)
    with contextlib.suppress(ConnectionError):
        assert await reader.read(1) == b""
    writer.close()
    assert await answered(served)

    async def forgotten() -> bool:
        return served.tls.open <= 1

    await until(forgotten)


async def test_the_review_that_is_due_first_has_the_next_turn_and_late_ones_get_503(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = intake._Turns()
    order: list[int] = []

    async def one(due: int) -> None:
        await turns.wait(due)
        order.append(due)
        await asyncio.sleep(0)
        turns.done()

    await asyncio.gather(*map(one, (5, 9, 7, 1)))
    assert order == [5, 1, 7, 9]
    monkeypatch.setattr(intake, "_TURN_SECONDS", 0.01)
    await turns.wait(1)
    with pytest.raises(ReviewError) as caught:
        await turns.wait(2)
    assert caught.value.code == 503
    turns.done()
    monkeypatch.undo()
    await one(3)


async def test_all_refusals_are_counted_when_there_are_more_than_are_logged(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    async with session() as client:
        for _ in range(30):
            async with client.post(served.url(MUTATING_PATH), data=b"x", headers=JSON):
                pass
    served.journal.flush()
    assert b'altershield_admission_errors_total{code="400",webhook="mdeployment.kb.io"} 30.0' in (
        generate_latest(served.metrics.registry)
    )


async def test_a_place_goes_to_the_lowest_key_and_cancelled_tasks_leave_no_entry() -> None:
    places = intake._Places(1)
    order: list[int] = []

    async def one(key: int) -> None:
        await places.take(key)
        order.append(key)

    await places.take(0)
    tasks = [asyncio.create_task(one(key)) for key in (5, 3, 4, 2)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.sleep(0)
    assert len(places._waiting) == 3
    places.give()  # the task with key 2 has the place, but is cancelled before it runs: the next one has it
    tasks[3].cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert order == [4]
    places.give()
    await asyncio.sleep(0)
    assert order == [4, 5]
    assert places._waiting == []


async def test_all_waiting_connections_are_accepted_in_one_run_of_the_event_loop() -> None:
    async def handle(request: Any) -> Any:
        return aiohttp.web.Response(text="ok")

    served = Listener(handle, "127.0.0.1", 0)
    await served.start()
    connections = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(20)]
    for _ in range(3):
        await asyncio.sleep(0)
    assert served.open == 20
    for each in connections:
        each.close()
    await served.stop()


async def test_many_stalled_large_bodies_do_not_hold_up_another_large_body(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "_BODY_SECONDS", 3600.0)
    stalled = []
    for _ in range(40):
        _, writer = await raw(served)
        writer.write(head(f"Content-Length: {intake.SMALL + 10}") + b" " * (intake.SMALL + 5))
        stalled.append(writer)
    await asyncio.sleep(0.1)
    data = encode(review(deployment("x" * 1_000_000)))
    async with session() as client:
        assert (await post(client, served.url(MUTATING_PATH), data))[0] == 200
    for writer in stalled:
        writer.transport.abort()


async def test_a_large_body_is_due_before_a_smaller_one_that_comes_a_second_later() -> None:
    large, small = intake.due(900_000), intake.due(100_000)
    assert small < large < small + 1
