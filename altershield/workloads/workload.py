"""What is kept of a workload, whatever its kind: what decides.

An adapter reads its kind into this form, so that nobody else has to know it.
"""

import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec
import orjson

from altershield.api import labels
from altershield.api.fingerprint import Template, canonical, fingerprint
from altershield.workloads.meta import Meta, WireMeta


class Strategy(StrEnum):
    """What becomes of old pods when a new template is released."""

    ROLLING = "Rolling"
    """They give way to new ones bit by bit: old ones serve on."""
    RECREATE = "Recreate"
    """They all go before new ones come."""
    ON_DELETE = "OnDelete"
    """They stay until somebody deletes them: the release is what it reaches."""


class Workload(msgspec.Struct, frozen=True, gc=False):
    metadata: Meta
    kind: str
    generation: int
    version: str
    """The version label; empty where there is none."""
    processed: bool
    """This version has its record."""
    suspended: str
    """The suspend label: since when, Unix seconds; empty where there is none."""
    ignores_suspension: bool
    """The label is there with which a person lets one release pass."""
    labelled: bool
    """Whether there are any labels at all."""
    template_version: str
    """The version label of its pod template."""
    fingerprint: str
    """Of its pod template, with the defaults of the API server that showed it."""
    replicas: int
    """Pods that it is to have."""
    reach: int | None
    """Pods that are to be of its present template, once the release has gone as far as it is to go; None: as many
    as are now, because somebody else decides (`Strategy.ON_DELETE`)."""
    strategy: Strategy
    paused: bool
    min_ready: int
    """`spec.minReadySeconds`."""
    waits_for_ready: bool
    """Its controller replaces pods in order and waits for each to be ready, also for one whose template is not the
    present one any more: such a pod has to be deleted (kubernetes/kubernetes#67250)."""
    up_to_date: bool
    """Its controller has seen its present spec."""
    update_revision: str
    """The name of the revision that its controller rolls out, where its status says so; else empty."""
    refused: str
    """Why its controller cannot make pods, where its status says so; else empty."""
    selector: str
    """The label selector of its pods, as a list request takes it."""
    selects_version: bool
    """Whether its selector looks at our version label: then no pod may get another one."""


class WireTemplate(Template, frozen=True):
    """A pod template as the API server sends it."""

    def label(self, key: str) -> str:
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


def version_of(template: Template) -> str:
    """The fingerprint of a template; empty for what has no canonical form."""
    try:
        return fingerprint(canonical(template))
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError):
        return ""


def common(
    kind: str, metadata: WireMeta, selector: WireSelector, template: WireTemplate, observed_generation: int
) -> dict[str, Any]:
    """What is read alike of every kind: arguments of `Workload`."""
    own: Mapping[str, str] = metadata.labels or {}
    return {
        "metadata": metadata.projection,
        "kind": kind,
        "generation": metadata.generation,
        "version": sys.intern(own.get(labels.VERSION, "")),
        "processed": own.get(labels.DEFENSE_STATUS) == labels.PROCESSED,
        "suspended": own.get(labels.SUSPEND, ""),
        "ignores_suspension": labels.IGNORED_SUSPEND in own,
        "labelled": bool(own),
        "template_version": sys.intern(template.label(labels.VERSION)),
        "fingerprint": sys.intern(version_of(template)),
        "up_to_date": observed_generation >= metadata.generation,
        "selector": str(selector),
        "selects_version": labels.VERSION in selector.keys,
    }
