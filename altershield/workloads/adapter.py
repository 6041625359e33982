"""The interface of an adapter, which describes a kind of workload. To add a kind, add a module to this package and one
line to the registry (`ADAPTERS`)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from altershield.api import names
from altershield.api.amounts import scaled
from altershield.api.change_workload import WorkloadRef
from altershield.api.fingerprint import Template
from altershield.api.json_patch import Operation
from altershield.workloads import held
from altershield.workloads.hold import with_own_fields
from altershield.workloads.pods import Pod
from altershield.workloads.workload import HOLDABLE, Workload
from kube_base.meta import OwnerReference
from kube_base.resources import GroupKind, Resource

Object = dict[str, Any]
Fields = Mapping[str, Any]
"""The values of fields by path; None: the field does not exist."""


class Adapter(Protocol):
    """One kind of workload. Adapters are pure: none does I/O."""

    @property
    def resource(self) -> Resource:
        """The API resource."""

    @property
    def short_names(self) -> tuple[str, ...]:
        """The short names that users type, for example `deploy`."""

    @property
    def revisions(self) -> Resource:
        """The resource that holds its pod templates, the current one and older ones. The workload is their
        controller."""

    @property
    def intermediate(self) -> Resource | None:
        """The resource between the workload and its pods: the workload controls its objects, and these control the
        pods. For a Deployment, these are ReplicaSets, which are its revisions too.

        None if the workload controls its pods itself. The pods then have a label with the hash of their revision.
        """

    @property
    def in_place(self) -> bool:
        """Whether its controller may update a pod to another template without replacing it."""

    @property
    def pause_field(self) -> str:
        """The field of `spec` that `pause` changes."""

    @property
    def leaves_other_revisions(self) -> bool:
        """Whether its controller ignores a revision of the workload whose labels the workload's selector does not
        match."""

    @property
    def crd(self) -> str:
        """The name of its CustomResourceDefinition; empty for a built-in kind."""

    @property
    def change_workload_prefix(self) -> str:
        """The prefix of its ChangeWorkloads' names."""

    def read(self, data: bytes | msgspec.Raw) -> Workload:
        """The projection of a workload in JSON, with the user's own values of what a hold has changed.
        msgspec.DecodeError if it is not one."""

    def read_in_force(self, data: bytes | msgspec.Raw) -> Workload:
        """The projection with the values that the fields have now. msgspec.DecodeError if `data` is no workload."""

    def template(self, revision: Object) -> Object | None:
        """The pod template that a revision holds, as the workload had it; None if it holds none."""

    def number(self, revision: Object) -> int:
        """The number of the release that last used a revision, from 1; 0 if it is not known."""

    def release(self, template: Object) -> list[Operation]:
        """The patch that gives the workload this pod template."""

    def pause(self) -> list[Operation]:
        """The patch that stops the replacement of its pods; empty if the kind has no such field."""

    @property
    def held_fields(self) -> tuple[str, ...]:
        """The paths of the fields that a release in steps changes, each of a plain value: `/spec/paused`."""

    def hold(self, own: Fields, replicas: int, pods: int, *, surge: bool) -> Fields:
        """The values of `held_fields` with which at most so many pods get the new template. `own`: the user's own
        values. `pods`: from 0. `surge`: whether pods may exist above the replicas."""

    @property
    def evicts(self) -> bool:
        """Whether its controller replaces no pod while it is held, so that old pods have to be evicted."""

    @property
    def waits_for_end(self) -> bool:
        """Whether its controller creates a pod only after the pod in its place has ended: each pod has an ordinal or a
        node of its own."""

    @property
    def keeps_base(self) -> bool:
        """Whether pods that scaling or a node adds have the old template while no pod may have the new one."""

    def at_once(self, own: Fields, replicas: int, *, surge: bool) -> int | None:
        """How many pods may get the new template before one of them is available, by the user's own strategy. None: its
        controller still sees to that while it is held."""

    def obstacle(self, spec: Object) -> str:
        """Why a release of a workload with this spec cannot be held; empty if it can."""


def with_own_values(adapter: Adapter, data: bytes | msgspec.Raw) -> Workload:
    """What `Adapter.read` returns, from `read_in_force`. If the annotation has values that the kind cannot have, the
    values are those of the hold."""
    found = adapter.read_in_force(data)
    if found.hold is None:
        return found
    try:
        raw = msgspec.json.decode(data)
        own = held.with_own_values(adapter, raw) or with_own_fields(raw, adapter.pause())
        if own is raw:
            return found
        read = adapter.read_in_force(msgspec.json.encode(own))
    except (ValueError, RecursionError):
        return found
    amounts = (scaled(each, 100, round_up=True) for each in (read.max_unavailable, read.max_surge))
    if any(each is None or each < 0 for each in amounts):
        return found
    values = {name: getattr(read, name) for name in HOLDABLE}
    held_now = found
    if found.hold.steps is not None:  # it holds the number of pods, and changes the strategy only to do so
        reach = found.hold.steps.pods if read.reach is None else min(found.hold.steps.pods, read.reach)
        held_now = msgspec.structs.replace(found, reach=reach, strategy=read.strategy, paused=read.paused)
    known = found.hold.steps
    follows = known is None or held.follows(adapter, known, raw.get("spec") or {})
    state = msgspec.structs.replace(found.hold, in_force=held_now, follows=follows)
    return msgspec.structs.replace(found, **values, hold=state)


def is_pod_of_revision(adapter: Adapter, pod: Pod, name: str, uid: str) -> bool:
    """Whether a pod of a workload of this kind was created from the revision with this name and uid.

    The hash label of a pod is the name of its revision (StatefulSets), or the part of it after the workload's name.
    """
    if adapter.intermediate is not None:
        return pod.owner.uid == uid
    return bool(pod.hash) and (pod.hash == name or name.endswith(f"-{pod.hash}"))


def named_kind(known: Iterable[GroupKind], reference: WorkloadRef | OwnerReference) -> GroupKind:
    """The kind that a reference names. Without an apiVersion, which objects of older releases of AlterShield may lack,
    it is the first known kind with this name."""
    if not reference.api_version:
        for kind in known:
            if kind.kind == reference.kind:
                return kind
    return GroupKind.of(reference.api_version, reference.kind)


def template_of(template: Object) -> Template:
    """A pod template, decoded for `workload.fingerprint_of`."""
    return msgspec.convert(
        {"metadata": template.get("metadata"), "spec": msgspec.Raw(msgspec.json.encode(template.get("spec") or {}))},
        Template,
    )


def change_workload_name(adapter: Adapter, workload: str, version: str, prefixes: Sequence[str]) -> str:
    """The name of the ChangeWorkload of a version. `prefixes`: those of all kinds."""
    taken = not adapter.change_workload_prefix and any(workload.startswith(prefix) for prefix in prefixes if prefix)
    return names.change_workload_name(adapter.change_workload_prefix, workload, version, taken=taken)
