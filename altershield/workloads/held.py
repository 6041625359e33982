"""What a release in steps changes of a workload: reads and writes the held fields of an object in JSON. Pure functions.

The gatekeeper writes these fields, so they have no field manager: `altershield/workloads/hold.py` has the annotation
from which they follow.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from altershield.api.annotations import ROLLOUT
from altershield.api.json_patch import Operation, label_path
from altershield.workloads import hold

Object = dict[str, Any]
Fields = Mapping[str, Any]

NEVER_AVAILABLE = 2**31 - 2
"""`minReadySeconds` of a Deployment that is held. It is never a user's value."""

NO_DEADLINE = 2**31 - 1
"""`progressDeadlineSeconds` of a Deployment that is held: it has to exceed `minReadySeconds`."""

ALL = 2**31 - 1
"""A partition that keeps all pods at the old version, also those that scaling adds."""

_DEFAULTS = {"/spec/minReadySeconds": (NEVER_AVAILABLE, 0), "/spec/progressDeadlineSeconds": (NO_DEADLINE, 600)}


class Holder(Protocol):
    """The part of an adapter that this module needs."""

    @property
    def held_fields(self) -> tuple[str, ...]: ...

    def hold(self, own: Fields, replicas: int, pods: int, *, surge: bool) -> Fields: ...


def steps(annotations: Mapping[str, Any] | None) -> hold.Hold | None:
    """The hold of a release in steps; None if the annotations have none."""
    found = hold.read(annotations)
    return found if found is not None and found.rollout is not None and found.causes else None


def in_force(holder: Holder, known: hold.Hold) -> Fields:
    """The values that the fields have under a hold."""
    own = {path: known.strategy.get(path) for path in holder.held_fields}
    return holder.hold(own, known.replicas, known.pods, surge=known.surge)


def values(holder: Holder, spec: Object) -> dict[str, Any]:
    """The present values of the fields."""
    return {path: _get(spec, path.split("/")[2:]) for path in holder.held_fields}


def plain(fields: Fields) -> dict[str, Any]:
    """The fields without values that only AlterShield writes: these become the defaults of Kubernetes."""
    return {path: _DEFAULTS[path][1] if is_reserved(path, value) else value for path, value in fields.items()}


def with_values(spec: Object, fields: Fields) -> Object:
    """The spec with these values. Objects that become empty are left out."""
    for path, value in fields.items():
        spec = _with(spec, path.split("/")[2:], value)
    return spec


def difference(spec: Object, wanted: Object) -> list[Operation]:
    """The patch that makes `wanted` of a spec: one operation for each field of the spec that differs."""
    operations: list[Operation] = []
    for key in dict.fromkeys((*spec, *wanted)):
        if key not in wanted:
            operations.append({"op": "remove", "path": f"/spec/{key}"})
        elif key not in spec or wanted[key] != spec[key]:
            operations.append({"op": "add", "path": f"/spec/{key}", "value": wanted[key]})
    return operations


def restoration(holder: Holder, raw: Object) -> list[Operation]:
    """The patch that ends the hold of a release in steps; empty if there is none. `raw`: the workload."""
    known = steps((raw.get("metadata") or {}).get("annotations"))
    if known is None:
        return []
    annotation: Operation = {"op": "remove", "path": label_path(ROLLOUT, "/metadata/annotations")}
    spec = raw["spec"]
    return [annotation, *difference(spec, with_values(spec, own_values(holder, known, spec)))]


def own_values(holder: Holder, known: hold.Hold, spec: Object) -> dict[str, Any]:
    """The user's own values. A field without its held value was changed while no gatekeeper answered: its value is the
    user's."""
    held, present = in_force(holder, known), values(holder, spec)
    return {
        path: known.fields.get(path)
        if present[path] == held.get(path) or is_reserved(path, present[path])
        else present[path]
        for path in holder.held_fields
    }


def with_edits(known: hold.Hold, own: Fields) -> hold.Hold:
    """The hold with these values of the user. Those that count only after the release keep the value of before."""
    edited = (path for path, value in own.items() if value != known.fields.get(path))
    before = {path: known.fields.get(path) for path in edited if is_for_later(path)}
    return msgspec.structs.replace(known, fields=dict(own), before={**before, **known.before})


def follows(holder: Holder, known: hold.Hold, spec: Object) -> bool:
    """Whether the fields have the values of the hold."""
    return values(holder, spec) == dict(in_force(holder, known))


def is_for_later(path: str) -> bool:
    """Whether a value that the user gives the field during a release counts only after it: with another one, its
    controller would replace more pods than the step has."""
    return path.startswith("/spec/strategy/rollingUpdate/")


def is_reserved(path: str, value: Any) -> bool:
    """Whether only AlterShield writes this value of the field: it is never a user's."""
    return path in _DEFAULTS and value == _DEFAULTS[path][0]


def with_own_values(holder: Holder, raw: Object) -> Object | None:
    """The workload with the user's own values; None if no release in steps is held."""
    known = steps((raw.get("metadata") or {}).get("annotations"))
    if known is None:
        return None
    spec = raw.get("spec") or {}
    return {**raw, "spec": with_values(spec, own_values(holder, known, spec))}


def _get(obj: Any, path: Sequence[str]) -> Any:
    for part in path:
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


def _with(obj: Object, path: Sequence[str], value: Any) -> Object:
    first, *rest = path
    others = {key: known for key, known in obj.items() if key != first}
    if not rest:
        return others if value is None else {**others, first: value}
    known = obj.get(first)
    below = _with(known if isinstance(known, dict) else {}, rest, value)
    return {**others, first: below} if below else others
