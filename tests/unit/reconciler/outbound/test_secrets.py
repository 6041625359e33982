"""Credentials from Secrets of tenants."""

import base64
import datetime
import ssl
from typing import Any

import pytest

from altershield.api.labels import CREDENTIALS
from kube_base.access.client import Client
from kube_base.pki import Authority
from kube_base.resources import SECRETS
from reconciler.outbound.credentials import Credentials
from reconciler.outbound.outbound_errors import CredentialsError, SecretUnreadableError
from reconciler.outbound.secrets import Secrets
from tests.support.stub_api import StubApi, answer, serving

DAY = datetime.timedelta(days=1)


def secret(labels: dict[str, str] | None = None, **data: bytes) -> dict[str, Any]:
    labels = {CREDENTIALS: "true"} if labels is None else labels
    encoded = {key.replace("_", "."): base64.b64encode(value).decode() for key, value in data.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "hook", "namespace": "shop", "uid": "u", "labels": labels},
        "data": encoded,
    }


async def read(found: dict[str, Any] | None, name: str = "hook") -> Credentials:
    async with serving() as (api, client):
        return await _read(api, client, found, name)


async def _read(api: StubApi, client: Client, found: dict[str, Any] | None, name: str) -> Credentials:
    if found is not None:
        await api.put(SECRETS, found)
    return await Secrets(client).read("shop", name)


async def refused(found: dict[str, Any] | None, name: str = "hook") -> str:
    with pytest.raises(CredentialsError) as caught:
        await read(found, name)
    return str(caught.value)


@pytest.mark.parametrize(
    ("data", "authorization"),
    [
        ({"token": b"abc\n"}, "Bearer abc"),
        ({"username": b"jane", "password": b"pa:ss"}, "Basic amFuZTpwYTpzcw=="),
        ({"token": b"abc", "username": b"jane"}, "Bearer abc"),
        ({"other": b"x"}, ""),
    ],
)
async def test_header_follows_from_the_keys(data: dict[str, bytes], authorization: str) -> None:
    found = await read(secret(**data))
    assert found == Credentials(authorization)
    assert found.context is None


async def test_hmac_key_is_taken_as_it_is() -> None:
    assert (await read(secret(hmac=b"\0key\n"))).hmac == b"\0key\n"


@pytest.mark.parametrize("labels", [{}, {CREDENTIALS: "false"}, {CREDENTIALS: "True"}, {"credentials": "true"}])
async def test_secret_without_the_label_is_refused(labels: dict[str, str]) -> None:
    assert "label it with" in await refused(secret(labels, token=b"abc"))


async def test_missing_secret_is_refused() -> None:
    assert "the Secret shop/hook does not exist" in await refused(None)


@pytest.mark.parametrize("name", ["", ".", "..", "../configmaps/x", "a/b", "a?b", "A", "a" * 254])
async def test_name_that_is_none_of_a_secret_causes_no_request(name: str) -> None:
    async with serving() as (api, client):
        with pytest.raises(CredentialsError, match="not the name of a Secret"):
            await Secrets(client).read("shop", name)
        assert api.requests == []


@pytest.mark.parametrize(
    "data",
    [
        {"token": b"a b"},
        {"token": b"a\r\nX-Header: 1"},
        {"token": b""},
        {"token": b"x" * 8193},
        {"hmac": b"x" * 65537},
        {"hmac": b""},
        {"username": b"a:b", "password": b"c"},
        {"ca_crt": b"no certificate"},
        {"ca_crt": "é".encode()},
        {"tls_crt": b"no", "tls_key": b"no"},
        {"tls_key": b"no"},
    ],
)
async def test_content_that_cannot_be_used_is_refused_and_not_quoted(data: dict[str, bytes]) -> None:
    message = await refused(secret(**data))
    assert "the Secret shop/hook" in message
    assert "X-Header" not in message


async def test_invalid_base64_is_refused() -> None:
    found = secret()
    found["data"] = {"token": "é"}
    assert "not base64" in await refused(found)


async def test_forbidden_secret_is_refused_with_the_value_to_set() -> None:
    async with serving() as (api, client):
        api.fault(lambda _: True, answer(403, "Forbidden"), times=9)
        with pytest.raises(CredentialsError, match=r"checks\.secretNamespaces"):
            await Secrets(client).read("shop", "hook")


async def test_error_of_the_api_server_is_no_fault_of_the_secret() -> None:
    async with serving() as (api, client):
        api.fault(lambda _: True, answer(500, "InternalError"), times=9)
        with pytest.raises(SecretUnreadableError):
            await Secrets(client).read("shop", "hook")


async def test_only_one_secret_is_read_and_its_tls_context_is_made_once_per_version() -> None:
    authority = Authority.create("tenant", lifetime=DAY)
    pair = authority.issue("client", hosts=["client"], lifetime=DAY)
    data = {"ca_crt": authority.pair.certificate, "tls_crt": pair.certificate, "tls_key": pair.key}
    async with serving() as (api, client):
        secrets = Secrets(client)
        await api.put(SECRETS, secret(**data))
        first, second = [await secrets.read("shop", "hook") for _ in range(2)]
        await api.put(SECRETS, secret(**data))
        third = await secrets.read("shop", "hook")
    assert isinstance(first.context, ssl.SSLContext)
    assert first.context is second.context
    assert first.context is not third.context
    assert first.context.check_hostname
    assert len(first.context.get_ca_certs()) == 1
    assert {(each.method, each.path) for each in api.requests} == {("GET", "/api/v1/namespaces/shop/secrets/hook")}
