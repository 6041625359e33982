"""What the Secret has to hold next. Pure: given what is stored, published and asked for, no I/O, no clock.

Certificates are renewed when a third of their life is left. A CA signs nothing that outlives itself, so that an
expired one has left nothing behind that still counts.
"""

import datetime
import enum
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cryptography import x509

from altershield.pki import Authority
from certgen import certificates
from certgen.certificates import Leaf
from certgen.contents import Contents
from certgen.errors import CertificateError
from certgen.lifetimes import Lifetimes
from certgen.publications import Publication

_COMMON_NAME = "altershield-ca-"  # every CA has a name of its own: clients look issuers up by name
_MAX_TRUSTED = 8


class Reason(enum.StrEnum):
    """Why the Secret is written."""

    NO_AUTHORITY = "there is no CA that can sign"
    AUTHORITY_DUE = "the CA is to be succeeded"
    AUTHORITY_ASKED = "a new CA was asked for"
    AUTHORITY_EXPIRED = "a CA has expired"
    AUTHORITY_PUBLISHED = "the new CA is known to all API servers"
    AUTHORITY_RECOVERED = "a CA is published that the Secret has lost"
    AUTHORITY_DISTRUSTED = "the old CAs are to be trusted no more"
    NO_LEAF = "there is no serving certificate that a CA of ours signed"
    LEAF_EXPIRED = "the serving certificate has expired"
    LEAF_DUE = "the serving certificate is to be renewed"
    LEAF_ASKED = "a new serving certificate was asked for"
    HOSTS_MISSING = "the serving certificate lacks a name"
    DAMAGED = "the Secret held what does not belong there"


@dataclass(frozen=True)
class Plan:
    """What to store, and why; without `reasons` it is what is stored already. At `again` time alone will have
    changed something."""

    contents: Contents
    reasons: tuple[Reason, ...]
    again: datetime.datetime


def plan(
    contents: Contents,
    publications: Sequence[Publication],
    *,
    hosts: Sequence[str],
    lifetimes: Lifetimes,
    now: datetime.datetime,
) -> Plan:
    """The next contents. Planned again on its own result, with nothing else changed, it has no more reasons.

    `publications` must have been read before `contents` were.
    """
    reasons: list[Reason] = []
    if lost := _lost(contents, publications, now):
        contents = replace(contents, retired=(*contents.retired, *lost))
        reasons.append(Reason.AUTHORITY_RECOVERED)
    alive = _alive(contents, now)
    if len(alive.trusted) < len(contents.trusted):
        contents = alive
        reasons.append(Reason.AUTHORITY_EXPIRED)
    newest = contents.authorities[0].certificate if contents.authorities else None
    if newest is None or newest.not_valid_after_utc - now <= lifetimes.authority / 3:
        contents = _with_new_authority(contents, lifetimes, now)
        reasons.append(Reason.AUTHORITY_DUE if newest else Reason.NO_AUTHORITY)
    signer = _signer(contents, publications, lifetimes, now)
    reason = _why_sign(contents, signer, hosts, lifetimes, now) if signer else None
    if signer and reason:
        # Replicas of two releases may want different names: both get theirs, or they would sign in turns.
        kept = contents.leaf.hosts if contents.leaf and reason is Reason.HOSTS_MISSING else ()
        contents = _signed(contents, signer, [*dict.fromkeys([*hosts, *sorted(kept)])], lifetimes, now)
        reasons.append(reason)
    return Plan(contents, tuple(reasons), _again(contents, publications, lifetimes, now))


def new_authority(contents: Contents, lifetimes: Lifetimes, now: datetime.datetime) -> Contents:
    """`contents` with one more CA, which will succeed the others. CertificateError while too many are trusted."""
    if len(contents.trusted) >= _MAX_TRUSTED:
        first = min(certificate.not_valid_after_utc for certificate in contents.trusted)
        raise CertificateError(
            f"{len(contents.trusted)} CAs are trusted already, one more must wait until {first:%Y-%m-%d %H:%M:%S} UTC, "
            f"when the oldest expires; or distrust the old ones with `rotate --ca --distrust`"
        )
    return _with_new_authority(contents, lifetimes, now)


def new_leaf(
    contents: Contents,
    publications: Sequence[Publication],
    *,
    hosts: Sequence[str],
    lifetimes: Lifetimes,
    now: datetime.datetime,
) -> Contents:
    """`contents` with a new serving certificate. CertificateError while no CA is known to all API servers."""
    signer = _signer(contents, publications, lifetimes, now)
    if signer is None:
        raise CertificateError(
            "no CA of the Secret has been in the webhook configurations for long enough to sign; try again in "
            f"{lifetimes.settle.total_seconds():.0f} s"
        )
    return _signed(contents, signer, hosts, lifetimes, now)


def without_retired(contents: Contents) -> Contents:
    """`contents` that trust only the CAs that may still sign."""
    return replace(contents, retired=())


def _lost(
    contents: Contents, publications: Sequence[Publication], now: datetime.datetime
) -> tuple[x509.Certificate, ...]:
    """CAs of ours that API servers trust but the Secret knows nothing of, where it was damaged or deleted:
    gatekeepers may be serving certificates that these signed, so they stay until they expire."""
    if contents.leaf and contents.issuer:
        return ()
    published = {certificate for publication in publications for certificate in publication.trusted}
    lost = (certificate for certificate in published.difference(contents.trusted) if _is_ours(certificate, now))
    latest = sorted(lost, key=lambda certificate: certificate.not_valid_after_utc, reverse=True)
    return tuple(latest[: max(0, _MAX_TRUSTED - len(contents.trusted))])


def _is_ours(certificate: x509.Certificate, now: datetime.datetime) -> bool:
    named = certificates.common_name(certificate).startswith(_COMMON_NAME)
    return named and certificate.not_valid_after_utc > now and certificates.is_authority(certificate)


def _alive(contents: Contents, now: datetime.datetime) -> Contents:
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
        # A Secret that somebody damages again and again must not grow without end.
        retired=contents.retired[: max(0, _MAX_TRUSTED - 1 - len(contents.authorities))],
    )


def _signer(
    contents: Contents, publications: Sequence[Publication], lifetimes: Lifetimes, now: datetime.datetime
) -> Authority | None:
    """The newest CA that is settled wherever any CA of ours is known, else the one that signed already: who trusts
    the present certificate trusts the next. None where that one is lost: wait until another one is settled.

    An expired serving certificate leaves nothing to wait for: the CA that most configurations hold.
    """
    if contents.leaf and contents.leaf.expires <= now:
        return max(contents.authorities, key=lambda each: _count(publications, each.certificate), default=None)
    needed = max((_count(publications, each) for each in contents.trusted), default=0)
    settled = [each for each in publications if each.since and now >= each.since + lifetimes.settle]
    known = (each for each in contents.authorities if _count(settled, each.certificate) >= needed)
    issuer = contents.issuer
    return next(known, next((each for each in contents.authorities if each.certificate == issuer), None))


def _count(publications: Iterable[Publication], certificate: x509.Certificate) -> int:
    return sum(certificate in publication.trusted for publication in publications)


def _why_sign(
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
    """With a new serving certificate; the keys of the CAs that the signer succeeds are thrown away."""
    pair = signer.issue(hosts[0], hosts=hosts, lifetime=_end(signer, lifetimes, now) - now, now=now)
    kept = contents.authorities[: contents.authorities.index(signer) + 1]
    succeeded = contents.authorities[len(kept) :]
    retired = (*(authority.certificate for authority in succeeded), *contents.retired)
    return Contents(Leaf.load(pair), kept, retired)


def _end(signer: Authority, lifetimes: Lifetimes, now: datetime.datetime) -> datetime.datetime:
    """When a serving certificate that `signer` signs now will expire, to the second as certificates have it."""
    return min((now + lifetimes.leaf).replace(microsecond=0), signer.certificate.not_valid_after_utc)


def _again(
    contents: Contents, publications: Sequence[Publication], lifetimes: Lifetimes, now: datetime.datetime
) -> datetime.datetime:
    """The next moment at which time alone changes what is planned."""
    moments = [certificate.not_valid_after_utc for certificate in contents.trusted]
    moments += [moment - lifetimes.authority / 3 for moment in moments[: len(contents.authorities)]]
    moments += [publication.since + lifetimes.settle for publication in publications if publication.since]
    if contents.leaf:
        moments += [contents.leaf.expires, contents.leaf.expires - lifetimes.leaf / 3]
    return min((moment for moment in moments if moment > now), default=now + lifetimes.settle)
