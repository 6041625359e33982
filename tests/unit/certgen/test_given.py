"""Secrets that others provide."""

import base64
import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from altershield.pki import Authority
from certgen import given
from certgen.errors import CertificateError

NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)
CA = Authority.create("theirs", lifetime=10 * DAY)
PAIR = CA.issue("gate", hosts=["gate.svc"], lifetime=DAY)
GOOD = {"tls.crt": PAIR.certificate, "tls.key": PAIR.key, "ca.crt": CA.pair.certificate}


def check(data: dict[str, bytes], now: datetime.datetime = NOW) -> bytes | None:
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    leaf, bundle = given.check(encoded, secret="theirs", hosts=["gate.svc", "gate"], now=now)
    assert leaf.pair.certificate == data["tls.crt"]
    return bundle


def test_a_good_pair_with_its_authority_is_used() -> None:
    assert check(GOOD) == CA.pair.certificate


def test_without_an_authority_nothing_is_published() -> None:
    assert check({key: GOOD[key] for key in ("tls.crt", "tls.key")}) is None


def test_a_chain_is_followed_to_its_authority() -> None:
    root, intermediate, leaf = (rsa.generate_private_key(65537, 2048) for _ in range(3))
    above = _certificate("root", root, "root", root, ca=True)
    between = _certificate("intermediate", intermediate, "root", root, ca=True)
    served = _certificate("gate", leaf, "intermediate", intermediate, ca=False)
    key = leaf.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    assert check({"tls.crt": served + between, "tls.key": key, "ca.crt": above}) == above
    with pytest.raises(CertificateError, match=r"no CA in ca\.crt"):
        check({"tls.crt": served, "tls.key": key, "ca.crt": above})


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        ({"tls.key": CA.pair.key}, "the key is not that of the certificate; put a matching pair into it"),
        ({"tls.crt": b""}, "there is no PEM certificate that can be read; put a matching pair into it"),
        ({"ca.crt": b"-"}, "ca.crt of the Secret theirs cannot be used"),
        ({"ca.crt": Authority.create("x", lifetime=DAY).pair.certificate}, "no CA in ca.crt of the Secret theirs"),
    ],
)
def test_a_broken_one_is_refused_in_one_sentence(damage: dict[str, bytes], sentence: str) -> None:
    with pytest.raises(CertificateError) as refused:
        check(GOOD | damage)
    assert sentence in str(refused.value)
    assert "PRIVATE" not in str(refused.value)


def test_an_expired_one_is_refused() -> None:
    with pytest.raises(CertificateError, match=r"expired at .* UTC; renew it"):
        check(GOOD, NOW + 2 * DAY)


def test_one_for_another_name_is_refused() -> None:
    pair = CA.issue("other", hosts=["other.svc", "gate"], lifetime=DAY)
    with pytest.raises(CertificateError, match=r"is not for gate\.svc"):
        check(GOOD | {"tls.crt": pair.certificate, "tls.key": pair.key})


def _certificate(
    name: str,
    key: rsa.RSAPrivateKey,
    issuer: str,
    issuer_key: rsa.RSAPrivateKey,
    *,
    ca: bool,
) -> bytes:
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - DAY)
        .not_valid_after(NOW + DAY)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("gate.svc")]), critical=False)
    )
    return builder.sign(issuer_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
