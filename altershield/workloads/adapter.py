"""What AlterShield has to know of a kind of workload. To add one: one file here, one line in the registry."""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from altershield.api import names
from altershield.api.fingerprint import Template
from altershield.api.resources import Resource
from altershield.workloads.pods import Pod
from altershield.workloads.workload import Workload

Object = dict[str, Any]
Operation = dict[str, Any]
"""One operation of an RFC 6902 patch."""


class Adapter(Protocol):
    """One kind of workload. All of it is pure: no adapter does I/O."""

    @property
    def resource(self) -> Resource:
        """Where the API server has it."""

    @property
    def short_names(self) -> tuple[str, ...]:
        """The short names by which users call it, as `deploy`."""

    @property
    def revisions(self) -> Resource:
        """The objects that hold its pod templates, the present one and older ones; the workload controls them."""

    @property
    def intermediate(self) -> Resource | None:
        """What stands between the workload and its pods: what it controls and what controls them (its revisions).
        None where the workload itself controls its pods, which then bear the hash of their revision."""

    @property
    def in_place(self) -> bool:
        """Whether its controller may give a pod another template without making it anew."""

    @property
    def crd(self) -> str:
        """The CustomResourceDefinition without which a cluster does not have it; empty for a built-in kind."""

    @property
    def change_workload_prefix(self) -> str:
        """What its records' names begin with."""

    def read(self, data: bytes | msgspec.Raw) -> Workload:
        """The workload in an API server's answer; msgspec.DecodeError where it is none."""

    def template(self, revision: Object) -> Object | None:
        """The pod template that a revision holds, as the workload had it; None where it holds none."""

    def number(self, revision: Object) -> int:
        """Which release of the workload a revision was last, counted from 1; 0 where it does not say."""

    def release(self, template: Object) -> list[Operation]:
        """Give the workload this pod template."""

    def pause(self, workload: Workload) -> list[Operation]:
        """Let no more of its pods be replaced; empty where the kind knows no such thing."""


def is_pod_of_revision(adapter: Adapter, pod: Pod, name: str, uid: str) -> bool:
    """Whether a pod of a workload of this kind was made of the revision with this name and uid.

    A pod's hash label is its revision's name (as of StatefulSets), or what follows the workload's name in it.
    """
    if adapter.intermediate is not None:
        return pod.owner.uid == uid
    return bool(pod.hash) and (pod.hash == name or name.endswith(f"-{pod.hash}"))


def template_of(template: Object) -> Template:
    """A pod template for `workload.version_of`."""
    return msgspec.convert(
        {"metadata": template.get("metadata"), "spec": msgspec.Raw(msgspec.json.encode(template.get("spec") or {}))},
        Template,
    )


def change_workload_name(adapter: Adapter, workload: str, version: str, prefixes: Sequence[str]) -> str:
    """The name of a version's record; `prefixes` are those of all kinds."""
    taken = not adapter.change_workload_prefix and any(workload.startswith(prefix) for prefix in prefixes if prefix)
    return names.change_workload_name(adapter.change_workload_prefix, workload, version, taken=taken)
