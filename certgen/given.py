"""Certificates that others provide: checked, used, never changed."""

import datetime
from collections.abc import Mapping, Sequence

from altershield.pki import KeyPair
from certgen import certificates
from certgen.certificates import Leaf
from certgen.contents import raw
from certgen.errors import CertificateError


def check(
    data: Mapping[str, str], *, secret: str, hosts: Sequence[str], now: datetime.datetime
) -> tuple[Leaf, bytes | None]:
    """The serving certificate and the bundle of CAs (None: API servers know its CA anyway) in the `data` of the
    Secret called `secret`. CertificateError where API servers would refuse the certificate."""
    try:
        leaf = Leaf.load(KeyPair(raw(data, "tls.crt"), raw(data, "tls.key")))
    except ValueError as error:
        raise CertificateError(f"the Secret {secret} cannot be used, {error}; put a matching pair into it") from error
    if leaf.expires <= now:
        raise CertificateError(
            f"the certificate of the Secret {secret} expired at {leaf.expires:%Y-%m-%d %H:%M:%S} UTC; renew it"
        )
    missing = [host for host in hosts[:1] if not leaf.covers(host)]
    if missing:
        raise CertificateError(
            f"the certificate of the Secret {secret} is not for {missing[0]}; reissue it with that name"
        )
    bundle = raw(data, "ca.crt")
    if not bundle:
        return leaf, None
    try:
        authorities = certificates.certificates(bundle)
    except ValueError as error:
        raise CertificateError(f"ca.crt of the Secret {secret} cannot be used, {error}; put the CA into it") from error
    if certificates.issuer(leaf.chain, authorities) is None:
        raise CertificateError(f"no CA in ca.crt of the Secret {secret} signed its tls.crt; put the right one into it")
    return leaf, certificates.pem(authorities)
