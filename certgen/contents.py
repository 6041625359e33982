"""The contents of the Secret: the serving certificate, the CAs that can sign, and CAs that are only trusted.

| key | value |
| --- | --- |
| `tls.crt`, `tls.key` | the serving certificate and its key; empty while a lost certificate cannot be replaced yet |
| `ca.crt` | all trusted CAs, newest first: the value of every `caBundle` |
| `ca.key` | the keys of the first CAs: of the CA that signs and, before it, of the CA that will sign next |
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass

from cryptography import x509

from certgen import certificates
from certgen.certificates import UNREADABLE, Leaf
from kube_base.pki import Authority, KeyPair


@dataclass(frozen=True)
class Contents:
    """The decoded and checked data of the Secret. The repr does not contain keys."""

    leaf: Leaf | None = None
    authorities: tuple[Authority, ...] = ()
    """The CAs that can sign, newest first."""
    retired: tuple[x509.Certificate, ...] = ()
    """CAs without a key. They are trusted until they expire."""

    @property
    def trusted(self) -> tuple[x509.Certificate, ...]:
        return (*(authority.certificate for authority in self.authorities), *self.retired)

    @property
    def bundle(self) -> bytes:
        """All trusted CAs, PEM."""
        return certificates.pem(self.trusted)

    @property
    def serving(self) -> Leaf | None:
        """The serving certificate, if a trusted CA signed it."""
        return self.leaf if self.issuer else None

    @property
    def issuer(self) -> x509.Certificate | None:
        """The trusted CA that signed the serving certificate, or None."""
        return certificates.issuer(self.leaf.chain, self.trusted) if self.leaf else None


def encode(contents: Contents) -> dict[str, str]:
    """The `data` of the Secret."""
    leaf = contents.leaf.pair if contents.leaf else KeyPair(b"", b"")
    data = {
        "tls.crt": leaf.certificate,
        "tls.key": leaf.key,
        "ca.crt": contents.bundle,
        "ca.key": b"".join(authority.pair.key for authority in contents.authorities),
    }
    return {key: base64.b64encode(value).decode() for key, value in data.items()}


def decode(data: Mapping[str, str]) -> tuple[Contents, list[str]]:
    """The usable part of a Secret's `data`, and the problems of the rest."""
    problems: list[str] = []
    leaf: Leaf | None = None
    pair = KeyPair(raw(data, "tls.crt"), raw(data, "tls.key"))
    if pair.certificate or pair.key:
        try:
            leaf = Leaf.load(pair)
        except ValueError as error:
            problems.append(f"tls.crt and tls.key cannot be used: {error}")
    else:
        problems.append("there is no serving certificate in tls.crt")
    try:
        trusted = certificates.certificates(raw(data, "ca.crt"))
    except ValueError as error:
        trusted = ()
        problems.append(f"ca.crt cannot be used: {error}")
    if not all(map(certificates.is_authority, trusted)):
        problems.append("ca.crt contains a certificate that is not a CA's")
        trusted = tuple(filter(certificates.is_authority, trusted))
    keys = certificates.keys(raw(data, "ca.key"))
    authorities = tuple(found for certificate in trusted if (found := _authority(certificate, keys)))
    if len(authorities) < len(keys) or not keys:
        problems.append("ca.key does not hold the keys of the CAs in ca.crt")
    signing = {authority.certificate for authority in authorities}
    contents = Contents(leaf, authorities, tuple(each for each in trusted if each not in signing))
    if leaf and trusted and contents.issuer is None:
        problems.append("no CA in ca.crt signed tls.crt")
    return contents, problems


def raw(data: Mapping[str, str], key: str) -> bytes:
    """The value of one key; empty if the key is missing or its value is no base64."""
    try:
        return base64.b64decode(data.get(key, ""))
    except ValueError:
        return b""


def _authority(certificate: x509.Certificate, keys: list[bytes]) -> Authority | None:
    for key in keys[: certificates.MAX_CERTIFICATES]:
        try:
            return Authority(KeyPair(certificates.pem([certificate]), key))
        except UNREADABLE:
            continue
    return None
