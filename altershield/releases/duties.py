"""Separation of duties: the user who released a version does not decide that its failure does not matter. Pure
functions.

The reconciler writes the user into `spec.notDecidedBy` of the ChangeWorkload and of its ChangePods, if its option
`--separation-of-duties` is set when the release begins. An admission policy of the API server, the gatekeeper and the
reconciler read it there. Going back to an older version is always possible.
"""

from collections.abc import Iterable

from altershield.api.released_by import MAX_USER
from altershield.api.workload_requests import Verb
from altershield.releases.release import Release, rolled_back, version_of

DECISIONS = (Verb.APPROVE, Verb.REPAIR, Verb.RESUME, Verb.RETRY)
"""The requests that another user has to make. The other verbs go back, hold a release in steps, or promote it, for
which its policy has `otherApprover`."""


def decided(verb: str, present: Release | None, others: Iterable[Release]) -> list[Release]:
    """The releases about which a request decides: the present one, and by a repair also the others that were rolled
    back, which it lets pass. Empty: the request is no decision."""
    if verb not in DECISIONS:
        return []
    passing = (each for each in others if rolled_back(each)) if verb == Verb.REPAIR else ()
    return [*((present,) if present is not None else ()), *passing]


def not_theirs(user: str, releases: Iterable[Release]) -> Release | None:
    """The first of these releases about which the user may not decide. Somebody without a name may not decide about a
    release that one user may not decide about."""
    return next(
        (each for each in releases if each.spec.not_decided_by and user[:MAX_USER] in ("", each.spec.not_decided_by)),
        None,
    )


def denial(release: Release, namespace: str) -> str:
    """Who released it, who may decide, and what its releaser may do."""
    return (
        f"{release.spec.not_decided_by} released version {version_of(release)}, so another user has to decide about "
        f"it: one with the ClusterRole altershield-verdicts in namespace {namespace}; everybody may go back to the "
        "last version that passed: altershield rollback"
    )
