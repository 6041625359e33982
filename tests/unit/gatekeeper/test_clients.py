"""Who may ask: with a CA for clients, those it vouches for, by their name if one is set."""

from pathlib import Path

import aiohttp
import pytest
from prometheus_client import generate_latest

from altershield.pki import Authority

from .reviews import VALIDATING_PATH, deployment, encode, review
from .serving import HOUR, Served, serving, trust

API_SERVERS = Authority.create("api servers", lifetime=HOUR)
HEADERS = {"Content-Type": "application/json"}
OTHERS = Authority.create("others", lifetime=HOUR)


async def ask(served: Served, directory: Path, authority: Authority | None, name: str = "") -> tuple[int, str]:
    """The HTTP status and the body of an answer to a client with such a certificate, or none."""
    context = trust()
    if authority is not None:
        pair = authority.issue(name, lifetime=HOUR)
        certificate, key = directory / "client.crt", directory / "client.key"
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        context.load_cert_chain(certificate, key)
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as client,
        client.post(served.url(VALIDATING_PATH), data=encode(review(deployment())), headers=HEADERS) as answer,
    ):
        return answer.status, await answer.text()


def write(file: Path, content: bytes) -> Path:
    file.write_bytes(content)
    return file


@pytest.fixture
def ca_file(tmp_path: Path) -> Path:
    return write(tmp_path / "client-ca.crt", API_SERVERS.pair.certificate)


async def test_without_a_ca_for_clients_anybody_may_ask(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        assert (await ask(served, tmp_path, None))[0] == 200


async def test_only_whom_the_ca_vouches_for_gets_an_answer(tmp_path: Path, ca_file: Path) -> None:
    async with serving(tmp_path, client_ca_file=ca_file) as served:
        assert (await ask(served, tmp_path, API_SERVERS, "anybody"))[0] == 200
        for stranger in (OTHERS, None):
            with pytest.raises(aiohttp.ClientError):
                await ask(served, tmp_path, stranger, "kube-apiserver")


async def test_the_name_counts_where_one_is_set(tmp_path: Path, ca_file: Path) -> None:
    async with serving(tmp_path, client_ca_file=ca_file, client="kube-apiserver") as served:
        assert (await ask(served, tmp_path, API_SERVERS, "kube-apiserver"))[0] == 200
        status, body = await ask(served, tmp_path, API_SERVERS, "kubelet")
        assert status == 403
        assert "reviews are taken from kube-apiserver alone" in body
        assert b'code="403",webhook="vdeployment.kb.io"} 1.0' in generate_latest(served.metrics.registry)


async def test_an_exchanged_ca_counts_at_once(tmp_path: Path, ca_file: Path) -> None:
    async with serving(tmp_path, client_ca_file=ca_file) as served:
        write(ca_file, OTHERS.pair.certificate)
        served.certificate.reload()
        assert (await ask(served, tmp_path, OTHERS, "kube-apiserver"))[0] == 200
        with pytest.raises(aiohttp.ClientError):
            await ask(served, tmp_path, API_SERVERS, "kube-apiserver")


async def test_a_broken_ca_leaves_the_one_before(tmp_path: Path, ca_file: Path) -> None:
    async with serving(tmp_path, client_ca_file=ca_file) as served:
        write(ca_file, b"nonsense")
        served.certificate.reload()
        assert (await ask(served, tmp_path, API_SERVERS, "kube-apiserver"))[0] == 200


async def test_nobody_gets_an_answer_before_the_ca_is_there(tmp_path: Path) -> None:
    async with serving(tmp_path, client_ca_file=tmp_path / "missing") as served:
        assert not served.certificate.loaded
        for authority in (API_SERVERS, None):
            with pytest.raises(aiohttp.ClientError):
                await ask(served, tmp_path, authority, "kube-apiserver")
