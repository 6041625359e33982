"""The changes that an update makes to a pod, and whether the pod shows that a change in place has happened.

An update of a running pod can change images, `activeDeadlineSeconds`, labels and owners. The subresource `resize`
changes resources. A changed label disrupts the pod only if it takes the pod out of service or out of a selector.
Changed annotations and tolerations disrupt nothing.
"""

import enum
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from altershield.api.budgets import DisruptionRecord, PodUnavailableBudgetSpec
from altershield.budgets.coverage import is_ignored, is_selected
from altershield.budgets.pods import Flag, Pod, out_of_service
from altershield.workloads.meta import NO_OWNER, Owner

_MAX_SHOWS = 1024  # characters
_UNPROVABLE = "both"
"""The value of `shows` for changes that the pod cannot show. The record is kept until it runs out."""


class _Sign(enum.StrEnum):
    """How a pod shows a change. A part of `shows` begins with it."""

    RESTARTED = "restarted"
    RESIZED = "resized"
    LABELLED = "labelled"
    LEFT = "left"
    ENDS = "ends"


class WireResources(msgspec.Struct, frozen=True, gc=False):
    requests: dict[str, Any] | None = None
    limits: dict[str, Any] | None = None


class WireResizePolicy(msgspec.Struct, frozen=True, rename="camel", gc=False):
    resource_name: str = ""
    restart_policy: str = ""


class WireContainer(msgspec.Struct, frozen=True, rename="camel", gc=False):
    name: str = ""
    image: str = ""
    resources: WireResources | None = None
    resize_policy: tuple[WireResizePolicy, ...] | None = None


class WireSpec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    active_deadline_seconds: int | None = None
    containers: tuple[WireContainer, ...] = ()
    init_containers: tuple[WireContainer, ...] | None = None


class Changes(msgspec.Struct, frozen=True, gc=False):
    """The changes that an update makes to a pod."""

    restarted: tuple[str, ...] = ()
    """The names of the containers that the kubelet restarts: their image changes, or a resource that needs a
    restart."""
    digest: str = ""
    """A digest of the new images and resources of these containers. A later restart of the same containers has another
    one."""
    resized: bool = False
    """Resources change without a restart."""
    ends: bool = False
    """A deadline is set or comes earlier: the kubelet will end the pod."""
    labelled: bool = False
    """A new label takes the pod out of service, or says that its controller will delete it."""
    orphaned: bool = False
    """The pod loses its controller. It may get another one."""
    adopter: Owner = NO_OWNER
    """The controller of a pod that had none."""
    old_labels: Mapping[str, str] = {}
    new_labels: Mapping[str, str] = {}

    @property
    def disrupts(self) -> bool:
        """Whether the update disrupts the pod for each budget that covers it."""
        return bool(self.restarted) or self.ends or self.labelled or self.orphaned

    @property
    def possible(self) -> bool:
        """Whether the update can disrupt the pod at all."""
        return self.disrupts or self.resized or bool(self.adopter.uid) or self.old_labels != self.new_labels

    def leaves(self, spec: PodUnavailableBudgetSpec) -> bool:
        """Whether the pod leaves a budget that covers it."""
        if spec.selector is not None and not is_selected(spec.selector, self.new_labels):
            return True
        return is_ignored(spec, self.new_labels)


NO_CHANGES = Changes()


def changes(old: Pod, new: Pod, old_spec: WireSpec, new_spec: WireSpec) -> Changes:
    """The changes of an update from `old` to `new`."""
    old_containers = {each.name: each for each in _containers(old_spec)}
    restarted: dict[str, WireContainer] = {}
    resized = False
    for each in _containers(new_spec):
        old_container = old_containers.get(each.name)
        if old_container is None:
            continue
        resources = _changed_resources(old_container, each)
        if old_container.image != each.image or resources & _restarting_resources(each):
            restarted[each.name] = each
        resized = resized or bool(resources)
    deadline, old_deadline = new_spec.active_deadline_seconds, old_spec.active_deadline_seconds
    return Changes(
        tuple(restarted),
        digest_of(restarted) if restarted else "",
        resized,
        deadline is not None and (old_deadline is None or deadline < old_deadline),
        out_of_service(new.labels.keys() - old.labels.keys()),
        bool(old.owner.uid) and old.owner.uid != new.owner.uid,
        NO_OWNER if old.owner.uid else new.owner,
        old.labels,
        new.labels,
    )


def _containers(spec: WireSpec) -> Iterable[WireContainer]:
    return (*(spec.init_containers or ()), *spec.containers)


def _changed_resources(old: WireContainer, new: WireContainer) -> set[str]:
    """The names of the resources whose request or limit changes."""
    before, after = old.resources or WireResources(), new.resources or WireResources()
    amounts = ((before.requests or {}, after.requests or {}), (before.limits or {}, after.limits or {}))
    return {key for was, is_ in amounts for key in was.keys() | is_.keys() if was.get(key) != is_.get(key)}


def _restarting_resources(container: WireContainer) -> set[str]:
    """The names of the resources whose change restarts the container."""
    policies = container.resize_policy or ()
    return {each.resource_name for each in policies if each.restart_policy == "RestartContainer"}


def shows_of(update: Changes, pod: Pod, generation: int, *, left: bool) -> str:
    """How the pod will show these changes, for the field `shows` of a record. `generation`: that of the new spec.
    `left`: the pod leaves the budget or its workload."""
    parts: list[str] = []
    if update.ends:
        parts.append(_Sign.ENDS)
    if update.restarted:
        parts.append(shows_restart(pod, update.restarted, update.digest))
    elif update.resized:
        parts.append(f"{_Sign.RESIZED}:{generation}")
    if update.labelled:
        parts.append(_Sign.LABELLED)
    if left or update.orphaned:
        parts.append(_Sign.LEFT)
    return bounded(";".join(parts))


def bounded(shows: str) -> str:
    """`shows` if it fits into a record. A cut text would name fewer changes, so a longer one is `_UNPROVABLE`."""
    return shows if len(shows) <= _MAX_SHOWS else _UNPROVABLE


def digest_of(restart: object) -> str:
    """8 hex digits that distinguish this restart from others. `restart` is encoded as JSON."""
    return hashlib.blake2s(msgspec.json.encode(restart), digest_size=4).hexdigest()


def shows_restart(pod: Pod, names: Iterable[str], digest: str, ids: Mapping[str, str] | None = None) -> str:
    """How the pod will show the restart of these containers: their ids change. `ids`: the ids before the restart, by
    name; None: those of the pod."""
    known = pod.container_ids() if ids is None else ids
    before = ",".join(f"{name}={known.get(name, '')}" for name in names)
    return f"{_Sign.RESTARTED}:{before}#{digest}"


def merged(first: str, second: str) -> str:
    """How a pod will show two changes, if the second one was admitted before the pod showed the first one.

    Both changes may restart the same container, which had the same id at both requests. A new id then shows the first
    restart only: the kubelet may restart the container once more. So the result is `_UNPROVABLE`. The image in the
    container's status does not help, because each runtime writes the names of images in its own way.
    """
    parts = dict.fromkeys([*first.split(";"), *second.split(";")])
    text = ";".join(parts)
    restarts = [part for part in parts if part.startswith(f"{_Sign.RESTARTED}:")]
    ids = [each for restart in restarts for each in _ids_before(restart).items()]
    return bounded(text) if len(set(ids)) == len(ids) else _UNPROVABLE


def _ids_before(restart: str) -> dict[str, str]:
    """The ids of the containers before a restart, by name."""
    ids = restart.partition(":")[2].partition("#")[0]
    pairs = (each.partition("=") for each in ids.split(",") if each)  # users can write any text into a status
    return {name: id_ for name, _, id_ in pairs}


def shown(record: DisruptionRecord, pod: Pod, *, covered: bool) -> bool:
    """Whether an existing pod shows the change in place of its record. The pod then counts by its own state again."""
    return bool(record.shows) and all(_is_shown(part, pod, covered=covered) for part in record.shows.split(";"))


def _is_shown(part: str, pod: Pod, *, covered: bool) -> bool:
    kind, _, detail = part.partition(":")
    match kind:
        case _Sign.RESTARTED:
            now = pod.container_ids()
            return pod.ready and all(now.get(name) not in (None, id_) for name, id_ in _ids_before(part).items())
        case _Sign.RESIZED:
            # a cluster whose pods have no generation does not report that the kubelet has begun the resize
            observed = detail.isdigit() and 0 < int(detail) <= pod.observed_generation
            return pod.ready and observed and not pod.flags & Flag.RESIZING
        case _Sign.LABELLED:
            return bool(pod.flags & Flag.OUT_OF_SERVICE)
        case _Sign.LEFT:
            return not covered
        case _:
            return False
