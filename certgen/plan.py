"""Decides what the Secret must contain next. Pure functions: no I/O, no clock.

Certificates are renewed when a third of their lifetime is left. A CA signs no certificate that is valid longer than the
CA itself, so an expired CA can be removed.
"""

import datetime
import enum
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cryptography import x509

from certgen import certificates
from certgen.certificates import Leaf
from certgen.contents import Contents
from certgen.errors import CertificateError
from certgen.lifetimes import Lifetimes
from certgen.webhook_configurations import WebhookConfiguration
from kube_base.pki import Authority
from kube_base.times import rfc3339

_COMMON_NAME = "altershield-ca-"  # followed by digits: each CA has another name, because clients find issuers by name
_MAX_TRUSTED = 8


class Reason(enum.StrEnum):
    """Why the Secret is written."""

    NO_AUTHORITY = "no CA can sign"
    AUTHORITY_DUE = "the CA is due for renewal"
    AUTHORITY_ASKED = "a new CA was requested"
    AUTHORITY_EXPIRED = "a CA has expired"
    AUTHORITY_PUBLISHED = "all API servers know the new CA"
    AUTHORITY_RECOVERED = "a published CA is missing in the Secret"
    AUTHORITY_DISTRUSTED = "the old CAs are no longer to be trusted"
    NO_LEAF = "no CA of the Secret signed the serving certificate"
    LEAF_EXPIRED = "the serving certificate has expired"
    LEAF_DUE = "the serving certificate is due for renewal"
    LEAF_ASKED = "a new serving certificate was requested"
    HOSTS_MISSING = "the serving certificate lacks a host name"
    DAMAGED = "the Secret had unexpected contents"


@dataclass(frozen=True)
class Plan:
    """The contents to store, and why. Without `reasons`, they are stored already. At `requeue_at`, the plan changes
    even if nothing else does."""

    contents: Contents
    reasons: tuple[Reason, ...]
    requeue_at: datetime.datetime


def plan(
    contents: Contents,
    configurations: Sequence[WebhookConfiguration],
    *,
    hosts: Sequence[str],
    lifetimes: Lifetimes,
    now: datetime.datetime,
) -> Plan:
    """The next contents of the Secret. A second plan for these contents has no reasons, if nothing else has changed.

    The caller must read `configurations` before `contents`.
    """
    reasons: list[Reason] = []
    if lost := _lost_authorities(contents, configurations, now):
        contents = replace(contents, retired=(*contents.retired, *lost))
        reasons.append(Reason.AUTHORITY_RECOVERED)
    alive = _without_expired(contents, now)
    if len(alive.trusted) < len(contents.trusted):
        contents = alive
        reasons.append(Reason.AUTHORITY_EXPIRED)
    newest = contents.authorities[0].certificate if contents.authorities else None
    if newest is None or newest.not_valid_after_utc - now <= lifetimes.authority / 3:
        contents = _with_new_authority(contents, lifetimes, now)
        reasons.append(Reason.AUTHORITY_DUE if newest else Reason.NO_AUTHORITY)
    signer = _signer(contents, configurations, lifetimes, now)
    reason = _reason_to_sign(contents, signer, hosts, lifetimes, now) if signer else None
    if signer and reason:
        # Replicas of two releases can need different names. The certificate gets both: otherwise they replace it
        # forever.
        kept = contents.leaf.hosts if contents.leaf and reason is Reason.HOSTS_MISSING else ()
        contents = _signed(contents, signer, [*dict.fromkeys([*hosts, *sorted(kept)])], lifetimes, now)
        reasons.append(reason)
    return Plan(contents, tuple(reasons), _requeue_at(contents, configurations, lifetimes, now))


def new_authority(contents: Contents, lifetimes: Lifetimes, now: datetime.datetime) -> Contents:
    """`contents` with a new CA, which will replace the others. CertificateError if too many CAs are trusted."""
    if len(contents.trusted) >= _MAX_TRUSTED:
        first = min(certificate.not_valid_after_utc for certificate in contents.trusted)
        raise CertificateError(
            f"{len(contents.trusted)} CAs are trusted already; wait until {rfc3339(first.timestamp())}, when the "
            "first expires, or remove the old ones with `rotate --ca --distrust`"
        )
    return _with_new_authority(contents, lifetimes, now)


def new_leaf(
    contents: Contents,
    configurations: Sequence[WebhookConfiguration],
    *,
    hosts: Sequence[str],
    lifetimes: Lifetimes,
    now: datetime.datetime,
) -> Contents:
    """`contents` with a new serving certificate. CertificateError if no CA can sign yet, because not all API servers
    know it."""
    signer = _signer(contents, configurations, lifetimes, now)
    if signer is None:
        raise CertificateError(
            "no CA of the Secret can sign yet, because it was published too recently; try again in "
            f"{lifetimes.settle.total_seconds():.0f} s"
        )
    return _signed(contents, signer, hosts, lifetimes, now)


def without_retired(contents: Contents) -> Contents:
    """`contents` without the CAs that are only trusted."""
    return replace(contents, retired=())


def _lost_authorities(
    contents: Contents, configurations: Sequence[WebhookConfiguration], now: datetime.datetime
) -> tuple[x509.Certificate, ...]:
    """CAs of certgen that API servers trust but that are missing in the Secret, because it was damaged or deleted.
    Gatekeepers may serve certificates that they signed, so they stay trusted until they expire."""
    if contents.leaf and contents.issuer:
        return ()
    published = {certificate for configuration in configurations for certificate in configuration.trusted}
    lost = (certificate for certificate in published.difference(contents.trusted) if _is_ours(certificate, now))
    latest = sorted(lost, key=lambda certificate: certificate.not_valid_after_utc, reverse=True)
    return tuple(latest[: max(0, _MAX_TRUSTED - len(contents.trusted))])


def _is_ours(certificate: x509.Certificate, now: datetime.datetime) -> bool:
    named = certificates.common_name(certificate).startswith(_COMMON_NAME)
    return named and certificate.not_valid_after_utc > now and certificates.is_authority(certificate)


def _without_expired(contents: Contents, now: datetime.datetime) -> Contents:
    return replace(
        contents,
        authorities=tuple(each for each in contents.authorities if each.certificate.not_valid_after_utc > now),
        retired=tuple(each for each in contents.retired if each.not_valid_after_utc > now),
    )


def _with_new_authority(contents: Contents, lifetimes: Lifetimes, now: datetime.datetime) -> Contents:
    name = _COMMON_NAME + secrets.token_hex(4)
    created = Authority.create(name, lifetime=lifetimes.authority, now=now)
    return replace(
        contents,
        authorities=(created, *contents.authorities),
        # A limit, in case somebody damages the Secret repeatedly.
        retired=contents.retired[: max(0, _MAX_TRUSTED - 1 - len(contents.authorities))],
    )


def _signer(
    contents: Contents, configurations: Sequence[WebhookConfiguration], lifetimes: Lifetimes, now: datetime.datetime
) -> Authority | None:
    """The CA that signs the next serving certificate.

    It is the newest CA that is settled in all configurations that contain any of the trusted CAs. Without such a CA, it
    is the issuer of the present certificate, which all API servers trust already. None if that CA's key is lost: wait
    until another CA is settled.

    If the serving certificate has expired, waiting does not help: it is the CA that most configurations contain.
    """
    if contents.leaf and contents.leaf.expires <= now:
        return max(contents.authorities, key=lambda each: _count(configurations, each.certificate), default=None)
    needed = max((_count(configurations, each) for each in contents.trusted), default=0)
    settled = [each for each in configurations if each.since and now >= each.since + lifetimes.settle]
    known = (each for each in contents.authorities if _count(settled, each.certificate) >= needed)
    issuer = contents.issuer
    return next(known, next((each for each in contents.authorities if each.certificate == issuer), None))


def _count(configurations: Iterable[WebhookConfiguration], certificate: x509.Certificate) -> int:
    return sum(certificate in configuration.trusted for configuration in configurations)


def _reason_to_sign(
    contents: Contents, signer: Authority, hosts: Sequence[str], lifetimes: Lifetimes, now: datetime.datetime
) -> Reason | None:
    leaf, issuer = contents.leaf, contents.issuer
    if leaf is None or issuer is None:
        return Reason.NO_LEAF
    if leaf.expires <= now:
        return Reason.LEAF_EXPIRED
    if contents.trusted.index(signer.certificate) < contents.trusted.index(issuer):
        return Reason.AUTHORITY_PUBLISHED
    if leaf.expires - now <= lifetimes.leaf / 3 and _end(signer, lifetimes, now) > leaf.expires:
        return Reason.LEAF_DUE
    if not all(map(leaf.covers, hosts)):
        return Reason.HOSTS_MISSING
    return None


def _signed(
    contents: Contents, signer: Authority, hosts: Sequence[str], lifetimes: Lifetimes, now: datetime.datetime
) -> Contents:
    """`contents` with a new serving certificate, and without the keys of the CAs that are older than the signer."""
    pair = signer.issue(hosts[0], hosts=hosts, lifetime=_end(signer, lifetimes, now) - now, now=now)
    kept = contents.authorities[: contents.authorities.index(signer) + 1]
    succeeded = contents.authorities[len(kept) :]
    retired = (*(authority.certificate for authority in succeeded), *contents.retired)
    return Contents(Leaf.load(pair), kept, retired)


def _end(signer: Authority, lifetimes: Lifetimes, now: datetime.datetime) -> datetime.datetime:
    """When a serving certificate that `signer` signs now expires. Certificates have whole seconds."""
    return min((now + lifetimes.leaf).replace(microsecond=0), signer.certificate.not_valid_after_utc)


def _requeue_at(
    contents: Contents, configurations: Sequence[WebhookConfiguration], lifetimes: Lifetimes, now: datetime.datetime
) -> datetime.datetime:
    """The next moment at which the plan changes even if nothing else does."""
    moments = [certificate.not_valid_after_utc for certificate in contents.trusted]
    moments += [moment - lifetimes.authority / 3 for moment in moments[: len(contents.authorities)]]
    moments += [configuration.since + lifetimes.settle for configuration in configurations if configuration.since]
    if contents.leaf:
        moments += [contents.leaf.expires, contents.leaf.expires - lifetimes.leaf / 3]
    return min((moment for moment in moments if moment > now), default=now + lifetimes.settle)
