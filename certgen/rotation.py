"""Renewals that somebody asks for, before they are due."""

import asyncio
import datetime
from collections.abc import Callable

from cryptography import x509

from altershield.kube.backoff import delay
from altershield.kube.errors import ConflictError
from certgen.contents import Contents
from certgen.errors import CertificateError
from certgen.keeper import Found, Keeper, Outcome
from certgen.plan import Reason, new_authority, new_leaf, without_retired
from certgen.settings import Mode


async def renew(keeper: Keeper) -> Outcome:
    """Put a new serving certificate in place of the present one."""
    settings = keeper.settings
    await _change(
        keeper,
        Reason.LEAF_ASKED,
        lambda found, now: new_leaf(
            found.contents, found.publications, hosts=settings.hosts, lifetimes=settings.lifetimes, now=now
        ),
    )
    return await keeper.ensure()


async def succeed(keeper: Keeper, *, distrust: bool = False) -> Outcome:
    """Let a new CA take over, without a gap. `distrust`: then take the old ones out of the bundles, though they
    have not expired, once every replica has had the settling time to serve the new certificate."""
    lifetimes = keeper.settings.lifetimes
    changed = await _change(
        keeper, Reason.AUTHORITY_ASKED, lambda found, now: new_authority(found.contents, lifetimes, now)
    )
    successor = changed.authorities[0].certificate
    outcome = await keeper.until(lambda outcome: _signed_by(outcome.contents, successor))
    if distrust:
        await asyncio.sleep(lifetimes.settle.total_seconds())
        await _change(keeper, Reason.AUTHORITY_DISTRUSTED, lambda found, _: without_retired(found.contents))
        outcome = await keeper.ensure()
    return outcome


async def _change(keeper: Keeper, reason: Reason, change: Callable[[Found, datetime.datetime], Contents]) -> Contents:
    """Write what `change` makes of a Secret that is in order."""
    settings = keeper.settings
    if settings.mode is not Mode.CERTGEN:
        raise CertificateError(
            f"the Secret {settings.secret} belongs to its provider ({settings.mode}); renew it there"
        )
    found = await keeper.find()
    if found.secret is None:
        raise CertificateError(
            f"the Secret {settings.secret} does not exist in {settings.namespace}; say with --secret how the release "
            "calls it, or make it with `ensure`"
        )
    if found.is_foreign:
        raise CertificateError(
            f"certgen did not make the Secret {settings.secret}: whoever provides it has to renew it; if nobody does, "
            "`ensure` replaces it"
        )
    await keeper.ensure()
    while True:
        found = await keeper.find()
        contents = change(found, keeper.now())
        try:
            await keeper.store(found, contents, (reason,))
        except ConflictError as error:  # another replica was faster
            await asyncio.sleep(delay(1, error))
        else:
            return contents


def _signed_by(contents: Contents, successor: x509.Certificate) -> bool:
    """Whether `successor`, or one that came after it, signed the serving certificate."""
    issuer = contents.issuer
    if issuer is None or successor not in contents.trusted:
        return False
    return contents.trusted.index(issuer) <= contents.trusted.index(successor)
