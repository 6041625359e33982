"""Reads certificates and keys. Others may have written them, so they can contain anything."""

import datetime
import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kube_base.pki import KeyPair

MAX_CERTIFICATES = 16
"""The maximum number of certificates in one bundle."""

# Errors of cryptography for bytes that are no certificate or key, and for encrypted or unsupported ones. Some are
# raised only when a part of a certificate is read.
UNREADABLE = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.ExtensionNotFound,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)

_PEM_BLOCK = re.compile(rb"-----BEGIN ([A-Z ]+)-----[^-]*-----END \1-----")


@dataclass(frozen=True)
class Leaf:
    """A serving certificate with its key. `chain` is the certificate, followed by the intermediates that are sent with
    it."""

    pair: KeyPair
    chain: tuple[x509.Certificate, ...]

    @classmethod
    def load(cls, pair: KeyPair) -> Self:
        """ValueError if the pair cannot be read, or if the key does not match the certificate."""
        chain = certificates(pair.certificate)
        try:
            key = serialization.load_pem_private_key(pair.key, password=None)
            matches = key.public_key() == chain[0].public_key()
        except UNREADABLE as error:
            raise ValueError("the key is no PEM key that can be read without a password") from error
        if not matches:
            raise ValueError("the key is not that of the certificate")
        return cls(pair, chain)

    @property
    def certificate(self) -> x509.Certificate:
        return self.chain[0]

    @property
    def expires(self) -> datetime.datetime:
        return self.certificate.not_valid_after_utc

    @property
    def hosts(self) -> frozenset[str]:
        """The DNS names and IP addresses for which the certificate is valid."""
        try:
            names = self.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except UNREADABLE:
            return frozenset()
        addresses = names.get_values_for_type(x509.IPAddress)
        return frozenset([*names.get_values_for_type(x509.DNSName), *map(str, addresses)])

    def covers(self, host: str) -> bool:
        """Whether the certificate is valid for `host`. A wildcard stands for the leftmost label, as in RFC 6125."""
        if _is_address(host):
            return str(ipaddress.ip_address(host)) in self.hosts
        return not self.hosts.isdisjoint({host, "*." + host.partition(".")[2]})


def certificates(pem: bytes) -> tuple[x509.Certificate, ...]:
    """The certificates in a PEM text. ValueError if there is none, if there are too many, or if one cannot be read."""
    if pem.count(b"-----BEGIN") > MAX_CERTIFICATES:
        raise ValueError(f"there are more than {MAX_CERTIFICATES} certificates")
    try:
        found = tuple(x509.load_pem_x509_certificates(pem))
        for certificate in found:
            _ = certificate.subject, certificate.issuer  # cryptography decodes names only when they are read
    except UNREADABLE as error:
        raise ValueError("there is no PEM certificate that can be read") from error
    return found


def keys(pem: bytes) -> list[bytes]:
    """The private keys in a PEM text, each as a PEM block."""
    return [block[0] + b"\n" for block in _PEM_BLOCK.finditer(pem) if block[1].endswith(b"PRIVATE KEY")]


def pem(chain: Iterable[x509.Certificate]) -> bytes:
    return b"".join(certificate.public_bytes(serialization.Encoding.PEM) for certificate in chain)


def is_authority(certificate: x509.Certificate) -> bool:
    """Whether it is the certificate of a CA."""
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except UNREADABLE:
        return False


def is_for_servers(certificate: x509.Certificate) -> bool:
    """Whether TLS servers may use it. If it has an extended key usage, that must allow servers."""
    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    except UNREADABLE:
        return False
    return any(
        usage in usages for usage in (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE)
    )


def common_name(certificate: x509.Certificate) -> str:
    """The common name of its subject; empty if there is none."""
    try:
        names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return str(names[0].value) if names else ""
    except UNREADABLE:
        return ""


def path(
    chain: Sequence[x509.Certificate], trusted: Iterable[x509.Certificate], now: datetime.datetime | None = None
) -> tuple[x509.Certificate, ...]:
    """The path from a chain's first certificate, which is not checked, to one of the `trusted` CAs; empty if there is
    none. Like TLS clients, it accepts the other certificates of the chain in any order. With `now`, all CAs of the path
    are valid then. If several trusted CAs are possible, it ends with the one that expires last."""
    certificate, *between = chain
    known = sorted(trusted, key=lambda each: each.not_valid_after_utc, reverse=True)
    if now:
        between, known = _valid(between, now), _valid(known, now)
    paths: list[tuple[x509.Certificate, ...]] = [(certificate,)]
    for candidate in paths:  # the loop appends paths that are longer by one certificate
        if authority := next((each for each in known if _signed(candidate[-1], each)), None):
            return (*candidate, authority)
        above = [each for each in between if _signed(candidate[-1], each)]
        between = [each for each in between if each not in above]
        paths += [(*candidate, each) for each in above]
    return ()


def issuer(chain: Sequence[x509.Certificate], trusted: Iterable[x509.Certificate]) -> x509.Certificate | None:
    """The trusted CA to which a chain leads, or None."""
    return next(reversed(path(chain, trusted)), None)


def is_valid(certificate: x509.Certificate, now: datetime.datetime) -> bool:
    """Whether `now` is in its validity period."""
    return certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc


def _valid(found: Iterable[x509.Certificate], now: datetime.datetime) -> list[x509.Certificate]:
    return [certificate for certificate in found if is_valid(certificate, now)]


def _signed(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    if certificate != authority and not _may_sign(authority):  # a trusted certificate itself need not be a CA
        return False
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, *UNREADABLE):
        return False
    return True


def _may_sign(certificate: x509.Certificate) -> bool:
    """Whether it may sign certificates, by the rules of Go's clients (`CheckSignatureFrom` of crypto/x509)."""
    if certificate.version is not x509.Version.v1 and not is_authority(certificate):
        return False
    try:
        return certificate.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    except x509.ExtensionNotFound:
        return True
    except UNREADABLE:
        return False


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
