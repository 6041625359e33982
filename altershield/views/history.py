"""Reads the history of one workload."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from altershield.api.change_workload import WorkloadState
from altershield.images import Images, images_of
from altershield.releases import history
from altershield.releases.history import Entry, Record
from altershield.views import permission
from altershield.views.names import short_version
from altershield.views.releases.model import StatusError
from altershield.views.selection import Selection, full_plural
from altershield.workloads.workload import Workload
from kube_base.access.client import Client
from kube_base.access.errors import ForbiddenError, NotFoundError
from kube_base.errors import UsageError

_LISTED = 10  # versions that an error lists


class Version(NamedTuple):
    """A version of the history, and the whole ControllerRevision from the API server."""

    entry: Entry
    obj: dict[str, Any]


class Found(NamedTuple):
    workload: Workload
    versions: Sequence[Version]
    """The newest release first."""


class Line(NamedTuple):
    """One release of a version."""

    entry: Entry
    record: Record
    present: bool
    """Whether the workload has this release now."""
    before: Images
    """The images of the release before."""


async def read(client: Client, namespace: str, selection: Selection) -> Found:
    """The history of the workload. StatusError: it does not exist, or has no history. UsageError: several workloads
    have the name."""
    workload = await _workload(client, namespace, selection)
    metadata = workload.metadata
    try:
        listed = await client.list(
            history.RESOURCE, namespace, as_=msgspec.Raw, label_selector=history.label_selector(metadata.name)
        )
    except ForbiddenError as error:
        raise _forbidden(history.RESOURCE.full_name, namespace, error) from error
    versions = [Version(history.read(raw), _whole(raw)) for raw in listed.items]
    own = [each for each in versions if each.entry.is_of(workload.group_kind, metadata.name, metadata.uid)]
    if not own:
        raise StatusError(
            f'{selection.described} in namespace "{namespace}" has no history; AlterShield keeps a version when its '
            "release ends, so release it in a governed namespace first"
        )
    return Found(workload, sorted(own, key=lambda each: each.entry.age_key, reverse=True))


def lines(found: Found) -> list[Line]:
    """All releases of the workload, the newest first."""
    present = found.workload.version
    every = [
        Line(each.entry, record, each.entry.version == present and record is each.entry.record, ())
        for each in found.versions
        for record in each.entry.releases
    ]
    every.sort(key=lambda line: (line.record.number, line.record.released, line.entry.revision), reverse=True)
    before = (*(images_of(each.entry.template) for each in every[1:]), ())
    return [line._replace(before=images) for line, images in zip(every, before, strict=False)]


def state_of(record: Record, *, present: bool) -> str:
    """The state of a release; empty if it is not known. One that had not ended when another one replaced it is
    superseded."""
    match record.state:
        case WorkloadState.ROLLBACK:
            return "RollingBack"
        case WorkloadState.INIT | WorkloadState.RUNNING | WorkloadState.TIME_OUT_PRE_THRESHOLD if not present:
            return "Superseded"
        case _:
            return record.state


def version(found: Found, wanted: str) -> Version:
    """The version whose full or abbreviated name is `wanted`. StatusError: none has it, or several have."""
    same = [each for each in found.versions if wanted in (each.entry.version, each.entry.metadata.name)]
    same = same or [each for each in found.versions if wanted and each.entry.version.startswith(wanted)]
    if len(same) == 1:
        return same[0]
    problem = "is the beginning of several versions" if same else "is no version"
    known = ", ".join(short_version(each.entry.version) for each in (same or found.versions)[:_LISTED])
    raise StatusError(
        f'"{wanted}" {problem} of {found.workload.kind.lower()} "{found.workload.metadata.name}"; name one of: {known}'
    )


async def _workload(client: Client, namespace: str, selection: Selection) -> Workload:
    found = []
    for adapter in selection.adapters:
        try:
            raw = await client.get(adapter.resource, selection.name, namespace, as_=msgspec.Raw)
        except NotFoundError:
            continue  # or the cluster does not have the kind
        except ForbiddenError as error:
            if adapter.crd and len(selection.adapters) > 1:
                continue  # for a kind that it does not have, an API server may answer Forbidden too
            raise _forbidden(full_plural(adapter), namespace, error) from error
        found.append(adapter.read(raw))
    if not found:
        raise StatusError(
            f'{selection.described} not found in namespace "{namespace}"; check the name, or set another '
            "namespace with -n"
        )
    if len(found) > 1:
        choice = " or ".join(f"{each.kind.lower()}/{selection.name}" for each in found)
        raise UsageError(f'several workloads in namespace "{namespace}" have the name {selection.name}: name {choice}')
    return found[0]


def _whole(raw: msgspec.Raw) -> dict[str, Any]:
    """The object as kubectl shows it, without `managedFields`."""
    obj: dict[str, Any] = {"apiVersion": history.RESOURCE.api_version, "kind": history.RESOURCE.kind}
    obj |= json.loads(bytes(raw))
    obj["metadata"].pop("managedFields", None)
    return obj


def _forbidden(resource: str, namespace: str, error: ForbiddenError) -> StatusError:
    attempt = f"read {resource} {permission.place(namespace)}"
    return StatusError(permission.refused(attempt, error, permission.role("view", namespace)))
