"""Decoding of Secrets, which any client can write."""

import base64
import datetime
import ssl

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from certgen.certificates import Leaf
from certgen.contents import Contents, decode, encode
from certgen.lifetimes import Lifetimes
from certgen.plan import plan
from certgen.secret import Secret
from certgen.webhook_configurations import WebhookConfiguration
from kube_base.meta import ObjectMeta
from kube_base.pki import Authority, KeyPair
from kube_base.resources import MUTATING_WEBHOOKS

DAY = datetime.timedelta(days=1)
LONG_AGO = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
LIFETIMES = Lifetimes(authority=DAY, leaf=DAY / 4, settle=DAY / 100)
OLD = Authority.create("altershield-ca-old", lifetime=DAY)
NEW = Authority.create("altershield-ca-new", lifetime=DAY)
LEAF = OLD.issue("gate", hosts=["gate.svc"], lifetime=DAY)
GOOD = Contents(Leaf.load(LEAF), (NEW, OLD), ())


def text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def test_decode_reverses_encode() -> None:
    contents, problems = decode(encode(GOOD))
    assert problems == []
    assert contents.trusted == GOOD.trusted
    assert [authority.pair.key for authority in contents.authorities] == [NEW.pair.key, OLD.pair.key]
    assert contents.issuer == OLD.certificate
    assert encode(contents) == encode(GOOD)


@pytest.mark.parametrize("key", ["ca.crt", "tls.crt"])
def test_certificate_with_an_undecodable_name_is_reported_and_replaced(key: str) -> None:
    """`cryptography` loads such a certificate, and decodes its subject only when it is read."""
    stored = base64.b64decode(encode(GOOD)[key])
    der = ssl.PEM_cert_to_DER_cert(stored[: stored.index(b"-----END CERTIFICATE-----") + 26].decode())
    name = b"\x0c" + bytes([len(b"gate" if key == "tls.crt" else b"altershield-ca-new")])
    place = der.rindex(name + (b"gate" if key == "tls.crt" else b"altershield-ca-new"))
    broken = der[:place] + b"\xfe" + der[place + 1 :]
    contents, problems = decode(encode(GOOD) | {key: text(ssl.DER_cert_to_PEM_cert(broken).encode())})
    assert any(key in problem for problem in problems)
    now = datetime.datetime.now(datetime.UTC)
    configuration = WebhookConfiguration(MUTATING_WEBHOOKS, "", "1", {"one": GOOD.bundle}, LONG_AGO)
    healed = plan(contents, [configuration], hosts=["gate.svc"], lifetimes=LIFETIMES, now=now).contents
    assert healed.serving is not None


def test_cas_without_a_key_are_only_trusted() -> None:
    contents, problems = decode(encode(GOOD) | {"ca.key": text(NEW.pair.key)})
    assert problems == []
    assert [authority.certificate for authority in contents.authorities] == [NEW.certificate]
    assert contents.retired == (OLD.certificate,)


def pem_key(key: rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey, password: bytes = b"") -> bytes:
    encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)


OTHER_KEY = pem_key(ed25519.Ed25519PrivateKey.generate())
LOCKED_KEY = pem_key(ed25519.Ed25519PrivateKey.generate(), b"password")


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ({"tls.key": b""}, "tls.crt and tls.key cannot be used"),
        ({"tls.crt": b"", "tls.key": b""}, "there is no serving certificate in tls.crt"),
        ({"tls.key": NEW.pair.key}, "the key is not that of the certificate"),
        ({"tls.key": OTHER_KEY}, "the key is not that of the certificate"),
        ({"tls.key": LOCKED_KEY}, "without a password"),
        ({"tls.crt": LEAF.certificate[:-60]}, "there is no PEM certificate that can be read"),
        ({"ca.crt": b"\xff\x00"}, "ca.crt cannot be used"),
        ({"ca.crt": LEAF.certificate}, "not a CA's"),
        ({"ca.crt": NEW.pair.certificate}, "no CA in ca.crt signed tls.crt"),
        ({"ca.crt": OLD.pair.certificate * 17}, "more than 16"),
        ({"ca.key": b""}, "ca.key does not hold the keys"),
        ({"ca.key": OTHER_KEY}, "ca.key does not hold the keys"),
        ({"ca.key": OLD.pair.key[:-40]}, "ca.key does not hold the keys"),
    ],
)
def test_damaged_value_is_reported_and_the_other_values_are_used(damage: dict[str, bytes], problem: str) -> None:
    contents, problems = decode(encode(GOOD) | {key: text(value) for key, value in damage.items()})
    assert problem in "; ".join(problems)
    if "tls.crt" not in damage and "tls.key" not in damage:
        assert contents.leaf is not None
    if "ca.crt" not in damage:
        assert contents.trusted == GOOD.trusted


@settings(max_examples=200)
@given(st.dictionaries(st.sampled_from(["tls.crt", "tls.key", "ca.crt", "ca.key", "other"]), st.text(max_size=200)))
def test_arbitrary_data_is_reported_without_an_exception(data: dict[str, str]) -> None:
    contents, problems = decode(data)
    assert problems
    assert contents.serving is None


@pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning")  # that a serial is negative
@settings(max_examples=300)
@given(st.sampled_from(["tls.crt", "tls.key", "ca.crt", "ca.key"]), st.data())
def test_secret_with_one_changed_byte_is_repaired(key: str, data: st.DataObject) -> None:
    good = base64.b64decode(encode(GOOD)[key])
    place = data.draw(st.integers(0, len(good) - 1))
    flipped = good[:place] + bytes([data.draw(st.integers(0, 255))]) + good[place + 1 :]
    contents, _ = decode(encode(GOOD) | {key: text(flipped)})
    configuration = WebhookConfiguration(
        MUTATING_WEBHOOKS, "", "1", {"one": flipped if key == "ca.crt" else GOOD.bundle}, LONG_AGO
    )
    now = datetime.datetime.now(datetime.UTC)
    healed = plan(contents, [configuration], hosts=["gate.svc"], lifetimes=LIFETIMES, now=now).contents
    assert healed.serving is not None
    assert decode(encode(healed))[1] == []


def test_reprs_contain_no_keys() -> None:
    secret = Secret(ObjectMeta(name="tls", namespace="system"), encode(GOOD))
    shown = f"{GOOD!r} {GOOD.leaf!r} {KeyPair(b'certificate', b'key')!r} {OLD!r} {secret!r} {secret}"
    for key in (OLD.pair.key, NEW.pair.key, LEAF.key):
        assert key.decode().splitlines()[1][:20] not in shown
        assert text(key)[:20] not in shown
    assert "PRIVATE KEY" not in shown


@pytest.mark.parametrize(
    ("host", "covered"),
    [("gate.svc", True), ("a.gates.svc", True), ("a.b.gates.svc", False), ("10.0.0.1", True), ("10.0.0.2", False),
     ("0:0::1", True), ("gate", False)],
)  # fmt: skip
def test_covers_matches_hosts_as_tls_clients_do(host: str, covered: bool) -> None:
    pair = OLD.issue("gate", hosts=["gate.svc", "*.gates.svc", "10.0.0.1", "::1"], lifetime=DAY)
    assert Leaf.load(pair).covers(host) == covered
