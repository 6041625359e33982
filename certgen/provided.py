"""Checks certificates that others provide. certgen never changes them."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cryptography import x509

from certgen import certificates
from certgen.certificates import Leaf
from certgen.contents import raw
from certgen.errors import CertificateError
from certgen.webhook_configurations import WebhookConfiguration
from kube_base.pki import KeyPair
from kube_base.times import rfc3339


@dataclass(frozen=True)
class Provided:
    """The usable contents of a Secret that others provide."""

    secret: str
    """Its name."""
    leaf: Leaf
    bundle: bytes
    """All CAs in ca.crt. Empty: API servers trust the CA anyway, or somebody else publishes it."""
    path: tuple[x509.Certificate, ...]
    """The path from the certificate to its CA, as far as the Secret contains it."""

    def first_to_expire(
        self, configurations: Sequence[WebhookConfiguration], now: datetime.datetime
    ) -> x509.Certificate | None:
        """Of the known CAs through which API servers trust the certificate, the one that expires first."""
        paths = [self.path, *(configuration.path(self.leaf.chain, now) for configuration in configurations)]
        authorities = [authority for path in paths for authority in path[1:]]
        return min(authorities, key=lambda each: each.not_valid_after_utc, default=None)

    def untrusted_reason(self, configurations: Sequence[WebhookConfiguration], now: datetime.datetime) -> str:
        """Why API servers will not trust the certificate, if others publish the CA; empty if they will."""
        for configuration in configurations:
            if configuration.path(self.leaf.chain, now):
                continue
            described = f"the {configuration.resource.kind} {configuration.name}"
            if self.bundle:
                return (
                    f"the CA injector has not put ca.crt of the Secret {self.secret} into {described}; check that "
                    "cert-manager's cainjector runs, and read its log"
                )
            if configuration.trusted:  # without a CA, API servers trust those of their system, which are not known here
                return (
                    f"the caBundle of {described} contains no CA that signed the certificate of the Secret "
                    f"{self.secret}; put the CA into ca.crt of the Secret, or into the caBundle"
                )
        return ""


def check(data: Mapping[str, str], *, secret: str, hosts: Sequence[str], now: datetime.datetime) -> Provided:
    """Decode the `data` of the Secret called `secret`. CertificateError if API servers will not trust the
    certificate."""
    try:
        leaf = Leaf.load(KeyPair(raw(data, "tls.crt"), raw(data, "tls.key")))
    except ValueError as error:
        raise CertificateError(f"the Secret {secret} cannot be used: {error}; put a matching pair into it") from error
    if now < leaf.certificate.not_valid_before_utc:
        begins = rfc3339(leaf.certificate.not_valid_before_utc.timestamp())
        raise CertificateError(
            f"the certificate of the Secret {secret} is not valid before {begins}; wait, or check the clocks"
        )
    if leaf.expires <= now:
        raise CertificateError(
            f"the certificate of the Secret {secret} expired at {rfc3339(leaf.expires.timestamp())}; renew it"
        )
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
        raise CertificateError(f"ca.crt of the Secret {secret} cannot be used: {error}; put the CA into it") from error
    path = certificates.path(leaf.chain, authorities, now)
    if not path:
        for authority in certificates.path(leaf.chain, authorities)[1:]:
            if not certificates.is_valid(authority, now):
                begins, ends = (
                    rfc3339(each.timestamp())
                    for each in (authority.not_valid_before_utc, authority.not_valid_after_utc)
                )
                raise CertificateError(
                    f"the Secret {secret} cannot be used: its CA {certificates.common_name(authority)} is valid only "
                    f"from {begins} to {ends}; renew the CA and the certificates that it signed"
                )
    if bundle and not path:
        raise CertificateError(
            f"no CA in ca.crt of the Secret {secret} signed its tls.crt, or it is not a CA (CA:TRUE is missing); "
            "put the right CA into it"
        )
    return Provided(secret, leaf, certificates.pem(authorities) if bundle else b"", path)
