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


class Recorded(msgspec.Struct, frozen=True):
    """A ChangeWorkload: what is read of it, and the whole object as the API server sent it."""

    record: ChangeWorkload
    raw: bytes

    @property
    def metadata(self) -> ObjectMeta:
        return self.record.metadata


class Release(NamedTuple):
    """One version of a workload. `recorded` is None for the present version as long as it has no ChangeWorkload."""

    workload: Workload
    recorded: Recorded | None

    @property
    def pending(self) -> bool:
        """Whether it is admitted, and not recorded yet. The record may be there, from when the version was released
        before."""
        if self.recorded is None:
            return True
        return not self.workload.processed and releases.version(self.recorded.record) == self.workload.version

    @property
    def present(self) -> bool:
        """Whether it is of the version that its workload has now."""
        return self.pending or (self.recorded is not None and releases.is_current(self.recorded.record, self.workload))


class Snapshot(NamedTuple):
    workloads: Sequence[Workload]
    records: Sequence[Recorded]


def recorded(data: bytes | msgspec.Raw) -> Recorded:
    """A ChangeWorkload as the API server sent it; msgspec.DecodeError where it is none."""
    raw = bytes(data)
    return Recorded(msgspec.json.decode(raw, type=ChangeWorkload), raw)


def shown(snapshot: Snapshot) -> list[Release]:
    """The releases to show, in their order: by workload, and the versions of a workload by their age."""
    found: list[Release] = []
    for workload, records in _families(snapshot):
        found += (Release(workload, each) for each in records)
        if workload.version and not any(releases.version(each.record) == workload.version for each in records):
            found.append(Release(workload, None))
    return found


def outcomes(snapshot: Snapshot) -> list[Outcome]:
    """The outcome of each workload that has a release."""
    return [
        releases.outcome(workload, (each.record for each in records))
        for workload, records in _families(snapshot)
        if workload.version
    ]


def under_way(release: Release) -> bool:
    """Whether this release of its workload has not ended yet."""
    records = [] if release.recorded is None else [release.recorded.record]
    return release.present and releases.outcome(release.workload, records) is Outcome.UNDER_WAY


def demand(snapshot: Snapshot, targets: Iterable[Target], namespace: str) -> None:
    """StatusError for the first workload that was named and does not exist, or has no release."""
    families = _families(snapshot)
    for target in targets:
        if not target.name:
            continue
        kinds = {adapter.resource.kind for adapter in target.adapters}
        found = [
            (workload, records)
            for workload, records in families
            if workload.kind in kinds and workload.metadata.name == target.name
        ]
        if not found:
            raise StatusError(
                f'{target.described} not found in namespace "{namespace}"; check the name, or name another namespace '
                "with -n"
            )
        if not any(workload.version or records for workload, records in found):
            raise StatusError(
                f'{target.described} in namespace "{namespace}" has no release that AlterShield knows; label the '
                f"namespace with {labels.GOVERNED}={labels.GOVERNED_VALUE} and release it again"
            )


def _families(snapshot: Snapshot) -> list[tuple[Workload, list[Recorded]]]:
    """Each workload with its records, both in the order in which they are shown."""
    by_family: dict[str, list[Recorded]] = {}
    for each in snapshot.records:
        by_family.setdefault(releases.family_of(each.record), []).append(each)
    families = []
    for workload in sorted(snapshot.workloads, key=_place):
        metadata, kind = workload.metadata, workload.kind
        ref = WorkloadRef(BY_KIND[kind].resource.api_version, kind, metadata.name, metadata.uid)
        of_name = by_family.get(releases.family(metadata.namespace, ref), ())
        families.append((workload, sorted((each for each in of_name if releases.belongs(each.record, ref)), key=_age)))
    return families


def _place(workload: Workload) -> tuple[str, str, str]:
    return workload.metadata.namespace, workload.metadata.name, workload.kind


def _age(each: Recorded) -> tuple[int, int]:
    return each.record.spec.create_time_unix, each.record.spec.workload_generation
