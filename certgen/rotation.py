"""Renewals on request, before they are due."""

import asyncio
import datetime
from collections.abc import Callable

from cryptography import x509

from certgen.cluster_state import ClusterState
from certgen.contents import Contents
from certgen.errors import CertificateError
from certgen.plan import Reason, new_authority, new_leaf, without_retired
from certgen.reconciler import CertificateReconciler, Outcome
from certgen.settings import Mode
from kube_base.access.backoff import delay
from kube_base.access.errors import ConflictError


async def renew_leaf(reconciler: CertificateReconciler) -> Outcome:
    """Replace the serving certificate."""
    settings = reconciler.settings
    await _change(
        reconciler,
        Reason.LEAF_ASKED,
        lambda found, now: new_leaf(
            found.contents, found.configurations, hosts=settings.hosts, lifetimes=settings.lifetimes, now=now
        ),
    )
    return await reconciler.ensure()


async def replace_authority(reconciler: CertificateReconciler, *, distrust: bool = False) -> Outcome:
    """Replace the CA without failed admissions. With `distrust`: remove the old CAs from the bundles before they
    expire, when every replica has had the settling time to serve the new certificate."""
    lifetimes = reconciler.settings.lifetimes
    changed = await _change(
        reconciler, Reason.AUTHORITY_ASKED, lambda found, now: new_authority(found.contents, lifetimes, now)
    )
    successor = changed.authorities[0].certificate
    outcome = await reconciler.reconcile_until(lambda outcome: _signed_by(outcome.contents, successor))
    if distrust:
        await asyncio.sleep(lifetimes.settle.total_seconds())
        await _change(reconciler, Reason.AUTHORITY_DISTRUSTED, lambda found, _: without_retired(found.contents))
        outcome = await reconciler.ensure()
    return outcome


async def _change(
    reconciler: CertificateReconciler, reason: Reason, change: Callable[[ClusterState, datetime.datetime], Contents]
) -> Contents:
    """Reconcile the Secret, then write the contents that `change` returns."""
    settings = reconciler.settings
    if settings.mode is not Mode.CERTGEN:
        raise CertificateError(
            f"the Secret {settings.secret} belongs to its provider ({settings.mode}); renew it there"
        )
    found = await reconciler.read_cluster()
    if found.secret is None:
        raise CertificateError(
            f"the Secret {settings.secret} does not exist in {settings.system_namespace}; name the release's Secret "
            "with --secret, or create it with `ensure`"
        )
    if found.is_foreign:
        raise CertificateError(
            f"certgen did not create the Secret {settings.secret}: its provider has to renew it; if it has no "
            "provider, `ensure` replaces it"
        )
    await reconciler.ensure()
    while True:
        found = await reconciler.read_cluster()
        contents = change(found, reconciler.now())
        try:
            await reconciler.store(found, contents, (reason,))
        except ConflictError as error:  # another replica was faster
            await asyncio.sleep(delay(1, error))
        else:
            return contents


def _signed_by(contents: Contents, successor: x509.Certificate) -> bool:
    """Whether `successor` or a newer CA signed the serving certificate."""
    issuer = contents.issuer
    if issuer is None or successor not in contents.trusted:
        return False
    return contents.trusted.index(issuer) <= contents.trusted.index(successor)
