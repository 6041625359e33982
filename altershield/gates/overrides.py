"""ReleaseOverrides: a person lets one release pass closed gates. Pure functions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from altershield.api.announcements import added, announcement
from altershield.api.gates.overrides import GateName, ReleaseOverride, Use
from altershield.api.resources import FIELD_GUARDS, RELEASE_FREEZES, RELEASE_LIMITS, RELEASE_WINDOWS
from altershield.gates.release import Closed
from kube_base.times import rfc3339, unix

_KINDS = {
    RELEASE_WINDOWS.kind: GateName.WINDOW,
    RELEASE_FREEZES.kind: GateName.FREEZE,
    RELEASE_LIMITS.kind: GateName.LIMIT,
    FIELD_GUARDS.kind: GateName.FIELD,
}
"""The name of a gate in an override, by the kind of its objects."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The version of a workload that would pass. `uid`: empty, if the release creates the workload."""

    namespace: str
    kind: str
    name: str
    uid: str
    version: str
    by: str = ""


def passing(
    closed: Sequence[Closed], overrides: Iterable[ReleaseOverride], asked: Asked, system_namespace: str, now: float
) -> dict[str, tuple[ReleaseOverride, tuple[Closed, ...]]] | None:
    """The overrides that together pass all closed gates, with the gates that each passes, by `NAMESPACE/NAME`; None: a
    gate stays closed. Overrides that this version has used already come first."""
    matching = [each for each in overrides if _is_for(each, asked, system_namespace) and allows(each, asked, now)]
    matching.sort(key=lambda each: (not has_used(each, asked), each.metadata.namespace == system_namespace, _id(each)))
    found: dict[str, tuple[ReleaseOverride, tuple[Closed, ...]]] = {}
    for gate in closed:
        override = next((each for each in matching if _passes(each, gate, system_namespace)), None)
        if override is None:
            return None
        _, passed = found.get(_id(override), (override, ()))
        found[_id(override)] = override, (*passed, gate)
    return found


def allows(override: ReleaseOverride, asked: Asked, now: float) -> bool:
    """Whether the version may use it: it has used it, or there is a use left in its time."""
    if has_used(override, asked):
        return True
    metadata, spec = override.metadata, override.spec
    ends = unix(metadata.creation_timestamp) + spec.ttl_seconds
    return metadata.deletion_timestamp is None and now < ends and len(override.status.uses) < spec.uses


def used(override: ReleaseOverride, asked: Asked, gates: Sequence[str], now: float) -> ReleaseOverride | None:
    """The override with this use and its Event; None if the version may not use it, and the same object if it has used
    it."""
    if not allows(override, asked, now):
        return None
    if has_used(override, asked):
        return override
    use = Use(asked.uid, asked.version, rfc3339(now), asked.by, tuple(gates))
    uses = (*override.status.uses, use)
    text = f"version {asked.version} of {asked.kind} {asked.name}, released by {asked.by}, passes {', '.join(gates)}"
    told = added(override.status.announcements, [announcement("OverrideUsed", text, now)])
    status = msgspec.structs.replace(override.status, uses=uses, used=len(uses), announcements=told)
    return msgspec.structs.replace(override, status=status)


def has_used(override: ReleaseOverride, asked: Asked) -> bool:
    """Whether the version has used it."""
    return any((each.uid, each.version) == (asked.uid, asked.version) for each in override.status.uses)


def target(override: ReleaseOverride, system_namespace: str) -> tuple[str, str, str]:
    """Namespace, kind and name of the workload that it is for. Only one of AlterShield's namespace may name a workload
    of another namespace."""
    named, own = override.spec.target, override.metadata.namespace
    namespace = (named.namespace or own) if own == system_namespace else own
    return namespace, named.kind, named.name


def _is_for(override: ReleaseOverride, asked: Asked, system_namespace: str) -> bool:
    return target(override, system_namespace) == (asked.namespace, asked.kind, asked.name)


def _passes(override: ReleaseOverride, gate: Closed, system_namespace: str) -> bool:
    """Whether it passes this gate. One of a tenant's namespace passes no gate of AlterShield's namespace."""
    reaches = override.metadata.namespace in (system_namespace, gate.namespace)
    return reaches and _KINDS.get(gate.kind) in override.spec.gates


def _id(override: ReleaseOverride) -> str:
    return f"{override.metadata.namespace}/{override.metadata.name}"
