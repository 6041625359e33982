"""The history of a workload: one ControllerRevision for each version whose release has ended.

`data` of a ControllerRevision is immutable. It holds the version and its pod template, which never change. Annotations
hold the release, which can change (a version can be released again, or fail later), and what clients stored about the
template (another client may apply the same template).

The controllers of StatefulSets, DaemonSets and CloneSets take ControllerRevisions without a controller as their own if
their selector matches, and delete the oldest ones (pkg/controller/history/controller_history.go). An owner that is no
controller does not prevent this. So the workload is the controller of its entries, and no entry is kept for a workload
whose selector matches the labels of the entry.

A DaemonSet owns its entries without being their controller, because the DaemonSet controller releases those that it
controls and that do not match (pkg/controller/daemon/update.go). Another workload whose selector has only `NotIn` or
`DoesNotExist` can take these entries.
"""

from collections.abc import Collection, Iterable, Mapping
from copy import deepcopy
from enum import StrEnum
from functools import cached_property
from typing import Any, Self

import msgspec

from altershield.api import labels, names
from altershield.api.change_workload import WorkloadState
from altershield.api.policy import AppliedPolicy
from altershield.api.rollout import PassedStep
from altershield.api.workload_requests import Action
from altershield.workloads import BY_KIND, applied, change_workload_name, named_kind
from altershield.workloads.adapter import template_of
from altershield.workloads.applied import Applied
from altershield.workloads.workload import fingerprint_of
from kube_base.meta import ObjectMeta, OwnerReference
from kube_base.resources import CONTROLLER_REVISIONS, GroupKind

RESOURCE = CONTROLLER_REVISIONS
ANNOTATION = "altershield.defense.antgroup.com/release"
APPLIED = "altershield.defense.antgroup.com/applied"
"""The annotation with what clients stored about the template (`Applied`, as JSON)."""

MAX_FAILURES = 8
"""The maximum number of failed pods in the evidence of a release."""

MAX_RULES = 8192
"""The maximum length of the rules of a policy in the evidence, in JSON."""

MAX_EARLIER = 9
"""The maximum number of earlier releases of a version in its entry."""

Object = dict[str, Any]


class CheckOutcome(msgspec.Struct, frozen=True, omit_defaults=True, order=True):
    """The worst outcome of a check in all batches of a release."""

    name: str
    phase: str = ""
    state: str = ""


class FailedPlace(msgspec.Struct, frozen=True, omit_defaults=True, order=True):
    """A pod that failed; see `rollout.observed.Failure`."""

    place: int = 0
    seconds: int = 0


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What another policy would have seen of a release, as it was when the release ended."""

    replicas: int = 0
    """The replicas of the workload."""
    pods: int = 0
    """How many pods had the version."""
    failed_by: str = ""
    """The giver of the verdict that failed it (`Giver`); empty: none."""
    failures: tuple[FailedPlace, ...] = ()
    """The pods that failed, in the order in which they got the version; at most `MAX_FAILURES`."""
    rules: AppliedPolicy | None = None
    """The policy that applied; None: it is longer than `MAX_RULES`."""


class Way(StrEnum):
    """How a version came to be released."""

    RELEASE = "Release"
    """Somebody released it for the first time."""
    REPAIR = "Repair"
    """Somebody released it with the label `ignored-suspend`, while releases were suspended."""
    ROLLBACK = "Rollback"
    """AlterShield released it again."""
    AGAIN = "Again"
    """Somebody released it again: with `kubectl rollout undo`, or by applying its manifest."""


class Record(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The value of the annotation, as JSON: the last release of the version. Times are in the format of Kubernetes."""

    released: str = ""
    released_by: str = ""
    """The user; empty if no gatekeeper reviewed the release."""
    state: str = ""
    """The state of its ChangeWorkload (`WorkloadState`)."""
    since: str = ""
    """When it entered the state."""
    reason: str = ""
    """The reason for the state, in one word: that of the condition RolledBack or Verified."""
    message: str = ""
    """The reason, as text."""
    rolled_back: bool = False
    """Whether the version was or is being rolled back. `Failed` is also the state of a release that an AlterShield
    server refused."""
    checks: tuple[CheckOutcome, ...] = ()
    policy: str = ""
    """Namespace and name of its DefensePolicy; empty: none applied."""
    mode: str = ""
    """The mode of this policy."""
    would: str = ""
    """The action that the mode `enforce` would have taken (`enforcement.Would`)."""
    actions: tuple[Action, ...] = ()
    """The requests of people about the version, also in its earlier releases; the newest last, at most
    `MAX_ACTIONS`."""
    number: int = 0
    """The number of the release: 1 is the first release in the history of the workload. 0: the release was kept before
    releases had numbers."""
    way: str = ""
    """How the version came to be released (`Way`)."""
    steps: tuple[PassedStep, ...] = ()
    """Of a release in steps: the steps that are over, with their times."""
    observed: str = ""
    """Of a release whose policy has steps and only observes or warns: what the steps would have done."""
    evidence: Evidence | None = None
    """None: the release did not end while its pods were known, or ended before AlterShield kept this."""
    earlier: tuple["Record", ...] = ()
    """The earlier releases of the version, the oldest first, without their actions and without the rules of their
    policies; at most `MAX_EARLIER`. They do not change any more."""

    @property
    def passed(self) -> bool:
        return self.state == WorkloadState.SUCCESS


class _Data(msgspec.Struct, frozen=True):
    version: str = ""
    spec: Object = {}


class _Wire(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    data: _Data = _Data()
    revision: int = 0


class Entry:
    """A ControllerRevision of the history."""

    def __init__(self, metadata: ObjectMeta, version: str, template: Object, revision: int) -> None:
        self.metadata = metadata
        self.version = version
        self.template = template
        """The pod template, without the labels of AlterShield."""
        self.revision = revision
        """The generation of the workload with which the version was released last."""

    @cached_property
    def record(self) -> Record:
        """The last release. Empty if the annotation cannot be read."""
        try:
            return msgspec.json.decode(self.metadata.annotations.get(ANNOTATION, "{}"), type=Record)
        except (ValueError, RecursionError):
            return Record()

    @property
    def applied(self) -> Applied | None:
        """What clients stored about the template when the workload last had it; None if it is not known."""
        return applied.decoded(self.metadata.annotations.get(APPLIED))

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint of the template."""
        return fingerprint_of(template_of(self.template))

    def without_template(self) -> Self:
        """This entry with its fingerprint only. A template can have a megabyte, and a list has many entries."""
        _ = self.fingerprint
        self.template = {}
        return self

    @property
    def age_key(self) -> tuple[str, int]:
        """Orders the entries of a workload by their last release."""
        return self.record.released, self.revision

    @property
    def releases(self) -> tuple[Record, ...]:
        """All known releases of the version, the oldest first."""
        return (*self.record.earlier, self.record)

    @property
    def images(self) -> tuple[str, ...]:
        """The images of the template's containers, without its init containers."""
        containers = (self.template.get("spec") or {}).get("containers") or ()
        return tuple(str(each.get("image") or "") for each in containers if isinstance(each, dict))

    def is_of(self, kind: GroupKind, name: str, uid: str) -> bool:
        """Whether the workload owns this entry."""
        return self.is_named_for(kind, name) and any(
            _names(owner, kind, uid) for owner in self.metadata.owner_references
        )

    def is_named_for(self, kind: GroupKind, name: str) -> bool:
        """Whether this is the entry of a workload with this kind and name."""
        return bool(self.version) and self.metadata.name == entry_name(kind, name, self.version)


def _names(owner: OwnerReference, kind: GroupKind, uid: str) -> bool:
    """Whether an owner reference names the workload."""
    return (owner.api_version, owner.kind, owner.uid) == (BY_KIND[kind].resource.api_version, kind.kind, uid)


def entry_name(kind: GroupKind, workload: str, version: str) -> str:
    """The name of the entry of a version: that of its ChangeWorkload."""
    return change_workload_name(kind, workload, version)


def entry_labels(workload: str) -> dict[str, str]:
    """The labels of a workload's entries. Workloads of other kinds and of the same name have the same label."""
    return {labels.HISTORY: names.label_value(workload)}


def label_selector(workload: str) -> str:
    """The label selector for `entry_labels`."""
    return ",".join(f"{key}={value}" for key, value in entry_labels(workload).items())


def read(data: bytes | msgspec.Raw) -> Entry:
    """The entry in a ControllerRevision in JSON. msgspec.DecodeError if it is not one."""
    wire = msgspec.json.decode(data, type=_Wire)
    template = wire.data.spec.get("template")
    return Entry(wire.metadata, wire.data.version, template if isinstance(template, dict) else {}, wire.revision)


def manifest(
    owner: OwnerReference,
    namespace: str,
    version: str,
    template: Object,
    annotations: Mapping[str, str],
    revision: int,
) -> Object:
    """The ControllerRevision of a version. `annotations`: see `annotations`."""
    return {
        "apiVersion": RESOURCE.api_version,
        "kind": RESOURCE.kind,
        "metadata": {
            "name": entry_name(named_kind(owner), owner.name, version),
            "namespace": namespace,
            "labels": entry_labels(owner.name),
            "annotations": dict(annotations),
            "ownerReferences": [msgspec.to_builtins(owner)],
        },
        "data": {"version": version, "spec": {"template": without_labels(template)}},
        "revision": revision,
    }


def annotations(record: Record, kept: Applied | None) -> dict[str, str]:
    """The annotations of an entry. `kept`: what clients stored about its template; None if it is not known."""
    text = applied.encoded(kept) if kept is not None else ""
    return {ANNOTATION: msgspec.json.encode(record).decode(), **({APPLIED: text} if text else {})}


def without_labels(template: Object) -> Object:
    """The pod template without the labels of AlterShield, which the fingerprint ignores too."""
    template = deepcopy(template)
    own = (template.get("metadata") or {}).get("labels") or {}
    for key in (labels.VERSION, *labels.NOT_IN_TEMPLATES):
        own.pop(key, None)
    return template


def with_version(template: Object, version: str) -> Object:
    """The pod template with the version label, as the gatekeeper writes it."""
    template = deepcopy(template)
    metadata = template.get("metadata") or {}
    return {**template, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), labels.VERSION: version}}}


def next_number(entries: Iterable[Entry]) -> int:
    """The number of the next release of a workload with these entries."""
    return 1 + max((each.number for entry in entries for each in entry.releases), default=0)


def surplus(entries: Iterable[Entry], limit: int, kept: Collection[str]) -> list[Entry]:
    """The entries to delete: all but the newest `limit` that passed, and all but the newest `limit` that did not.
    Entries whose version, fingerprint or uid is in `kept` stay."""
    newest_first = sorted(entries, key=lambda each: each.age_key, reverse=True)
    found = []
    for passed in (True, False):
        for each in [each for each in newest_first if each.record.passed is passed][limit:]:
            if not {each.version, each.metadata.uid, each.fingerprint} & set(kept):
                found.append(each)
    return found
