"""Certificate authorities and the certificates that they sign: ECDSA P-256, encoded as PEM.

The certificates have the extensions that strict verifiers require (RFC 5280; the default of Python 3.13): key usage,
basic constraints, subject and authority key identifiers.
"""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_BACKDATED = datetime.timedelta(minutes=5)  # the clocks of cluster and client may differ


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its key, both PEM. The repr does not contain the key."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "KeyPair(...)"


class Authority:
    """A certificate authority that can sign. ValueError: the pair is not a certificate authority."""

    def __init__(self, pair: KeyPair) -> None:
        self.pair = pair
        self.certificate = x509.load_pem_x509_certificate(pair.certificate)
        key = serialization.load_pem_private_key(pair.key, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("the authority's key is not an elliptic curve key")  # noqa: TRY004  (the content is wrong, not the type)
        if key.public_key() != self.certificate.public_key():
            raise ValueError("the authority's key does not match its certificate")
        self._key = key

    @classmethod
    def create(cls, common_name: str, *, lifetime: datetime.timedelta, now: datetime.datetime | None = None) -> Self:
        """A new authority, valid for `lifetime` from `now` (default: the present time)."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name(common_name)
        builder = (
            _builder(name, name, key.public_key(), lifetime, now)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        )
        return cls(_pair(builder.sign(key, hashes.SHA256()), key))

    def issue(
        self,
        common_name: str,
        *,
        hosts: Sequence[str] = (),
        organizations: Sequence[str] = (),
        lifetime: datetime.timedelta,
        now: datetime.datetime | None = None,
    ) -> KeyPair:
        """A certificate for serving on `hosts` (DNS names and IP addresses) and for client authentication as
        `common_name` in the groups `organizations`, valid for `lifetime` from `now` (default: the present time)."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(_name(common_name, organizations), self.certificate.subject, key.public_key(), lifetime, now)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
                critical=False,
            )
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False
            )
        return _pair(builder.sign(self._key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    lifetime: datetime.timedelta,
    now: datetime.datetime | None,
) -> x509.CertificateBuilder:
    now = now or datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str, organizations: Sequence[str] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    # a common name has at most 64 characters; verifiers read the hosts from the alternative names
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name[:64])])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    return KeyPair(
        certificate=certificate.public_bytes(serialization.Encoding.PEM),
        key=key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )
