"""What the cluster holds of the releases that were asked for, at one moment. Pure functions."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from altershield import releases
from altershield.api import labels
from altershield.api.kinds import ChangeWorkload, WorkloadRef
from altershield.api.meta import ObjectMeta
from altershield.commands.status.targets import Target
from altershield.errors import AlterShieldError
from altershield.releases import Outcome
from altershield.workloads import BY_KIND
from altershield.workloads.workload import Workload


class StatusError(AlterShieldError):
    """The releases that were asked for cannot be shown: there are none, or they cannot be read."""


class StoredRelease(msgspec.Struct, frozen=True):
    """A ChangeWorkload: what is read of it, and the whole object as the API server sent it."""

    release: ChangeWorkload
    raw: bytes

    @property
    def metadata(self) -> ObjectMeta:
        return self.release.metadata


class Release(NamedTuple):
    """One version of a workload. `stored` is None for the present version as long as it has no ChangeWorkload."""

    workload: Workload
    stored: StoredRelease | None

    @property
    def pending(self) -> bool:
        """Whether it is admitted, and not recorded yet. The record may be there, from when the version was released
        before."""
        if self.stored is None:
            return True
        return not self.workload.processed and releases.version(self.stored.release) == self.workload.version

    @property
    def present(self) -> bool:
        """Whether it is of the version that its workload has now."""
        return self.pending or (self.stored is not None and releases.is_current(self.stored.release, self.workload))


class Snapshot(NamedTuple):
    workloads: Sequence[Workload]
    releases: Sequence[StoredRelease]


def stored(data: bytes | msgspec.Raw) -> StoredRelease:
    """A ChangeWorkload as the API server sent it; msgspec.DecodeError where it is none."""
    raw = bytes(data)
    return StoredRelease(msgspec.json.decode(raw, type=ChangeWorkload), raw)


def shown(snapshot: Snapshot) -> list[Release]:
    """The releases to show, in their order: by workload, and the versions of a workload by their age."""
    found: list[Release] = []
    for workload, all_releases in _families(snapshot):
        found += (Release(workload, each) for each in all_releases)
        if workload.version and not any(releases.version(each.release) == workload.version for each in all_releases):
            found.append(Release(workload, None))
    return found


def outcomes(snapshot: Snapshot) -> list[Outcome]:
    """The outcome of each workload that has a release."""
    return [
        releases.outcome(workload, (each.release for each in all_releases))
        for workload, all_releases in _families(snapshot)
        if workload.version
    ]


def under_way(release: Release) -> bool:
    """Whether this release of its workload has not ended yet."""
    all_releases = [] if release.stored is None else [release.stored.release]
    return release.present and releases.outcome(release.workload, all_releases) is Outcome.UNDER_WAY


def demand(snapshot: Snapshot, targets: Iterable[Target], namespace: str) -> None:
    """StatusError for the first workload that was named and does not exist, or has no release."""
    families = _families(snapshot)
    for target in targets:
        if not target.name:
            continue
        kinds = {adapter.resource.kind for adapter in target.adapters}
        found = [
            (workload, all_releases)
            for workload, all_releases in families
            if workload.kind in kinds and workload.metadata.name == target.name
        ]
        if not found:
            raise StatusError(
                f'{target.described} not found in namespace "{namespace}"; check the name, or name another namespace '
                "with -n"
            )
        if not any(workload.version or all_releases for workload, all_releases in found):
            raise StatusError(
                f'{target.described} in namespace "{namespace}" has no release that AlterShield knows; label the '
                f"namespace with {labels.GOVERNED}={labels.GOVERNED_VALUE} and release it again"
            )


def _families(snapshot: Snapshot) -> list[tuple[Workload, list[StoredRelease]]]:
    """Each workload with its records, both in the order in which they are shown."""
    by_family: dict[str, list[StoredRelease]] = {}
    for each in snapshot.releases:
        by_family.setdefault(releases.family_of(each.release), []).append(each)
    families = []
    for workload in sorted(snapshot.workloads, key=_place):
        metadata, kind = workload.metadata, workload.kind
        ref = WorkloadRef(BY_KIND[kind].resource.api_version, kind, metadata.name, metadata.uid)
        of_name = by_family.get(releases.family(metadata.namespace, ref), ())
        families.append((workload, sorted((each for each in of_name if releases.belongs(each.release, ref)), key=_age)))
    return families


def _place(workload: Workload) -> tuple[str, str, str]:
    return workload.metadata.namespace, workload.metadata.name, workload.kind


def _age(each: StoredRelease) -> tuple[int, int]:
    return each.release.spec.create_time_unix, each.release.spec.workload_generation
