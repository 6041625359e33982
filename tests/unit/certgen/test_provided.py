"""Secrets that others provide."""

import base64
import datetime
import functools
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from certgen import certificates, provided
from certgen.errors import CertificateError
from certgen.provided import Provided
from certgen.webhook_configurations import KINDS, WebhookConfiguration
from kube_base.pki import Authority

NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)
CA = Authority.create("theirs", lifetime=10 * DAY)
PAIR = CA.issue("gate", hosts=["gate.svc"], lifetime=DAY)
GOOD = {"tls.crt": PAIR.certificate, "tls.key": PAIR.key, "ca.crt": CA.pair.certificate}


def check(data: dict[str, bytes], now: datetime.datetime | None = None) -> Provided:
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    now = now or datetime.datetime.now(datetime.UTC)
    found = provided.check(encoded, secret="theirs", hosts=["gate.svc", "gate"], now=now)
    assert found.leaf.pair.certificate == data["tls.crt"]
    return found


def test_valid_pair_with_its_ca_is_accepted() -> None:
    found = check(GOOD)
    assert found.bundle == CA.pair.certificate
    assert found.first_to_expire([], NOW) == CA.certificate


def test_without_ca_crt_the_bundle_is_empty() -> None:
    found = check({key: GOOD[key] for key in ("tls.crt", "tls.key")})
    assert found.bundle == b""
    assert found.first_to_expire([], NOW) is None


@functools.cache
def _keys() -> tuple[rsa.RSAPrivateKey, ...]:
    return tuple(rsa.generate_private_key(65537, 2048) for _ in range(3))


@dataclass(frozen=True)
class Chain:
    """A root, an intermediate and a serving certificate. The CAs are valid for so many days."""

    root_days: int = 30
    intermediate_days: int = 20

    @property
    def keys(self) -> tuple[rsa.RSAPrivateKey, ...]:
        return _keys()

    @functools.cached_property
    def root(self) -> bytes:
        return _certificate("root", self.keys[0], "root", self.keys[0], ca=True, days=self.root_days)

    @functools.cached_property
    def intermediate(self) -> bytes:
        return _certificate("between", self.keys[1], "root", self.keys[0], ca=True, days=self.intermediate_days)

    @functools.cached_property
    def served(self) -> bytes:
        return _certificate("gate", self.keys[2], "between", self.keys[1], ca=False, days=10)

    def data(self, *sent_along: bytes, trusted: bytes = b"") -> dict[str, bytes]:
        return {"tls.crt": b"".join([self.served, *sent_along]), "tls.key": _pem(self.keys[2]), "ca.crt": trusted}


def test_chain_with_its_intermediate_is_accepted_and_without_it_refused() -> None:
    chain = Chain()
    assert check(chain.data(chain.intermediate, trusted=chain.root)).bundle == chain.root
    with pytest.raises(CertificateError, match=r"no CA in ca\.crt"):
        check(chain.data(trusted=chain.root))


def test_chain_is_verified_as_tls_clients_do() -> None:
    """TLS clients accept any order, and trust an intermediate in ca.crt without its root."""
    chain = Chain()
    check(chain.data(chain.root, chain.intermediate, trusted=chain.root))
    check(chain.data(chain.intermediate, trusted=chain.intermediate))
    check(chain.data(trusted=chain.intermediate))


@pytest.mark.parametrize(("chain", "expired"), [(Chain(root_days=5), "root"), (Chain(intermediate_days=5), "between")])
def test_expired_ca_is_refused(chain: Chain, expired: str) -> None:
    data = chain.data(chain.intermediate, trusted=chain.root)
    check(data)
    with pytest.raises(CertificateError, match=rf"its CA {expired} is valid only from .*Z to .*Z; renew the CA"):
        check(data, NOW + 6 * DAY)


def test_expired_intermediate_is_refused_even_if_the_root_is_not_in_the_secret() -> None:
    chain = Chain(intermediate_days=5)
    check(chain.data(chain.intermediate))
    with pytest.raises(CertificateError, match="its CA between is valid only"):
        check(chain.data(chain.intermediate), NOW + 6 * DAY)


def test_ca_crt_may_contain_the_expired_ca_beside_its_successor() -> None:
    old, new = Chain(root_days=5), Chain(root_days=30)
    found = check(old.data(old.intermediate, trusted=old.root + new.root), NOW + 6 * DAY)
    assert found.bundle == old.root + new.root


def test_certificate_that_is_not_valid_yet_is_refused() -> None:
    with pytest.raises(CertificateError, match=r"is not valid before .*Z; wait, or check the clocks"):
        check(GOOD, NOW - DAY)


def test_first_to_expire_is_the_ca_of_the_path_that_expires_first() -> None:
    for chain, first in ((Chain(root_days=15), "root"), (Chain(intermediate_days=15), "between")):
        watched = check(chain.data(chain.intermediate, trusted=chain.root)).first_to_expire([], NOW)
        assert watched is not None
        assert certificates.common_name(watched) == first


def published(bundle: bytes) -> list[WebhookConfiguration]:
    return [WebhookConfiguration(resource, "gate", "1", {"one": bundle}, None) for resource in KINDS]


def test_first_to_expire_includes_cas_of_the_webhook_configurations() -> None:
    found = check({key: GOOD[key] for key in ("tls.crt", "tls.key")})
    assert found.first_to_expire(published(CA.pair.certificate), NOW) == CA.certificate


OTHER = Authority.create("other", lifetime=10 * DAY).pair.certificate


@pytest.mark.parametrize(
    ("bundle", "sentence"),
    [
        (b"", "the CA injector has not put ca.crt of the Secret theirs into the MutatingWebhookConfiguration gate;"),
        (OTHER, "the CA injector has not put ca.crt of the Secret theirs into the MutatingWebhookConfiguration gate;"),
        (CA.pair.certificate, ""),
        (OTHER + CA.pair.certificate, ""),
    ],
    ids=["empty", "another CA", "the CA", "the CA among others"],
)
def test_untrusted_reason_names_a_ca_that_the_injector_has_not_published(bundle: bytes, sentence: str) -> None:
    assert check(GOOD).untrusted_reason(published(bundle), NOW).startswith(sentence)
    assert bool(sentence) is bool(check(GOOD).untrusted_reason(published(bundle), NOW))


def test_untrusted_reason_names_the_one_configuration_that_lacks_the_ca() -> None:
    one, other = published(CA.pair.certificate)[0], published(b"")[1]
    assert "into the ValidatingWebhookConfiguration gate;" in check(GOOD).untrusted_reason([one, other], NOW)
    assert check(GOOD).untrusted_reason([], NOW) == "", "no configuration exists"


@pytest.mark.parametrize(
    ("bundle", "distrusted"),
    [(b"", False), (CA.pair.certificate, False), (OTHER, True), (b"unreadable", False)],
    ids=["empty", "the CA", "another CA", "unreadable"],
)
def test_without_ca_crt_only_a_bundle_with_another_ca_is_untrusted(bundle: bytes, distrusted: bool) -> None:
    found = check({key: GOOD[key] for key in ("tls.crt", "tls.key")})
    assert ("contains no CA that signed" in found.untrusted_reason(published(bundle), NOW)) is distrusted
    assert "contains no CA" in found.untrusted_reason(published(CA.pair.certificate), NOW + 11 * DAY), (
        "it has expired there"
    )


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        ({"tls.key": CA.pair.key}, "the key is not that of the certificate; put a matching pair into it"),
        ({"tls.crt": b""}, "there is no PEM certificate that can be read; put a matching pair into it"),
        ({"ca.crt": b"-"}, "ca.crt of the Secret theirs cannot be used"),
        ({"ca.crt": Authority.create("x", lifetime=DAY).pair.certificate}, "no CA in ca.crt of the Secret theirs"),
    ],
)
def test_damaged_secret_is_refused_with_one_sentence_without_keys(damage: dict[str, bytes], sentence: str) -> None:
    with pytest.raises(CertificateError) as refused:
        check(GOOD | damage)
    assert sentence in str(refused.value)
    assert "PRIVATE" not in str(refused.value)


def test_expired_certificate_is_refused() -> None:
    with pytest.raises(CertificateError, match=r"expired at .*Z; renew it"):
        check(GOOD, NOW + 2 * DAY)


def test_certificate_for_another_host_is_refused() -> None:
    pair = CA.issue("other", hosts=["other.svc", "gate"], lifetime=DAY)
    with pytest.raises(CertificateError, match=r"is not for gate\.svc"):
        check(GOOD | {"tls.crt": pair.certificate, "tls.key": pair.key})


def test_certificate_without_ca_true_vouches_only_for_itself() -> None:
    """API servers accept a certificate without CA:TRUE only as the serving certificate itself."""
    key, own = (rsa.generate_private_key(65537, 2048) for _ in range(2))
    private = _pem(own)
    no_authority = _certificate("theirs", key, "theirs", key, ca=False, days=10)
    signed = _certificate("gate", own, "theirs", key, ca=False, days=10)
    with pytest.raises(CertificateError, match="CA:TRUE is missing"):
        check({"tls.crt": signed, "tls.key": private, "ca.crt": no_authority})
    itself = _certificate("gate", own, "gate", own, ca=False, days=10)
    check({"tls.crt": itself, "tls.key": private, "ca.crt": itself})


def test_certificate_that_is_not_for_servers_is_refused() -> None:
    key = rsa.generate_private_key(65537, 2048)
    private = _pem(key)
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
    for_clients = _certificate("gate", key, "gate", key, ca=False, days=10, usages=usages)
    with pytest.raises(CertificateError, match="is not for servers"):
        check({"tls.crt": for_clients, "tls.key": private})
    usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
    for_both = _certificate("gate", key, "gate", key, ca=False, days=10, usages=usages)
    check({"tls.crt": for_both, "tls.key": private})


def _certificate(
    name: str,
    key: rsa.RSAPrivateKey,
    issuer: str,
    issuer_key: rsa.RSAPrivateKey,
    *,
    ca: bool,
    days: int,
    usages: Sequence[x509.ObjectIdentifier] = (),
) -> bytes:
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - DAY)
        .not_valid_after(NOW + days * DAY)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("gate.svc")]), critical=False)
    )
    if usages:
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    return builder.sign(issuer_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _pem(key: rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
