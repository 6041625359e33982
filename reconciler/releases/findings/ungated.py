"""Finds ungated releases, and the version under which each of them is verified. Pure functions.

The gatekeeper writes one version on a workload and on its pod template: the fingerprint of the template. A release that
no gatekeeper reviewed has a template with another fingerprint than the one of its version. AlterShield then writes the
version that fits as a label of the workload and of its pods. Pod templates stay as they are, so nothing restarts.

A fingerprint also changes without a release: an API server with other defaults returns a stored template differently.
So a version is recognised by the object that it came from. A false alarm is worse than a late alarm, so releases that
may be older than the gatekeeper are not reported.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from altershield.api import labels, names
from altershield.api.change_workload import SourceRef
from altershield.releases.release import version_of
from altershield.workloads.workload import Workload
from reconciler.cluster.release import Release


class UngatedReason(StrEnum):
    """Reasons of the condition Ungated."""

    NO_VERSION = "NoVersion"
    VERSION_REUSED = "VersionReused"


@dataclass(frozen=True, slots=True)
class UngatedRelease:
    """A release that no gatekeeper reviewed."""

    version: str
    """The version under which the release is verified."""
    reason: UngatedReason
    message: str


@dataclass(frozen=True, slots=True)
class Restore:
    """Not a release: the workload lost its version label."""

    version: str


@dataclass(frozen=True, slots=True)
class Refresh:
    """Not a release: the API server returns the template with other defaults than when the version was stored."""

    source: SourceRef


@dataclass(frozen=True, slots=True)
class Revision:
    """An object that holds a template of the workload, as the API server has it now."""

    source: SourceRef
    """`version` is the version label of its template."""
    created: int
    """Unix seconds."""
    number: int
    """The number of the release, counted by the workload's controller; 0 if it is not known."""


def may_be_ungated(workload: Workload, release: Release | None) -> bool:
    """Whether the current release may be ungated, so that live reads are worthwhile."""
    if not workload.fingerprint:
        return False
    if release is not None and release.status.source.uid:
        return workload.fingerprint != release.status.source.fingerprint
    return workload.version != workload.fingerprint


def current_revision(workload: Workload, revisions: Sequence[Revision]) -> Revision | None:
    """The object that holds the workload's current template; None if the workload's controller has not
    created it yet."""
    found = [each for each in revisions if each.source.fingerprint == workload.fingerprint]
    named = [each for each in found if each.source.name == workload.update_revision]
    return max(named or found, key=lambda each: (each.number, each.created), default=None)


def classify(
    workload: Workload,
    own_releases: Sequence[Release],
    revisions: Sequence[Revision],
    *,
    released_at: float | None,
    governed_since: float,
) -> UngatedRelease | Restore | Refresh | None:
    """The finding about a release that may be ungated; None if the release was reviewed, or if too little is known.

    `workload` and `revisions` are as the API server has them now. `released_at`: when the template was last written.
    `governed_since`: since when gatekeepers review the namespace. Both are Unix seconds.
    """
    current = current_revision(workload, revisions)
    if current is None:
        return None
    source = current.source
    named = next((each for each in own_releases if version_of(each) == workload.version), None)
    if named is not None and named.status.source.uid == source.uid:
        fresh = SourceRef(source.kind, source.name, source.uid, workload.version, workload.fingerprint)
        return Refresh(fresh) if named.status.source != fresh else None
    known = next((each for each in own_releases if each.status.source.uid == source.uid), None)
    if names.is_version(workload.version):
        if named is not None and named.status.source.uid:
            reused = True
        else:  # no ChangeWorkload has the origin of the version: look for another template with this version
            others = [each for each in revisions if each.source.uid != source.uid]
            reused = known is not None or (
                any(
                    each.source.version == workload.version and each.source.fingerprint != workload.fingerprint
                    for each in others
                )
                and source.version == workload.version
            )
        if not reused or workload.version == workload.fingerprint:
            return None
        return _ungated(workload, current, known)
    if known is not None:
        return Restore(version_of(known))
    if released_at is None or not governed_since < min(released_at, current.created):
        return None
    return _ungated(workload, current, known)


def _ungated(workload: Workload, revision: Revision, known: Release | None) -> UngatedRelease:
    """The finding about an ungated release. `known`: the ChangeWorkload of an earlier release of the same object."""
    label = revision.source.version
    if names.is_version(label):
        reason, finding = UngatedReason.VERSION_REUSED, f"still has the version {label} of an earlier release"
    else:
        reason, finding = UngatedReason.NO_VERSION, "has no version"
    version = version_of(known) if known is not None else workload.fingerprint
    source = revision.source
    return UngatedRelease(
        version,
        reason,
        f"{source.kind} {source.name} (revision {revision.number}) was released without an admission review: its pod "
        f"template {finding}. AlterShield verifies the release as version {version}; no pod was restarted for this. "
        f"Find out why no gatekeeper reviewed it: was every gatekeeper down, were the webhook configurations missing, "
        f"was the object too large for a review, or did the namespace not have the label "
        f"{labels.GOVERNED_SELECTOR}?",
    )
