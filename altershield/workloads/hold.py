"""The annotation that stores a hold of a rollout, and the patches that begin and end a hold. Pure functions.

The annotation stores the causes of the hold, and the value that the user gave each held field. A value is stored once,
so a later cause never stores a held value as the user's. The patch that ends the last cause restores the values.

A user who may change the workload may also write the annotation. So it can change only fields that the adapter names.
If it cannot be decoded, the patch that ends the hold removes it and changes no field.

A field is restored only if AlterShield wrote it last. `metadata.managedFields` shows this: the field and the annotation
have the same manager.

In all functions, `wanted` has the `add` operations that hold this workload.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeVar

import msgspec

from altershield.api.annotations import PAUSED, ROLLOUT
from altershield.api.json_patch import Operation
from altershield.api.rollout import Rollout

T = TypeVar("T")
Object = dict[str, Any]

PAUSE = "pause"
"""The cause of a pause after a failure (`onFailure: pause`)."""

STEPS = "steps"
"""The cause of a release in steps: `pods` are those of its step."""

_NAMES = (ROLLOUT, PAUSED)
_MAX_REASON = 512
_HIGHEST = 2**31 - 1
_MAX_DEPTH = 16  # of a recorded value; update strategies have three levels


class Cause(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a rollout is held."""

    by: str
    """Identifies the cause: a hold has at most one of each."""
    reason: str = ""
    time: str = ""
    """Since when, in the format of Kubernetes."""
    until: str = ""
    """When the cause ends by itself, in the same format; empty: it does not end by itself."""
    pods: Annotated[int, msgspec.Meta(ge=0, le=_HIGHEST)] = 0
    """The number of pods that may have the version."""


class Hold(msgspec.Struct, frozen=True, omit_defaults=True):
    """The value of the annotation, as JSON."""

    version: str = ""
    """The version that is held."""
    causes: tuple[Cause, ...] = ()
    """Empty if the annotation cannot be read."""
    fields: dict[str, Any] = {}
    """The user's own values, by the path of the field; null if the field did not exist."""
    before: dict[str, Any] = {}
    """Of a release in steps: the values with which it goes on, of fields that the user has edited since it began and
    whose new values count only after it."""
    base: str = ""
    """Of a release in steps: the version before the first release that was held."""
    rollout: Rollout | None = None
    """Of a release in steps: its steps, from the DefensePolicy. None: the hold is a pause after a failure."""
    policy: str = ""
    """The DefensePolicy with these steps: `NAMESPACE/NAME@GENERATION`."""
    labels: dict[str, str] = {}
    """The labels of the workload when the version was released. Gates select by them."""
    at_least: Annotated[int, msgspec.Meta(ge=0, le=_HIGHEST)] = 0
    """The pods that an earlier held release may have had: as many are replaced before anything soaks."""
    surge: bool = True
    """Whether pods may exist above the replicas, as far as the user's own strategy allows; False: a quota refuses
    them."""
    replicas: Annotated[int, msgspec.Meta(ge=0, le=_HIGHEST)] = 0
    """The replicas for which the held values were computed. They change with the next write, not with the scaling."""
    write: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0
    """Rises with each write of a release in steps, so that a repeated write is a change."""

    @property
    def strategy(self) -> dict[str, Any]:
        """The user's own values of the fields, as far as they count during the release; by path."""
        return {**self.fields, **self.before}

    @property
    def pods(self) -> int:
        """The number of pods that may have the version: the fewest of all causes."""
        return min((each.pods for each in self.causes), default=0)


class _Change(msgspec.Struct, frozen=True):
    path: str
    before: Any = None


class _Paused(msgspec.Struct, frozen=True):
    """The value of the annotation `paused` of older releases of AlterShield."""

    time: str = ""
    version: str = ""
    reason: str = ""
    changes: tuple[_Change, ...] = ()
    until: str = ""


def read(annotations: Mapping[str, Any] | None) -> Hold | None:
    """The hold in the annotations of a workload; None if there is none. A hold without causes: it cannot be read."""
    found = annotations or {}
    if ROLLOUT in found:
        known = _decoded(found[ROLLOUT], Hold)
    elif PAUSED in found:
        old = _decoded(found[PAUSED], _Paused)
        known = _converted(old) if old is not None else None
    else:
        return None
    if known is None or not all(
        _is_plain(each, _MAX_DEPTH) for each in (*known.fields.values(), *known.before.values())
    ):
        return Hold()
    return known


def encoded(known: Hold, before: Any = None) -> str:
    """The value of the annotation. `before`: the value that `known` was read from: what a later version of AlterShield
    stored in it stays."""
    value = msgspec.to_builtins(known)
    old, understood = _decoded(before, dict[str, Any]), _decoded(before, Hold)
    if old is not None and understood is not None:
        value = _with_unknown(value, old, msgspec.to_builtins(understood))
    return msgspec.json.encode(value).decode()


def begin(raw: Object, wanted: Sequence[Operation], version: str, cause: Cause) -> list[Operation]:
    """The patch that holds this version for another cause. Empty if it is held for this cause already, if the user
    holds it, or if its annotation cannot be read.

    A field that somebody else has written since the hold began is the user's. If no field is held any more, the earlier
    causes have ended.
    """
    known = read(_annotations(raw))
    if known is not None and (not known.causes or any(each.by == cause.by for each in known.causes)):
        return []
    held = own_fields(raw, wanted)
    changed = {path: before for path, value, before in _current(raw, wanted) if not _covers(before, value)}
    if not held and not changed:
        return []
    operations: list[Operation] = []
    for path, value, _ in _current(raw, wanted):
        if path not in changed:
            continue
        parent = path.rpartition("/")[0]
        if _get(raw, parent) is None:
            operations.append({"op": "add", "path": parent, "value": {}})
        operations.append({"op": "add", "path": path, "value": value})
    causes = known.causes if known is not None and held else ()
    cause = msgspec.structs.replace(cause, reason=cause.reason[:_MAX_REASON])
    return [*operations, *_stored(raw, Hold(version, (*causes, cause), {**held, **changed}))]


def end(raw: Object, wanted: Sequence[Operation], by: str) -> list[Operation]:
    """The patch that ends a cause. With the last one, the fields return; a field that somebody else has changed since
    stays as it is. Empty if there is no such cause."""
    known = read(_annotations(raw))
    if known is None:
        return []
    left = tuple(each for each in known.causes if each.by != by)
    if not left:
        return [*_restored(own_fields(raw, wanted)), *forget(raw)]
    if len(left) == len(known.causes):
        return []
    return _stored(raw, msgspec.structs.replace(known, causes=left))


def forget(raw: Object) -> list[Operation]:
    """The patch that removes the annotation, and leaves the fields as they are."""
    return [{"op": "remove", "path": _path(name)} for name in _NAMES if name in _annotations(raw)]


def is_own(raw: Object, wanted: Sequence[Operation]) -> bool:
    """Whether a field is held, and nobody else has written it since."""
    return bool(own_fields(raw, wanted))


def own_fields(raw: Object, wanted: Sequence[Operation]) -> dict[str, Any]:
    """The user's own values of the fields that are held now, and that nobody else has written since; by path."""
    known = read(_annotations(raw))
    if known is None:
        return {}
    return {
        path: known.fields[path]
        for path, value, current in _current(raw, wanted)
        if path in known.fields
        and _covers(current, value)
        and not _has_other_manager(raw, path, value, known.fields[path])
    }


def with_own_fields(raw: Object, wanted: Sequence[Operation]) -> Object:
    """The workload with the user's own values of the held fields."""
    for path, before in own_fields(raw, wanted).items():
        raw = _with(raw, path.split("/")[1:], before)
    return raw


def _with(obj: Object, path: Sequence[str], value: Any) -> Object:
    first, *rest = path
    if rest:
        return {**obj, first: _with(obj[first], rest, value)}
    others = {key: known for key, known in obj.items() if key != first}
    return others if value is None else {**others, first: value}


def _restored(fields: Mapping[str, Any]) -> Iterator[Operation]:
    for path, before in fields.items():
        if before is None:
            yield {"op": "remove", "path": path}
        else:
            yield {"op": "replace", "path": path, "value": before}


def _stored(raw: Object, value: Hold) -> list[Operation]:
    """The patch that stores the hold in place of the annotations of earlier ones."""
    annotations = _annotations(raw)
    create: list[Operation] = [] if annotations else [{"op": "add", "path": "/metadata/annotations", "value": {}}]
    old: list[Operation] = [{"op": "remove", "path": _path(PAUSED)}] if PAUSED in annotations else []
    text = encoded(value, annotations.get(ROLLOUT))
    return [*create, {"op": "add", "path": _path(ROLLOUT), "value": text}, *old]


def _with_unknown(new: Any, old: Any, understood: Any) -> Any:
    """`new` with what `old` has and `understood`, which was read from it, has not."""
    if all(isinstance(each, dict) for each in (new, old, understood)):
        unknown = {key: value for key, value in old.items() if key not in understood and key not in new}
        return {
            **{key: _with_unknown(value, old.get(key), understood.get(key)) for key, value in new.items()},
            **unknown,
        }
    if all(isinstance(each, list | tuple) for each in (new, old, understood)) and len(new) == len(old):
        return [_with_unknown(*each) for each in zip(new, old, understood, strict=True)]
    return new


def _path(name: str) -> str:
    return "/metadata/annotations/" + name.replace("~", "~0").replace("/", "~1")


def _decoded(text: Any, as_: type[T]) -> T | None:
    try:
        return msgspec.json.decode(text, type=as_)
    except (ValueError, RecursionError, TypeError):
        return None


def _converted(old: _Paused) -> Hold:
    cause = Cause(PAUSE, old.reason, old.time, old.until)
    return Hold(old.version, (cause,), {each.path: each.before for each in old.changes})


def _is_plain(value: Any, depth: int) -> bool:
    """Whether a field of a rollout may have the value: its numbers are integers of 32 bits, and its objects and lists
    are nested at most so deep."""
    if isinstance(value, dict | list):
        below = value.values() if isinstance(value, dict) else value
        return depth > 0 and all(_is_plain(each, depth - 1) for each in below)
    return not isinstance(value, float) and (not isinstance(value, int) or abs(value) <= _HIGHEST)


def _current(raw: Object, wanted: Sequence[Operation]) -> Iterator[tuple[str, Any, Any]]:
    """The path, the held value and the present value of each field."""
    for each in wanted:
        path = str(each["path"])
        yield path, each["value"], _get(raw, path)


def _has_other_manager(raw: Object, path: str, value: Any, before: Any) -> bool:
    """Whether another manager than that of the annotation owns a value that the hold wrote."""
    entries = [each for each in (raw.get("metadata") or {}).get("managedFields") or () if isinstance(each, dict)]
    own = {_manager(each) for each in entries for name in _NAMES if _owns(each, ("metadata", "annotations", name))}
    parts = tuple(path.split("/")[1:])
    written = [(*parts, *below) for below in _changed(value, before)]
    return bool(own) and any(_manager(each) not in own and _owns(each, path) for each in entries for path in written)


def _manager(entry: Object) -> tuple[Any, ...]:
    return entry.get("manager"), entry.get("operation"), entry.get("subresource")


def _owns(entry: Object, path: Sequence[str]) -> bool:
    """Whether an entry of `managedFields` owns the field."""
    found: Any = entry.get("fieldsV1")
    for part in path:
        found = found.get(f"f:{part}") if isinstance(found, dict) else None
    return found is not None


def _changed(value: Any, before: Any) -> Iterator[tuple[str, ...]]:
    """The paths of the plain values in `value` that `before` does not have."""
    if not isinstance(value, dict):
        if value != before:
            yield ()
        return
    for key, below in value.items():
        for path in _changed(below, before.get(key) if isinstance(before, dict) else None):
            yield key, *path


def _annotations(raw: Object) -> Object:
    return dict((raw.get("metadata") or {}).get("annotations") or {})


def _get(raw: Object, path: str) -> Any:
    """The value at a path without escapes; None if there is none."""
    found: Any = raw
    for part in path.split("/")[1:]:
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _covers(value: Any, wanted: Any) -> bool:
    """Whether the value is the wanted one. The API server may have added defaults to it."""
    if isinstance(value, dict) and isinstance(wanted, dict):
        return all(_covers(value.get(key), below) for key, below in wanted.items())
    return bool(value == wanted)
