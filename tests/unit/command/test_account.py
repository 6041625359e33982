"""The token of `altershield dev`, during two days of simulated time."""

import asyncio
import itertools
import json
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from command.account import Account
from kube_base.access import credentials
from kube_base.access.client import Client
from tests.support.stub_api import StubApi, answer, serving

pytestmark = pytest.mark.looptime

HOUR = 3600.0


def issuing(api: StubApi, failing: Sequence[int] = ()) -> list[str]:
    """Make the API issue tokens, except for the requests with these numbers (from 0). The list of issued tokens."""
    issued: list[str] = []
    requests = itertools.count()

    async def issue(request: web.Request) -> web.StreamResponse:
        if next(requests) in failing:
            return await answer(503)(request)
        issued.append(f"token-{len(issued)}")
        return web.Response(text=json.dumps({"status": {"token": issued[-1]}}), content_type="application/json")

    api.fault(is_token_request, issue, times=1000)
    return issued


def is_token_request(request: web.Request) -> bool:
    return request.path.endswith("/serviceaccounts/altershield/token")


async def test_token_is_renewed_before_it_expires_and_clients_use_the_new_token(tmp_path: Path) -> None:
    async with serving() as (api, admin):
        issued = issuing(api)
        account = await Account.create(admin, tmp_path)
        async with account.renewed(), await Client.connect(str(account.kubeconfig)) as client:
            for _ in range(48):
                await asyncio.sleep(HOUR)
                header = await client.configuration.get_api_key_with_prefix("BearerToken")
                age = len(issued) - 1 - issued.index(header.removeprefix("Bearer "))
                assert age <= 1, "the client must read the renewed token"
        assert len(issued) >= 48


async def test_failed_renewal_of_the_token_is_retried(tmp_path: Path) -> None:
    async with serving() as (api, admin):
        issued = issuing(api, failing=(1, 2, 3))
        account = await Account.create(admin, tmp_path)
        async with account.renewed():
            await asyncio.sleep(HOUR * 0.9)
        assert len(issued) == 2


async def test_files_with_credentials_are_readable_by_this_user_only(tmp_path: Path) -> None:
    async with serving() as (api, admin):
        issued = issuing(api)
        account = await Account.create(admin, tmp_path)
        async with account.renewed():
            await asyncio.sleep(HOUR)
    assert len(issued) > 1
    files = await asyncio.to_thread(lambda: list(tmp_path.iterdir()))
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    (user,) = yaml.safe_load(account.kubeconfig.read_text())["users"]
    assert "token" not in user["user"], "clients do not renew a token in the kubeconfig"
    assert (await credentials.load(str(account.kubeconfig), None)).configuration.host == admin.server
