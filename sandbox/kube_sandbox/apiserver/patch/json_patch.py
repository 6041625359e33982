"""JSON Patch (RFC 6902) as kube-apiserver applies it.

`jsonpointer` reads the paths and `jsonpatch` changes the document. This module adds what kube-apiserver's library
(evanphx/json-patch v4) does differently, and its error texts:

- `replace` may name a member that does not exist.
- A negative array index counts from the end.
- `test` reads a missing member as null, and compares the JSON text: 1 is not 1.0.
- A `~` that escapes nothing stands for itself.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import jsonpatch
import orjson
from jsonpointer import JsonPointer

from kube_sandbox.apiserver.attributes import Object, copied

MAX_COPIED = 3 * 1024 * 1024
"""Bytes that the `copy` operations of one patch may add. The limit stops patches that double the document."""

_MISSING = "missing value"
_INDEX = re.compile(r"[+-]?[0-9]{1,18}")
_PLAIN_TILDE = re.compile(r"~(?![01])")


class PatchError(Exception):
    """The patch cannot be applied. The message is that of kube-apiserver's library."""


def apply(document: Object, operations: Sequence[Object]) -> Any:
    """A patched copy of the document: any JSON value, because a patch may replace the root. Raises PatchError."""
    patcher = _Patcher(copied(document))
    for operation in copied(list(operations)):
        patcher.run(operation)
    return patcher.document


class _Patcher:
    def __init__(self, document: Any) -> None:
        self.document = document
        self._copied = 0

    def run(self, operation: Object) -> None:
        kind = operation.get("op")
        match kind:
            case "add":
                self._add(_text(operation, "path", kind), operation.get("value"))
            case "remove":
                self._remove(_text(operation, "path", kind))
            case "replace":
                self._replace(_text(operation, "path", kind), operation.get("value"))
            case "move" | "copy":
                self._move_or_copy(operation, kind)
            case "test":
                self._test(_text(operation, "path", kind), operation.get("value"))
            case _:
                raise PatchError(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")

    def _add(self, path: str, value: Any) -> None:
        parent, key = self._locate(path, f'add operation does not apply: doc is missing path: "{path}"')
        _with_prefix(f"error in add for path: '{path}'", _add, parent, key, value)

    def _remove(self, path: str) -> None:
        parent, key = self._locate(path, f'remove operation does not apply: doc is missing path: "{path}"')
        _with_prefix(f"error in remove for path: '{path}'", _remove, parent, key)

    def _replace(self, path: str, value: Any) -> None:
        if path == "":
            if not isinstance(value, dict | list):
                raise PatchError("replace operation value must be object or array: %!w(<nil>)")
            self.document = value
            return
        parent, key = self._locate(path, f"replace operation does not apply: doc is missing path: {path}")
        if isinstance(parent, dict):
            _add(parent, key, value)
            return
        try:
            _change(parent, "replace", _index(key, len(parent)), value)
        except PatchError as error:
            raise PatchError(f"replace operation does not apply: doc is missing key: {path}: {_MISSING}") from error

    def _move_or_copy(self, operation: Object, kind: str) -> None:
        source = _text(operation, "from", kind)
        parent, key = self._locate(source, f"{kind} operation does not apply: doc is missing from path: {source}")
        if kind == "move":
            value = _with_prefix(f"error in move for path: '{key}'", _get, parent, key)
            _with_prefix(f"error in move for path: '{key}'", _remove, parent, key)
        else:
            value = copied(_with_prefix(f"error in copy for from: '{source}'", _get, parent, key))
            self._copied += len(orjson.dumps(value))
        path = _text(operation, "path", kind)
        target, key = self._locate(path, f"{kind} operation does not apply: doc is missing destination path: {path}")
        if self._copied > MAX_COPIED:
            raise PatchError(
                "Unable to complete the copy, the accumulated size increase of copy is "
                f"{self._copied}, exceeding the limit {MAX_COPIED}"
            )
        prefix = f"error in move for path: '{path}'" if kind == "move" else "error while adding value during copy"
        _with_prefix(prefix, _add, target, key, value)

    def _test(self, path: str, value: Any) -> None:
        if path == "":
            found = self.document
        else:
            parent, key = self._locate(path, f"test operation does not apply: is missing path: {path}")
            found = _with_prefix(f"error in test for path: '{path}'", _get, parent, key)
        if not _equal(found, value):
            raise PatchError(f"testing value {path} failed: test failed")

    def _locate(self, path: str, missing: str) -> tuple[Any, str]:
        """The object or array that contains the member at a path, and the member's key. The member need not exist.
        Raises PatchError with the text `missing` when the object or array does not exist."""
        _, slash, rest = path.partition("/")
        parts = JsonPointer(_PLAIN_TILDE.sub("~0", slash + rest)).parts
        parent = self.document
        try:
            for part in parts[:-1]:
                parent = _get(parent, part) if isinstance(parent, dict | list) else None
        except PatchError:
            parent = None
        if not parts or not isinstance(parent, dict | list):
            raise PatchError(f"{missing}: {_MISSING}")
        return parent, parts[-1]


def _with_prefix(prefix: str, step: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return step(*arguments)
    except PatchError as error:
        raise PatchError(f"{prefix}: {error}") from error


def _text(operation: Object, field: str, kind: str) -> str:
    value = operation.get(field)
    if isinstance(value, str):
        return value
    why = _MISSING
    if (kind, field) not in (("add", "path"), ("remove", "path"), ("copy", "path")):
        why = f"operation{',' if field == 'from' else ''} missing {field} field: {_MISSING}"
    raise PatchError(f"{kind} operation failed to decode {field}: {why}")


def _get(parent: Any, key: str) -> Any:
    """A member of an object or array; None when the object does not have it."""
    member = _index(key, len(parent)) if isinstance(parent, list) else key
    return JsonPointer.from_parts([member]).resolve(parent, None)


def _add(parent: Any, key: str, value: Any) -> None:
    if isinstance(parent, dict) or key == "-":
        _change(parent, "add", key, value)
    elif _INDEX.fullmatch(key) is None:
        raise PatchError(f"value was not a proper array index: '{key}': {_not_a_number(key)}")
    else:
        _change(parent, "add", _index(key, len(parent) + 1), value)


def _remove(parent: Any, key: str) -> None:
    if isinstance(parent, list):
        _change(parent, "remove", _index(key, len(parent)))
    elif key in parent:
        _change(parent, "remove", key)
    else:
        raise PatchError(f"Unable to remove nonexistent key: {key}: {_MISSING}")


def _change(parent: Any, op: str, member: str | int, value: Any = None) -> None:
    """Apply one RFC 6902 operation to a member of an object or array, in place."""
    path = JsonPointer.from_parts([member]).path
    jsonpatch.JsonPatch([{"op": op, "path": path, "value": value}]).apply(parent, in_place=True)


def _index(key: str, length: int) -> int:
    if _INDEX.fullmatch(key) is None:
        raise PatchError(_not_a_number(key))
    index = int(key)
    if not -length <= index < length:
        raise PatchError(f"Unable to access invalid index: {index}: invalid index referenced")
    return index % length


def _not_a_number(key: str) -> str:
    return f'strconv.Atoi: parsing "{key}": invalid syntax'


def _equal(one: Any, other: Any) -> bool:
    return orjson.dumps(one, option=orjson.OPT_SORT_KEYS) == orjson.dumps(other, option=orjson.OPT_SORT_KEYS)
