"""The workloads and ChangeWorkloads of a cluster at one moment, and the releases that follow from them. All functions
are pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from altershield import releases
from altershield.api import labels
from altershield.api.change_workload import ChangeWorkload, WorkloadRef
from altershield.api.meta import ObjectMeta
from altershield.commands.status.targets import Target
from altershield.errors import AlterShieldError
from altershield.releases import Outcome
from altershield.workloads import BY_KIND
from altershield.workloads.workload import Workload


class StatusError(AlterShieldError):
    """The requested releases do not exist or cannot be read."""


class StoredRelease(msgspec.Struct, frozen=True):
    """A ChangeWorkload: its decoded fields, and the whole object from the API server."""

    release: ChangeWorkload
    raw: bytes

    @property
    def metadata(self) -> ObjectMeta:
        return self.release.metadata


class Release(NamedTuple):
    """One version of a workload. `stored` is None if the present version has no ChangeWorkload yet."""

    workload: Workload
    stored: StoredRelease | None
    words: str = ""
    """Why its pods are not up, if the ChangeWorkload does not say it and the pods were read."""

    @property
    def message(self) -> str:
        """The reason for its state, in one line; empty if there is none, or if it has no ChangeWorkload."""
        why = "" if self.stored is None else releases.why(self.stored.release, current=self.present)
        return "; ".join(filter(None, (why, self.words)))

    @property
    def pending(self) -> bool:
        """Whether the version is admitted, but the reconciler has not processed it. Its ChangeWorkload may exist from
        an earlier release of the version."""
        if self.stored is None:
            return True
        return not self.workload.processed and releases.version(self.stored.release) == self.workload.version

    @property
    def present(self) -> bool:
        """Whether this is the present version of the workload."""
        return self.pending or (self.stored is not None and releases.is_current(self.stored.release, self.workload))


class Snapshot(NamedTuple):
    workloads: Sequence[Workload]
    releases: Sequence[StoredRelease]


def stored(data: bytes | msgspec.Raw) -> StoredRelease:
    """A ChangeWorkload from the API server. msgspec.DecodeError: `data` is not a ChangeWorkload."""
    raw = bytes(data)
    return StoredRelease(msgspec.json.decode(raw, type=ChangeWorkload), raw)


def shown(snapshot: Snapshot) -> list[Release]:
    """The releases to show, sorted by workload and age."""
    found: list[Release] = []
    for workload, stored_releases in _families(snapshot):
        found += (Release(workload, each) for each in stored_releases)
        if workload.version and not any(releases.version(each.release) == workload.version for each in stored_releases):
            found.append(Release(workload, None))
    return found


def outcomes(snapshot: Snapshot) -> list[Outcome]:
    """The outcome of each workload that has a release."""
    return [
        releases.outcome(workload, (each.release for each in stored_releases))
        for workload, stored_releases in _families(snapshot)
        if workload.version
    ]


def under_way(release: Release) -> bool:
    """Whether this release has not ended yet."""
    own = [] if release.stored is None else [release.stored.release]
    return release.present and releases.outcome(release.workload, own) is Outcome.UNDER_WAY


def demand(snapshot: Snapshot, targets: Iterable[Target], namespace: str) -> None:
    """StatusError: a workload that was named does not exist or has no release."""
    families = _families(snapshot)
    for target in targets:
        if not target.name:
            continue
        kinds = {adapter.resource.kind for adapter in target.adapters}
        found = [
            (workload, stored_releases)
            for workload, stored_releases in families
            if workload.kind in kinds and workload.metadata.name == target.name
        ]
        if not found:
            raise StatusError(
                f'{target.described} not found in namespace "{namespace}"; check the name, or set another namespace '
                "with -n"
            )
        if not any(workload.version or stored_releases for workload, stored_releases in found):
            raise StatusError(
                f'{target.described} in namespace "{namespace}" has no release; to govern its namespace, run '
                f"`kubectl label namespace {namespace} {labels.GOVERNED_SELECTOR}`; if the namespace has this label "
                "already, the first release of the workload is still to come"
            )


def _families(snapshot: Snapshot) -> list[tuple[Workload, list[StoredRelease]]]:
    """Each workload with its ChangeWorkloads, sorted for the output."""
    by_family: dict[str, list[StoredRelease]] = {}
    for each in snapshot.releases:
        by_family.setdefault(releases.release_index_key(each.release), []).append(each)
    families = []
    for workload in sorted(snapshot.workloads, key=_place):
        metadata, kind = workload.metadata, workload.kind
        ref = WorkloadRef(BY_KIND[kind].resource.api_version, kind, metadata.name, metadata.uid)
        of_name = by_family.get(releases.workload_index_key(metadata.namespace, ref), ())
        families.append((workload, sorted((each for each in of_name if releases.belongs(each.release, ref)), key=_age)))
    return families


def _place(workload: Workload) -> tuple[str, str, str]:
    return workload.metadata.namespace, workload.metadata.name, workload.kind


def _age(each: StoredRelease) -> tuple[int, int]:
    return each.release.spec.create_time_unix, each.release.spec.workload_generation
