"""Certificates that others provide: checked, used, never changed."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cryptography import x509

from altershield.pki import KeyPair
from certgen import certificates
from certgen.certificates import Leaf
from certgen.contents import raw
from certgen.errors import CertificateError
from certgen.publications import Publication


@dataclass(frozen=True)
class Provided:
    """What is in a Secret, and of use by itself."""

    secret: str
    """Its name."""
    leaf: Leaf
    bundle: bytes
    """All CAs in ca.crt. Empty: API servers know the certificate's CA anyway, or somebody else tells them."""
    path: tuple[x509.Certificate, ...]
    """From the certificate to its CA, as far as the Secret holds it."""

    def ends_first(self, publications: Sequence[Publication], now: datetime.datetime) -> x509.Certificate | None:
        """Of all CAs by which API servers come to trust the certificate, as far as they are known."""
        paths = [self.path, *(publication.path(self.leaf.chain, now) for publication in publications)]
        authorities = [authority for path in paths for authority in path[1:]]
        return min(authorities, key=lambda each: each.not_valid_after_utc, default=None)

    def distrust(self, publications: Sequence[Publication], now: datetime.datetime) -> str:
        """Why API servers will refuse the certificate, because of what others have published; empty: they will not."""
        for publication in publications:
            if publication.path(self.leaf.chain, now):
                continue
            configuration = f"the {publication.resource.kind} {publication.name}"
            if self.bundle:
                return (
                    f"the CA injector has not put ca.crt of the Secret {self.secret} into {configuration}; see whether "
                    "cert-manager's cainjector runs, and what its log says"
                )
            if publication.trusted:  # without any, API servers trust the CAs of their system, which we cannot see
                return (
                    f"the caBundle of {configuration} holds no CA that vouches for the certificate of the Secret "
                    f"{self.secret}; put the CA into ca.crt of the Secret, or into the caBundle"
                )
        return ""


def check(data: Mapping[str, str], *, secret: str, hosts: Sequence[str], now: datetime.datetime) -> Provided:
    """The `data` of the Secret called `secret`, understood. CertificateError where API servers would refuse the
    certificate."""
    try:
        leaf = Leaf.load(KeyPair(raw(data, "tls.crt"), raw(data, "tls.key")))
    except ValueError as error:
        raise CertificateError(f"the Secret {secret} cannot be used, {error}; put a matching pair into it") from error
    if now < leaf.certificate.not_valid_before_utc:
        begins = _utc(leaf.certificate.not_valid_before_utc)
        raise CertificateError(
            f"the certificate of the Secret {secret} is not valid before {begins}; wait, or compare the clocks"
        )
    if leaf.expires <= now:
        raise CertificateError(f"the certificate of the Secret {secret} expired at {_utc(leaf.expires)}; renew it")
    missing = [host for host in hosts[:1] if not leaf.covers(host)]
    if missing:
        raise CertificateError(
            f"the certificate of the Secret {secret} is not for {missing[0]}; reissue it with that name"
        )
    if not certificates.is_for_servers(leaf.certificate):
        raise CertificateError(
            f"the certificate of the Secret {secret} is not for servers; reissue it with the extended key usage "
            "serverAuth"
        )
    bundle = raw(data, "ca.crt")
    try:
        authorities = certificates.certificates(bundle) if bundle else leaf.chain[1:]
    except ValueError as error:
        raise CertificateError(f"ca.crt of the Secret {secret} cannot be used, {error}; put the CA into it") from error
    path = certificates.path(leaf.chain, authorities, now)
    if not path:
        for authority in certificates.path(leaf.chain, authorities)[1:]:
            if not certificates.is_valid(authority, now):
                begins, ends = _utc(authority.not_valid_before_utc), _utc(authority.not_valid_after_utc)
                raise CertificateError(
                    f"the Secret {secret} cannot be used, its CA {certificates.common_name(authority)} is valid only "
                    f"from {begins} to {ends}; renew it, and what it signed"
                )
    if bundle and not path:
        raise CertificateError(
            f"no CA in ca.crt of the Secret {secret} signed its tls.crt, or it may not (CA:TRUE is missing); put the "
            "right one into it"
        )
    return Provided(secret, leaf, certificates.pem(authorities) if bundle else b"", path)


def _utc(moment: datetime.datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
