"""Which releases slipped past the gate, and as which version they are verified.

The gate writes one version on a Deployment and on its pod template, from where ReplicaSet and pods have it. A release
that no gate saw shows in its ReplicaSet: without a version, with one that the Deployment does not have, or with that
of another ReplicaSet that was made from another template. It then gets the version that its template has (its
fingerprint) as a label of ReplicaSet, pods and Deployment. Pod templates stay as they are, so nothing restarts; the
version in a ReplicaSet's template being another one than its own is what tells such a release from then on.

A false alarm is worse than a late one: nothing is said while caches or the deployment controller have yet to catch
up, nor of what may be from before the gate was there.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from altershield.api import labels, names
from altershield.api.meta import unix
from altershield.api.views import Deployment, ManagedDeployment, ReplicaSet


class SlipReason:
    """Reasons of the condition Slipped."""

    NO_VERSION = "NoVersion"
    VERSION_REUSED = "VersionReused"


@dataclass(frozen=True, slots=True)
class Slip:
    """A release that slipped past the gate."""

    version: str
    """The one it is verified as."""
    reason: str
    message: str


def present(deployment: Deployment, replica_sets: Iterable[ReplicaSet]) -> ReplicaSet | None:
    """The ReplicaSet of the Deployment's present template; None where that is not certain (yet), as while another
    template waits because the Deployment is paused."""
    found = _newest(replica_sets)
    if (
        len(found) != 1
        or found[0].metadata.deletion_timestamp is not None
        or found[0].revision != deployment.revision
        or deployment.status.observed_generation < deployment.metadata.generation
        or found[0].spec.template.version != deployment.spec.template.version
    ):
        return None
    return found[0]


def behind(deployment: Deployment, replica_sets: Iterable[ReplicaSet]) -> bool:
    """Whether the deployment controller has something to do for the Deployment that may show more."""
    found = _newest(replica_sets)
    return bool(found) and (
        deployment.revision < found[0].revision
        or deployment.status.observed_generation < deployment.metadata.generation
    )


def relabelled(replica_set: ReplicaSet) -> bool:
    """Whether it slipped past the gate and got its version since; its new pods come without."""
    return names.is_version(replica_set.version) and replica_set.version != replica_set.spec.template.version


def namesakes(replica_set: ReplicaSet, replica_sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """The others whose templates carry the same version, though one version has one template."""
    if relabelled(replica_set) or not names.is_version(replica_set.version):
        return []
    return [
        other
        for other in replica_sets
        if other.metadata.uid != replica_set.metadata.uid
        and other.version == replica_set.version
        and not relabelled(other)
        and _hash(other) != _hash(replica_set)
    ]


def doubtful(deployment: Deployment, replica_set: ReplicaSet, replica_sets: Iterable[ReplicaSet]) -> bool:
    """Whether the Deployment's present ReplicaSet may have slipped past the gate, so that it pays to look closer."""
    return (
        not names.is_version(replica_set.version)
        or replica_set.version != deployment.version
        or bool(namesakes(replica_set, replica_sets))
    )


def judge(
    deployment: ManagedDeployment,
    replica_set: ReplicaSet,
    fingerprint: str,
    others: Collection[str],
    gated_since: float,
) -> Slip | None:
    """The slip, if the Deployment's present ReplicaSet is one; None where all is well or too little is known.

    `fingerprint` is that of the ReplicaSet's template, `others` those of its namesakes' templates. The Deployment is as
    the API server has it now, not as caches show it.
    """
    version = _version(deployment, replica_set, fingerprint, others)
    if version == replica_set.version == deployment.version:
        return None
    unknown = not (names.is_version(replica_set.version) and names.is_version(deployment.version))
    if unknown and not _after(gated_since, deployment, replica_set):
        return None
    carried = replica_set.spec.template.version
    if names.is_version(carried):
        reason, what = SlipReason.VERSION_REUSED, f"still has the version {carried} of an earlier release"
    else:
        reason, what = SlipReason.NO_VERSION, "has no version"
    return Slip(
        version,
        reason,
        f"ReplicaSet {replica_set.metadata.name} (revision {replica_set.revision}) slipped past the gate: its pod "
        f"template {what}. It is verified as version {version}, and nothing was restarted for that. Find out why no "
        f"gate saw it: was it down, were its webhooks gone, was the namespace without {labels.GOVERNED}="
        f"{labels.GOVERNED_VALUE}?",
    )


def _version(deployment: Deployment, replica_set: ReplicaSet, fingerprint: str, others: Collection[str]) -> str:
    if relabelled(replica_set):
        return replica_set.version
    if not names.is_version(replica_set.version) or replica_set.version != deployment.version:
        return fingerprint
    # Defaults that came with a newer API server change every fingerprint, and ReplicaSets may be twins after an
    # upgrade or a collision of hashes: so only a template that is neither the version's nor the others' is a slip.
    reused = fingerprint != replica_set.version and any(other != fingerprint for other in others)
    return fingerprint if reused else replica_set.version


def _after(gated_since: float, deployment: ManagedDeployment, replica_set: ReplicaSet) -> bool:
    """Whether the release is certainly from after the gate was there. The ReplicaSet of one from before may be made
    only then, or made again if somebody deletes it."""
    released_at = deployment.metadata.released_at
    return (
        released_at is not None
        and released_at > gated_since
        and unix(replica_set.metadata.creation_timestamp) > gated_since
    )


def _newest(replica_sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """Those of the latest revision: more than one only while a rollback is under way."""
    found = list(replica_sets)
    latest = max((replica_set.revision for replica_set in found), default=0)
    return [replica_set for replica_set in found if latest and replica_set.revision == latest]


def _hash(replica_set: ReplicaSet) -> str:
    return replica_set.metadata.labels.get(labels.POD_TEMPLATE_HASH, "")
