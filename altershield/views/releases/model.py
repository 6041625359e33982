"""The workloads and ChangeWorkloads of a cluster at one moment, and the releases that follow from them. All functions
are pure."""

from collections.abc import Callable, Container, Iterable, Sequence
from typing import NamedTuple

import msgspec

from altershield import releases
from altershield.api import labels
from altershield.api.change_workload import ChangeWorkload, WorkloadRef
from altershield.images import Images, named
from altershield.releases import Outcome, steps
from altershield.views.selection import Selection
from altershield.workloads import BY_KIND
from altershield.workloads.workload import Workload
from kube_base.errors import ReportedError
from kube_base.meta import ObjectMeta
from kube_base.resources import GroupKind


class StatusError(ReportedError):
    """The requested releases do not exist or cannot be read."""


class StoredRelease(msgspec.Struct, frozen=True):
    """A ChangeWorkload: its decoded fields, and the whole object from the API server."""

    release: ChangeWorkload
    raw: bytes

    @property
    def metadata(self) -> ObjectMeta:
        return self.release.metadata


class Release(NamedTuple):
    """One version of a workload. `stored` is None if the present template has no ChangeWorkload yet."""

    workload: Workload
    stored: StoredRelease | None
    reviewed: bool = True
    """False: the template changed without the version label, as no gatekeeper reviewed it, or the label was lost."""

    words: str = ""
    """Why its pods are not up, if the ChangeWorkload does not say it and the pods were read."""
    older_images: Images = ()
    """The images of its template, if it is not the present one and they were read."""
    images_before: Images = ()
    """The images of the version before, if they were read."""

    @property
    def key(self) -> tuple[str, str, GroupKind]:
        """The namespace, the name and the kind of the workload."""
        return self.workload.metadata.namespace, self.workload.metadata.name, self.workload.group_kind

    @property
    def images(self) -> str:
        """The images of the version in a short text, those that it changed first; empty if they are not known."""
        return named(self.workload.images if self.present else self.older_images, self.images_before)

    @property
    def version(self) -> str:
        """The version. It is not known before the reconciler has found a template that no gatekeeper reviewed; then the
        fingerprint of the template."""
        if self.stored is not None:
            return releases.version_of(self.stored.release)
        return self.workload.version if self.reviewed else self.workload.fingerprint

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many pods passed, failed, and wait for their verdict; zeros before the reconciler has processed it."""
        if self.stored is None or self.pending:
            return 0, 0, 0
        status = self.stored.release.status
        waiting = len(status.defense_preparing_pods) + len(status.defense_checking_pods)
        return len(status.defense_check_pass_pods), len(status.defense_check_fail_pods), waiting

    @property
    def message(self) -> str:
        """The reason for its state, in one line; empty if there is none, or if it has no ChangeWorkload."""
        why = "" if self.stored is None else releases.why(self.stored.release, current=self.present)
        return "; ".join(filter(None, (self._step, why, self.words)))

    @property
    def _step(self) -> str:
        """Where a present release in steps is."""
        status = self.stored.release.status.rollout if self.stored is not None and self.present else None
        return steps.sentence(status) if status is not None and steps.in_steps(status) else ""

    @property
    def pending(self) -> bool:
        """Whether the reconciler has not processed the release yet. Its ChangeWorkload may exist from an earlier
        release of the version."""
        return self.stored is None or (self._of_present_template and not self.workload.processed)

    @property
    def present(self) -> bool:
        """Whether this is the release of the workload's present template."""
        return self.pending or (
            self._of_present_template
            and self.stored is not None
            and releases.is_current(self.stored.release, self.workload)
        )

    @property
    def _of_present_template(self) -> bool:
        return self.stored is not None and _is_of(self.workload, self.stored)


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
        labelled = next((each for each in stored_releases if _has_version(workload, each)), None)
        if labelled is None and workload.version:
            found.append(Release(workload, None))
        elif stored_releases and (labelled is None or not _is_of(workload, labelled)):
            found.append(Release(workload, None, reviewed=False))
    return found


def outcomes(
    snapshot: Snapshot, asked: Container[str] = (), arrived: Callable[[Release], bool] = lambda _: False
) -> list[Outcome]:
    """The outcome of each workload that has a release. `asked`: as for `releases.outcome`. `arrived`: whether a release
    that is under way has come as far as the user waits for; then it counts as a success."""
    return [
        _outcome(workload, stored_releases, asked, arrived)
        for workload, stored_releases in _families(snapshot)
        if workload.version or stored_releases
    ]


def _outcome(
    workload: Workload,
    stored_releases: Sequence[StoredRelease],
    asked: Container[str],
    arrived: Callable[[Release], bool],
) -> Outcome:
    found = releases.outcome(workload, (each.release for each in stored_releases), asked)
    if found is Outcome.UNDER_WAY and any(arrived(Release(workload, each)) for each in stored_releases):
        return Outcome.SUCCEEDED
    return found


def under_way(release: Release) -> bool:
    """Whether this release has not ended yet."""
    own = [] if release.stored is None else [release.stored.release]
    return release.present and releases.outcome(release.workload, own) is Outcome.UNDER_WAY


def demand(snapshot: Snapshot, selections: Iterable[Selection], namespace: str) -> None:
    """StatusError: a workload that was named does not exist or has no release."""
    families = _families(snapshot)
    for selection in selections:
        if not selection.name:
            continue
        kinds = {adapter.resource.group_kind for adapter in selection.adapters}
        found = [
            (workload, stored_releases)
            for workload, stored_releases in families
            if workload.group_kind in kinds and workload.metadata.name == selection.name
        ]
        if not found:
            raise StatusError(
                f'{selection.described} not found in namespace "{namespace}"; check the name, or set another namespace '
                "with -n"
            )
        if not any(workload.version or stored_releases for workload, stored_releases in found):
            raise StatusError(
                f'{selection.described} in namespace "{namespace}" has no release; to govern its namespace, run '
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
        metadata, resource = workload.metadata, BY_KIND[workload.group_kind].resource
        ref = WorkloadRef(resource.api_version, resource.kind, metadata.name, metadata.uid)
        of_name = by_family.get(releases.workload_index_key(metadata.namespace, ref), ())
        families.append((workload, sorted((each for each in of_name if releases.belongs(each.release, ref)), key=_age)))
    return families


def _has_version(workload: Workload, each: StoredRelease) -> bool:
    """Whether the workload has the version label of this release."""
    return releases.version_of(each.release) == workload.version


def _is_of(workload: Workload, each: StoredRelease) -> bool:
    """Whether the release is the one that the version label names, and is of the present template."""
    return _has_version(workload, each) and releases.is_of_present_template(each.release, workload)


def _place(workload: Workload) -> tuple[str, str, str, str]:
    return workload.metadata.namespace, workload.metadata.name, workload.kind, workload.group_kind.group


def _age(each: StoredRelease) -> tuple[int, int]:
    return each.release.spec.create_time_unix, each.release.spec.workload_generation


def waits(release: Release) -> str:
    """What a release waits for that the reconciler has not processed yet."""
    return "admitted, not yet processed" if release.reviewed else "the present pod template is not verified yet"
