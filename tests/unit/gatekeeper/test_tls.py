import asyncio
import datetime
import os
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from altershield.process.certificate import Certificate

from .reviews import MUTATING_PATH, deployment, encode, review
from .serving import AUTHORITY, Files, Served, serving, session, trust


async def presented(served: Served, *, sni: bool = False) -> bytes:
    """The certificate that a new connection is shown, PEM."""
    context = trust()
    if sni:
        context.check_hostname = False
    _, writer = await asyncio.open_connection(
        "127.0.0.1", served.tls.port, ssl=context, server_hostname="gatekeeper.svc" if sni else None
    )
    connection = writer.get_extra_info("ssl_object")
    writer.close()
    return ssl.DER_cert_to_PEM_cert(connection.getpeercert(binary_form=True)).encode()


@pytest.mark.parametrize("sni", [True, False])
async def test_a_new_certificate_is_served_without_a_restart(tmp_path: Path, sni: bool) -> None:
    async with serving(tmp_path) as served:
        files = Files.at(tmp_path)
        for _ in range(3):
            new = files.issue()
            served.certificate.reload()
            assert await presented(served, sni=sni) == new


def mounted_secret(directory: Path, number: int, files: Files) -> None:
    """Exchange the files as the kubelet does for a Secret: a new directory, then one rename of a symlink."""
    version = directory / f"..{number}"
    version.mkdir()
    for file in (files.certificate, files.key):
        file.rename(version / file.name)
    (directory / "..tmp").symlink_to(version.name)
    os.replace(directory / "..tmp", directory / "..data")


async def test_an_update_of_a_mounted_secret_is_loaded(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    mount = tmp_path / "mount"
    mount.mkdir()
    mounted = Files.at(mount)
    for file in (mounted.certificate, mounted.key):
        file.symlink_to(Path("..data") / file.name)
    certificate = Certificate(mounted.certificate, mounted.key)
    expiries = []
    for number in (1, 2):
        Files.at(source).issue(datetime.timedelta(hours=number))
        mounted_secret(mount, number, Files.at(source))
        certificate.reload()
        assert not certificate.unusable
        expiries.append(certificate.expires)
    assert expiries[0] < expiries[1]


def encrypted(files: Files) -> None:
    key = serialization.load_pem_private_key(files.key.read_bytes(), password=None)
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )


BROKEN = {
    "another pair's key": lambda files: files.key.write_bytes(
        AUTHORITY.issue("x", hosts=["x"], lifetime=datetime.timedelta(hours=1)).key
    ),
    "half a certificate": lambda files: files.certificate.write_bytes(files.certificate.read_bytes()[:200]),
    "no certificate": lambda files: files.certificate.unlink(),
    "no key": lambda files: files.key.unlink(),
    "an empty key": lambda files: files.key.write_bytes(b""),
    "an encrypted key": encrypted,
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_pair_is_logged_once_and_the_old_pair_stays_in_use(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path) as served:
        files = Files.at(tmp_path)
        old, expires = files.certificate.read_bytes(), served.certificate.expires
        files.issue(datetime.timedelta(hours=9))
        BROKEN[name](files)
        for _ in range(3):
            served.certificate.reload()
        assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 1
        assert "PRIVATE KEY" not in caplog.text
        assert await presented(served) == old
        assert served.certificate.expires == expires
        healed = files.issue()
        served.certificate.reload()
        assert await presented(served) == healed


def test_a_certificate_that_appears_later_is_loaded_and_waiting_for_it_is_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    files = Files.at(tmp_path)
    certificate = Certificate(files.certificate, files.key)
    for _ in range(3):
        certificate.reload()
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("INFO", "waiting for the first serving certificate")
    ]
    assert (certificate.unusable, certificate.expires) == ("there is no serving certificate yet", 0.0)
    expected = x509.load_pem_x509_certificate(files.issue()).not_valid_after_utc.timestamp()
    certificate.reload()
    assert (certificate.unusable, certificate.expires) == ("", expected)


@pytest.mark.parametrize("case", ["after a minute", "no file of the clients' CAs", "lost again"])
def test_a_file_that_is_missing_otherwise_is_an_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, case: str
) -> None:
    files, now = Files.at(tmp_path), 1000.0
    certificate = Certificate(
        files.certificate, files.key, tmp_path / "ca.crt" if "CAs" in case else None, clock=lambda: now
    )
    if case != "after a minute":
        files.issue()
    certificate.reload()
    if case == "lost again":
        files.key.unlink()
        certificate.reload()
    if case == "after a minute":
        assert not [record for record in caplog.records if record.levelname == "ERROR"]
        now += 60
    for _ in range(2):
        certificate.reload()
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 1


def test_an_expired_certificate_is_unusable(tmp_path: Path) -> None:
    files = Files.at(tmp_path)
    expires = x509.load_pem_x509_certificate(files.issue()).not_valid_after_utc.timestamp()
    now = expires - 1
    certificate = Certificate(files.certificate, files.key, clock=lambda: now)
    certificate.reload()
    assert not certificate.unusable
    now = expires
    assert certificate.unusable == "the serving certificate has expired"


async def test_no_request_fails_while_certificates_change(tmp_path: Path) -> None:
    """New connections all along, half of them kept alive, over fifty exchanges."""
    async with serving(tmp_path) as served:
        rotating = True

        async def load(*, force_close: bool) -> int:
            answered = 0
            async with session(force_close=force_close) as client:
                while rotating or answered < 20:
                    async with client.post(
                        served.url(MUTATING_PATH),
                        data=encode(review(deployment())),
                        headers={"Content-Type": "application/json"},
                    ) as answer:
                        assert answer.status == 200
                        await answer.read()
                    answered += 1
            return answered

        loads = [asyncio.ensure_future(load(force_close=close)) for close in (True, True, False, False)]
        for _ in range(50):
            Files.at(tmp_path).issue()
            served.certificate.reload()
            await presented(served)
        rotating = False
        assert all(answered >= 20 for answered in await asyncio.gather(*loads))
