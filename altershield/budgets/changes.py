"""Which operation an update of a pod is, and whether a pod shows that a change in place has happened.

Of a running pod, an update changes images, `activeDeadlineSeconds`, labels and owners; resources change by the
subresource `resize`. Annotations, tolerations and other labels disrupt nothing.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from altershield.api.budgets import DisruptionRecord, PodUnavailableBudgetSpec
from altershield.budgets.coverage import is_ignored, is_selected
from altershield.budgets.pods import Flag, Pod, out_of_service
from altershield.workloads.meta import NO_OWNER, Owner

_RESTARTED = "restarted"
_LABELLED = "labelled"
_LEFT = "left"
_RESIZED = "resized"
_ENDS = "ends"
_MAX_SHOWS = 1024
_UNPROVABLE = "both"
"""Nothing that a record can say shows that the changes have happened, so it is held until it runs out."""


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
    """What an update changes of a pod."""

    restarted: tuple[str, ...] = ()
    """The containers that the kubelet restarts: another image, or resources that need a restart."""
    mark: str = ""
    """Distinguishes these restarts from later ones of the same containers, to other images or resources."""
    resized: bool = False
    """Resources change without a restart."""
    ends: bool = False
    """A deadline is set or comes earlier: the kubelet will end the pod."""
    labelled: bool = False
    """A new label takes the pod out of service, or says that its controller will delete it."""
    orphaned: bool = False
    """The pod has another controller, or none."""
    adopter: Owner = NO_OWNER
    """The controller of a pod that had none."""
    old_labels: Mapping[str, str] = {}
    new_labels: Mapping[str, str] = {}

    @property
    def disrupts(self) -> bool:
        """Whether the pod stops to serve, whatever covers it."""
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
    """What the update from `old` to `new` changes."""
    before = {each.name: each for each in _containers(old_spec)}
    restarted: dict[str, WireContainer] = {}
    resized = False
    for each in _containers(new_spec):
        was = before.get(each.name)
        if was is None:
            continue
        kinds = _resized(was, each)
        if was.image != each.image or True in kinds:
            restarted[each.name] = each
        resized = resized or bool(kinds)
    deadline, earlier = new_spec.active_deadline_seconds, old_spec.active_deadline_seconds
    return Changes(
        tuple(restarted),
        mark_of(restarted) if restarted else "",
        resized,
        deadline is not None and (earlier is None or deadline < earlier),
        out_of_service(new.labels.keys() - old.labels.keys()),
        bool(old.owner.uid) and old.owner.uid != new.owner.uid,
        NO_OWNER if old.owner.uid else new.owner,
        old.labels,
        new.labels,
    )


def _containers(spec: WireSpec) -> Iterable[WireContainer]:
    return (*(spec.init_containers or ()), *spec.containers)


def _resized(old: WireContainer, new: WireContainer) -> set[bool]:
    """For each changed resource of a container, whether it needs a restart of the container."""
    was, is_ = old.resources or WireResources(), new.resources or WireResources()
    changed: set[str] = set()
    for before, after in ((was.requests or {}, is_.requests or {}), (was.limits or {}, is_.limits or {})):
        changed |= {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    restarting = {each.resource_name for each in new.resize_policy or () if each.restart_policy == "RestartContainer"}
    return {key in restarting for key in changed}


def shows_of(made: Changes, pod: Pod, generation: int, *, left: bool) -> str:
    """How the pod will show these changes, for the field `shows` of a record. `generation`: that of the new spec."""
    parts = []
    if made.ends:
        parts.append(_ENDS)
    if made.restarted:
        parts.append(shows_restart(pod, made.restarted, made.mark))
    elif made.resized:
        parts.append(f"{_RESIZED}:{generation}")
    if made.labelled:
        parts.append(_LABELLED)
    if left or made.orphaned:
        parts.append(_LEFT)
    return bounded(";".join(parts))


def bounded(shows: str) -> str:
    """The text if a record has room for it. The beginning of it would show fewer changes."""
    return shows if len(shows) <= _MAX_SHOWS else _UNPROVABLE


def mark_of(what: object) -> str:
    """A short text that differs for other restarts."""
    return hashlib.blake2s(msgspec.json.encode(what), digest_size=4).hexdigest()


def shows_restart(pod: Pod, names: Iterable[str], mark: str, ids: Mapping[str, str] | None = None) -> str:
    """How the pod will show the restart of these containers: they have other ids than now."""
    known = pod.container_ids() if ids is None else ids
    before = ",".join(f"{name}={known.get(name, '')}" for name in names)
    return f"{_RESTARTED}:{before}#{mark}"


def merged(first: str, second: str) -> str:
    """How a pod shows two changes, of which the second came before the first showed.

    If both restart a container that had the same id before both, another id shows the first one only: the kubelet may
    restart it once more. An image does not tell, because runtimes write its name in their own way.
    """
    parts = dict.fromkeys([*first.split(";"), *second.split(";")])
    text = ";".join(parts)
    before = [each for part in parts if part.startswith(f"{_RESTARTED}:") for each in _before(part).items()]
    return bounded(text) if len(set(before)) == len(before) else _UNPROVABLE


def _before(restart: str) -> dict[str, str]:
    """The ids of the containers before a restart, by name."""
    ids = restart.partition(":")[2].partition("#")[0]
    pairs = (each.partition("=") for each in ids.split(",") if each)  # users can write any text into a status
    return {name: id_ for name, _, id_ in pairs}


def shown(record: DisruptionRecord, pod: Pod, *, covered: bool) -> bool:
    """Whether an existing pod shows the change in place of its record, so that it counts by itself again."""
    return bool(record.shows) and all(_is_shown(part, pod, covered=covered) for part in record.shows.split(";"))


def _is_shown(part: str, pod: Pod, *, covered: bool) -> bool:
    kind, _, detail = part.partition(":")
    match kind:
        case "restarted":
            now = pod.container_ids()
            return pod.ready and all(now.get(name) not in (None, id_) for name, id_ in _before(part).items())
        case "resized":
            # a cluster without generations of pods does not say when the kubelet begins
            taken_in = detail.isdigit() and 0 < int(detail) <= pod.observed_generation
            return pod.ready and taken_in and not pod.flags & Flag.RESIZING
        case "labelled":
            return bool(pod.flags & Flag.OUT_OF_SERVICE)
        case "left":
            return not covered
        case _:
            return False
