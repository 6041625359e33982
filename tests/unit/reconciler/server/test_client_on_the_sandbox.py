"""The client and the sandbox's AlterShield server, which were written independently."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from kube_sandbox.altershield_server.script import StageScript
from kube_sandbox.altershield_server.server import AlterShieldServer
from reconciler.server.answers import Polled, ServerVerdict
from reconciler.server.messages import FinishState, Order, Stage
from reconciler.server.server_client import ServerClient
from reconciler.server.server_errors import NotAllowedError, RejectedError
from reconciler.server.server_settings import Settings
from reconciler.server.texts import order_id
from tests.unit.reconciler.server.fake_server import FINISH, ORDER, START, WORKLOAD

TOKEN = "altershield-operator"
PASSED = Polled(finished=True, verdict=ServerVerdict.PASS)


@contextlib.asynccontextmanager
async def connected(folder: Path, content: str = TOKEN) -> AsyncIterator[tuple[AlterShieldServer, ServerClient]]:
    path = folder / "token"
    path.write_text(content)
    async with (
        AlterShieldServer(token=TOKEN) as server,
        ServerClient(Settings(url=server.url, token_file=path)) as client,
    ):
        yield server, client


async def test_release_that_passes(tmp_path: Path) -> None:
    async with connected(tmp_path) as (server, client):
        assert await client.enabled()
        await client.create_order(ORDER)
        await client.create_order(ORDER)
        node = await client.start_batch(START)
        await server.settled()
        assert await client.poll(ORDER.id, node, Stage.PRE) == PASSED
        await client.finish_batch(msgspec.structs.replace(FINISH, node=node))
        await server.settled()
        assert await client.poll(ORDER.id, node, Stage.POST) == PASSED
        await client.close_order(ORDER.id, FinishState.SUCCESS, "")
        assert client.available
        assert list(server.nodes) == [node]


async def test_failed_check_is_polled_as_fail(tmp_path: Path) -> None:
    async with connected(tmp_path) as (server, client):
        server.script.pre = StageScript(verdict="fail")
        await client.create_order(ORDER)
        node = await client.start_batch(START)
        await server.settled()
        assert (await client.poll(ORDER.id, node, Stage.PRE)).verdict is ServerVerdict.FAIL
        server.script.pre = StageScript()
        await client.resubmit(ORDER.id, node)
        await server.settled()
        assert await client.poll(ORDER.id, node, Stage.PRE) == PASSED


async def test_finish_is_not_allowed_while_the_first_check_runs_and_succeeds_twice_later(tmp_path: Path) -> None:
    async with connected(tmp_path) as (server, client):
        server.script.pre = StageScript(verdict="never")
        server.script.post = StageScript(verdict="never")
        await client.create_order(ORDER)
        finish = msgspec.structs.replace(FINISH, node=await client.start_batch(START))
        with pytest.raises(NotAllowedError) as caught:
            await client.finish_batch(finish)
        assert caught.value.state in ("PRE_AOP_SUBMIT", "PRE_AOP")
        server.script.pre = StageScript(rules=[])
        finish = msgspec.structs.replace(FINISH, node=await client.start_batch(START))
        while (await client.poll(ORDER.id, finish.node, Stage.PRE)) != PASSED:
            pass
        await client.finish_batch(finish)
        await client.finish_batch(finish)


async def test_unknown_node_has_no_state(tmp_path: Path) -> None:
    async with connected(tmp_path) as (_, client):
        await client.create_order(ORDER)
        with pytest.raises(NotAllowedError) as caught:
            await client.poll(ORDER.id, "unknown", Stage.PRE)
        assert caught.value.state == ""


async def test_skip_succeeds_twice_and_later_calls_are_rejected(tmp_path: Path) -> None:
    async with connected(tmp_path) as (server, client):
        server.script.pre = StageScript(verdict="fail")
        await client.create_order(ORDER)
        node = await client.start_batch(START)
        await server.settled()
        rules = [each.id for each in server.nodes[node].checks["PRE"].executions]
        await client.skip(ORDER.id, node, Stage.PRE, rules, "jane", "ok")
        await client.skip(ORDER.id, node, Stage.PRE, rules, "jane", "ok")
        with pytest.raises(RejectedError) as caught:
            await client.poll(ORDER.id, node, Stage.PRE)
        assert caught.value.code == "101"


async def test_batch_without_an_order_is_rejected(tmp_path: Path) -> None:
    async with connected(tmp_path) as (_, client):
        with pytest.raises(RejectedError) as caught:
            await client.start_batch(START)
        assert caught.value.code == "101"


async def test_wrong_token_is_rejected(tmp_path: Path) -> None:
    async with connected(tmp_path, content="other") as (_, client):
        for call in (client.create_order(ORDER), client.enabled()):
            with pytest.raises(RejectedError) as caught:
                await call
            assert caught.value.code == "102"


async def test_long_texts_in_other_scripts_are_accepted(tmp_path: Path) -> None:
    async with connected(tmp_path) as (server, client):
        long = "灰度发布 café\n" * 1000
        order = Order(id=long, title=long, creator=long, workload=WORKLOAD, params={"text": long}, parent=long)
        await client.create_order(order)
        await client.start_batch(msgspec.structs.replace(START, order=long))
        await client.close_order(long, FinishState.ROLLBACK, long)
        assert list(server.orders) == [("kubernetes", order_id(long))]
