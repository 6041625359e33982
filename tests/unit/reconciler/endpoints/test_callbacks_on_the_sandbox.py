"""The callbacks of the sandbox's AlterShield server, which was written independently."""

from pathlib import Path

import msgspec
import pytest

from kube_base.errors import UsageError
from kube_sandbox.altershield_server.script import StageScript
from kube_sandbox.altershield_server.server import AlterShieldServer
from reconciler.endpoints.callback import CheckType
from reconciler.server.answers import ServerVerdict
from reconciler.server.messages import Stage
from reconciler.server.server_client import ServerClient
from reconciler.server.server_settings import Settings
from reconciler.server.token_file import TokenFile
from tests.unit.reconciler.server.fake_server import FINISH, ORDER, START

from .serving import CALLBACK, TOKEN, serving


async def test_callbacks_of_a_batch_are_accepted_and_name_the_order_and_the_node(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    async with (
        serving(token=TokenFile(path).current) as served,
        AlterShieldServer(token=TOKEN, callback_url=served.url(CALLBACK)) as server,
        ServerClient(Settings(url=server.url, token_file=path)) as client,
    ):
        server.script.post = StageScript(verdict="fail")
        await client.create_order(ORDER)
        node = await client.start_batch(START)
        await server.settled()
        await client.finish_batch(msgspec.structs.replace(FINISH, node=node))
        await server.settled()
        assert [(each.stage, each.verdict, bool(each.message)) for each in served.received] == [
            (Stage.PRE, ServerVerdict.PASS, False),
            (Stage.POST, ServerVerdict.FAIL, True),
        ]
        assert {(each.check_type, each.order, each.node) for each in served.received} == {
            (CheckType.BATCH, ORDER.id, node)
        }
        assert served.outcomes() == {"accepted": 2}


async def test_callbacks_of_a_server_with_another_token_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("other")
    async with (
        serving() as served,
        AlterShieldServer(token="other", callback_url=served.url(CALLBACK)) as server,
        ServerClient(Settings(url=server.url, token_file=path)) as client,
    ):
        await client.create_order(ORDER)
        await client.start_batch(START)
        await server.settled()
        assert (served.received, served.outcomes()) == ([], {"unsigned": 1})


async def test_token_file_that_never_existed_accepts_nothing(tmp_path: Path) -> None:
    missing = TokenFile(tmp_path / "none")
    with pytest.raises(UsageError):
        await missing.current()
    async with serving(token=missing.current) as served:
        assert (await served.post(b"{}", {}))[0] == 503
