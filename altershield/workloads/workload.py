"""The projection of a workload of any kind: the fields that decisions depend on.

An adapter reads its kind into this form, so that no other code needs to know the kind.
"""

import sys
from collections.abc import Mapping
from enum import StrEnum
from itertools import chain
from typing import Any

import msgspec
import orjson

from altershield.api import labels
from altershield.api.annotations import GENERATE, START_TIMEOUT
from altershield.api.fingerprint import Template, canonical, fingerprint
from altershield.api.label_selectors import selects
from altershield.api.released_by import ANNOTATION as RELEASED_BY
from altershield.images import Images, images_in
from altershield.workloads.applied import digest
from altershield.workloads.hold import PAUSE, Hold
from altershield.workloads.hold import read as read_hold
from altershield.workloads.meta import Meta, WorkloadMeta
from altershield.workloads.releasers import other_releaser
from altershield.workloads.start_budget import StartBudget, start_budget
from kube_base.resources import GroupKind

_MAX_VERSION = 63  # characters, as a label
_MAX_SELECTOR = 2048  # bytes; some proxies accept URLs of 8 KiB, and three bytes may stand for one


class Strategy(StrEnum):
    """How old pods are replaced when a new template is released."""

    ROLLING = "Rolling"
    """New pods replace old pods step by step. The remaining old pods serve meanwhile."""
    RECREATE = "Recreate"
    """All old pods are deleted before new pods are created."""
    ON_DELETE = "OnDelete"
    """Old pods stay until a person deletes them."""


class Held(msgspec.Struct, frozen=True, gc=False):
    """What AlterShield holds of a rollout now."""

    version: str
    """The version that is held; empty if it is not known."""
    is_paused: bool
    """Whether a cause is the pause after a failure. True if the annotation cannot be read."""
    steps: Hold | None = None
    """The hold of a release in steps; None if there is none."""
    follows: bool = True
    """Whether the fields have the values of this hold. Somebody may have changed them while no gatekeeper answered."""
    in_force: "Workload | None" = None
    """The workload with the values of the hold. None if no field has such a value: somebody has changed them since."""


class Workload(msgspec.Struct, frozen=True, gc=False):
    """The projection of a workload.

    Of the fields that a hold changes (`HOLDABLE`), it has the user's own values. `in_force` has the values of the hold.
    """

    metadata: Meta
    group_kind: GroupKind
    generation: int
    version: str
    """The version label; empty if there is none."""
    processed: bool
    """Whether the label `defense-status` says that this version has its ChangeWorkload."""
    suspended: str
    """Since when the workload is suspended, from the label `suspend`, Unix seconds. `unknown` if the label has no
    value, which somebody may write while no gatekeeper decides. Empty if there is no label."""
    ignores_suspension: bool
    """Whether the label `ignored-suspend` exists. With this label, a person admits one release."""
    labelled: bool
    """Whether the workload has any label."""
    template_version: str
    """The version label of the pod template."""
    fingerprint: str
    """The fingerprint of the pod template, with the defaults of the API server that sent it."""
    replicas: int
    """The number of pods that the workload should have."""
    reach: int | None
    """The number of pods that should have the current template when the rollout has gone as far as its strategy allows.

    None if it is not determined, because people delete pods as they like (`Strategy.ON_DELETE`).
    """
    strategy: Strategy
    paused: bool
    min_ready: int
    """`spec.minReadySeconds`."""
    waits_for_ready: bool
    """Whether its controller replaces pods in order and waits until each is ready.

    It also waits for an unready pod of an outdated template. Such a pod has to be deleted
    (kubernetes/kubernetes#67250).
    """
    up_to_date: bool
    """Whether its controller has processed the current spec (`observedGeneration`)."""
    update_revision: str
    """The name of the revision that its controller rolls out, from its status; else empty."""
    refused: str
    """Why its controller cannot create pods, from its status; empty if it can."""
    selector: str
    """The label selector of its pods, in the syntax of a list request. See `list_selector`."""
    selects_version: bool
    """Whether its selector uses the version label. The label of its pods is then never changed."""
    partition_is_share: bool = False
    """Whether the partition, which keeps pods at an older template, is a share of the replicas."""
    ends_at: int | None = None
    """Its controller deletes pods with this or a higher ordinal. None: its pods have no ordinals."""
    kept_below: int = 0
    """A pod with a lower ordinal that is created again gets the template of `kept_revision`, not the current one."""
    kept_revision: str = ""
    """The name of the revision that its controller has rolled out completely, from its status; else empty."""
    max_surge: int | str = 0
    """How many pods its update strategy allows above the replicas: a number, or a percentage of the replicas."""
    updated: int = 0
    """The number of pods with the current template, from the status of a Deployment; else 0."""
    hold: Held | None = None
    """The hold, from the annotation `rollout`; None if there is none."""
    start_timeout: str = ""
    """The annotation `start-timeout-seconds`, cut to 64 characters; empty if there is none."""
    generates: tuple[tuple[str, str], ...] = ()
    """The annotations that ask for budgets, sorted, without the common prefix of their keys."""
    max_unavailable: int | str = 1
    """How many pods its update strategy allows to be unavailable: a number, or a percentage of the replicas."""
    released_by: str = ""
    """The annotation `released-by`, until the version is processed: then its ChangeWorkload has it."""
    applied: str = ""
    """The digest of what clients stored about the pod template (`applied.digest`)."""
    releaser: str = ""
    """Which other controller releases it, as a sentence; empty if none is known (`releasers.other_releaser`)."""
    obstacle: str = ""
    """Why its spec does not allow a release in steps; empty if it does (`Adapter.obstacle`)."""
    images: Images = ()
    """The images of its template."""
    start: StartBudget = StartBudget()
    """How long its pods may take to start, by the probes of its template."""

    @property
    def kind(self) -> str:
        """The name of its kind, for texts. Workloads of another API group may have a kind of the same name."""
        return self.group_kind.kind

    @property
    def in_force(self) -> "Workload":
        """The workload as its controller has it: with the values of the hold, if there is one."""
        return self.hold.in_force if self.hold is not None and self.hold.in_force is not None else self

    @property
    def held(self) -> bool:
        """Whether the annotation `rollout` says that AlterShield paused the rollout after a failure."""
        return self.hold is not None and self.hold.is_paused

    @property
    def stands(self) -> bool:
        """Whether its controller creates no object of the version: AlterShield paused the rollout, or holds it at no
        pods."""
        return self.held or (self.steps is not None and not self.steps.pods)

    @property
    def steps(self) -> Hold | None:
        """The hold of a release in steps; None if there is none."""
        return self.hold.steps if self.hold is not None else None

    @property
    def held_version(self) -> str:
        """The failed version, from this annotation. Empty if it is not known."""
        return self.hold.version if self.hold is not None and self.hold.is_paused else ""

    @property
    def list_selector(self) -> str:
        """The label selector for a list request; empty, which selects more, if it is too long for a URL. A selector can
        have a megabyte."""
        return self.selector if len(self.selector) <= _MAX_SELECTOR else ""


HOLDABLE = (
    "reach", "strategy", "paused", "min_ready", "partition_is_share", "kept_below", "max_surge", "max_unavailable",
    "obstacle",
)  # fmt: skip
"""The fields of a Workload that follow from what a hold may change."""


class WireTemplate(Template, frozen=True):
    """A pod template as the API server sends it."""

    def label(self, key: str) -> str:
        """The value of the label; empty if there is none."""
        found = self.metadata.get("labels") if self.metadata else None
        value = found.get(key) if isinstance(found, dict) else None
        return value if isinstance(value, str) else ""


class WireExpression(msgspec.Struct, frozen=True, gc=False):
    key: str
    operator: str = ""
    values: tuple[str, ...] = ()


class WireSelector(msgspec.Struct, frozen=True, rename="camel", gc=False):
    match_labels: dict[str, str] | None = None
    match_expressions: tuple[WireExpression, ...] = ()

    @property
    def keys(self) -> set[str]:
        return {*(self.match_labels or {}), *(each.key for each in self.match_expressions)}

    def matches(self, own: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected, as the API server decides it."""
        return selects(self.match_labels or {}, self.match_expressions, own)

    def __str__(self) -> str:
        parts = [f"{key}={value}" for key, value in (self.match_labels or {}).items()]
        for each in self.match_expressions:
            values = f"({','.join(each.values)})"
            match each.operator:
                case "In":
                    parts.append(f"{each.key} in {values}")
                case "NotIn":
                    parts.append(f"{each.key} notin {values}")
                case "Exists":
                    parts.append(each.key)
                case "DoesNotExist":
                    parts.append(f"!{each.key}")
        return ",".join(parts)


def fingerprint_of(template: Template) -> str:
    """The fingerprint of a template; empty if the template has no canonical form."""
    try:
        return fingerprint(canonical(template))
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError):
        return ""


def _held(annotations: Mapping[str, Any] | None) -> Held | None:
    found = read_hold(annotations)
    if found is None:
        return None
    paused = not found.causes or any(each.by == PAUSE for each in found.causes)
    steps = found if found.rollout is not None and found.causes else None
    return Held(found.version[:_MAX_VERSION], paused, steps)


def generates(annotations: Mapping[str, Any] | None) -> tuple[tuple[str, str], ...]:
    """The annotations that ask for budgets, as in `Workload.generates`."""
    if not annotations:
        return ()
    found = (
        (sys.intern(key.removeprefix(GENERATE)), sys.intern(str(value)[:64]))
        for key, value in annotations.items()
        if key.startswith(GENERATE)
    )
    return tuple(sorted(found))


def common(
    group_kind: GroupKind,
    metadata: WorkloadMeta,
    selector: WireSelector,
    template: WireTemplate,
    observed_generation: int,
    progress_deadline: int | None = None,
) -> dict[str, Any]:
    """The arguments of `Workload` that are read in the same way for every kind. `progress_deadline`:
    `progressDeadlineSeconds`, if the kind has it."""
    own: Mapping[str, str] = metadata.labels or {}
    return {
        "metadata": metadata.projection,
        "group_kind": group_kind,
        "generation": metadata.generation,
        "version": sys.intern(own.get(labels.VERSION, "")),
        "processed": own.get(labels.DEFENSE_STATUS) == labels.PROCESSED,
        "suspended": (own[labels.SUSPEND] or "unknown") if labels.SUSPEND in own else "",
        "ignores_suspension": labels.IGNORED_SUSPEND in own,
        "labelled": bool(own),
        "template_version": sys.intern(template.label(labels.VERSION)),
        "fingerprint": sys.intern(fingerprint_of(template)),
        "up_to_date": observed_generation >= metadata.generation,
        "selector": str(selector),
        "selects_version": labels.VERSION in selector.keys,
        "hold": _held(metadata.annotations),
        "generates": generates(metadata.annotations),
        "released_by": ""
        if own.get(labels.DEFENSE_STATUS) == labels.PROCESSED
        else str((metadata.annotations or {}).get(RELEASED_BY) or ""),
        "applied": digest(metadata.annotations, metadata.managed_fields),
        "start_timeout": sys.intern(str((metadata.annotations or {}).get(START_TIMEOUT) or "")[:64]),
        "releaser": sys.intern(
            other_releaser(metadata.owner_references, chain(metadata.labels or (), metadata.annotations or ()))
        ),
        "images": images_in(template.spec),
        "start": start_budget(template.spec, progress_deadline),
    }
