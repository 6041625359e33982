import datetime
import ssl
from pathlib import Path

import pytest
from aiohttp import ClientSession, web
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from kube_base.pki import Authority, KeyPair

HOUR = datetime.timedelta(hours=1)


@pytest.fixture
def authority() -> Authority:
    return Authority.create("test", lifetime=HOUR)


async def test_strict_client_trusts_an_issued_certificate(authority: Authority, tmp_path: Path) -> None:
    pair = authority.issue("server", hosts=["127.0.0.1", "localhost"], lifetime=HOUR)
    (tmp_path / "c").write_bytes(pair.certificate)
    (tmp_path / "k").write_bytes(pair.key)
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(tmp_path / "c", tmp_path / "k")
    trusting = ssl.create_default_context(cadata=authority.pair.certificate.decode())
    trusting.verify_flags |= ssl.VERIFY_X509_STRICT

    runner = web.ServerRunner(web.Server(lambda _: _ok()))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=serving)
    await site.start()
    try:
        port = runner.addresses[0][1]
        async with ClientSession() as session, session.get(f"https://127.0.0.1:{port}/", ssl=trusting) as answer:
            assert answer.status == 200
    finally:
        await runner.cleanup()


async def _ok() -> web.Response:
    return web.Response()


def test_certificate_contains_its_hosts_and_groups(authority: Authority) -> None:
    pair = authority.issue("me", hosts=["a.svc", "10.0.0.1"], organizations=["system:masters"], lifetime=HOUR)
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a.svc"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.1"]
    assert certificate.subject.rfc4514_string() == "CN=me,O=system:masters"


def test_keys_are_ecdsa_p_256(authority: Authority) -> None:
    leaf = authority.issue("me", lifetime=HOUR)
    for certificate in (authority.certificate, x509.load_pem_x509_certificate(leaf.certificate)):
        key = certificate.public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)
        assert key.curve.name == "secp256r1"
        assert isinstance(certificate.signature_hash_algorithm, hashes.SHA256)


def test_long_common_name_is_cut_to_the_limit_of_x509(authority: Authority) -> None:
    authority.issue("x" * 100, hosts=["x" * 60 + ".svc"], lifetime=HOUR)


def test_reprs_contain_no_keys(authority: Authority) -> None:
    pair = authority.issue("me", lifetime=HOUR)
    assert "PRIVATE" not in f"{pair} {pair!r} {authority!r} {[pair]}"
    assert pair == KeyPair(pair.certificate, pair.key)
