"""The reconciler is killed at each write, and another one continues."""

import contextlib
import datetime
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from certgen.contents import encode
from certgen.plan import new_authority
from certgen.reconciler import CertificateReconciler
from kube_base.access.client import Client
from kube_base.resources import SECRETS

from .api import LIFETIMES, NAMESPACE, SECRET, SETTINGS, Api, eventually, reconciled, running, stored


class KilledError(Exception):
    """The process was killed."""


class MortalClient(Client):
    """A client that raises KilledError before or after its n-th write."""

    writes_left = 1000
    answered = True

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        if method == "GET":
            return await super().request(method, path, **options)
        self.writes_left -= 1
        if self.writes_left == 0 and self.answered:
            await super().request(method, path, **options)
        if self.writes_left <= 0:
            raise KilledError
        return await super().request(method, path, **options)


async def nothing(client: Client) -> None:
    """No Secret exists."""


async def new_ca(client: Client) -> None:
    """A new CA was requested and is not published yet."""
    await CertificateReconciler(client, SETTINGS).ensure()
    contents = new_authority(await stored(client), LIFETIMES, datetime.datetime.now(datetime.UTC))
    await client.patch(SECRETS, {"data": encode(contents)}, SECRET, NAMESPACE)


async def lost(client: Client) -> None:
    """The Secret was deleted."""
    await CertificateReconciler(client, SETTINGS).ensure()
    await client.delete(SECRETS, SECRET, NAMESPACE)


@pytest.mark.parametrize("answered", [True, False], ids=["after", "before"])
@pytest.mark.parametrize("write", [1, 2, 3, 4])
@pytest.mark.parametrize(("begin", "authorities"), [(nothing, 1), (new_ca, 2), (lost, 2)])
async def test_result_is_the_same_if_the_process_is_killed_at_any_write(
    api: Api, client: Client, begin: Callable[[Client], Awaitable[None]], authorities: int, write: int, answered: bool
) -> None:
    await begin(client)
    async with await api.connect(as_=MortalClient) as killed_client:
        assert isinstance(killed_client, MortalClient)
        killed_client.writes_left, killed_client.answered = write, answered
        with contextlib.suppress(KilledError):
            await CertificateReconciler(killed_client, SETTINGS).ensure()
    async with running(CertificateReconciler(client, SETTINGS)):

        async def done() -> bool:
            contents = await stored(client)
            return await reconciled(client) and contents.issuer == contents.trusted[0]

        await eventually(done)
    contents = await stored(client)
    assert len(contents.authorities) == 1
    # if the process is killed before its first write, no CA has to be recovered
    assert len(contents.trusted) == authorities
