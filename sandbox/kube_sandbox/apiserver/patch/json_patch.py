"""JSON Patch (RFC 6902) as kube-apiserver applies it, with the texts of its library (evanphx/json-patch v4).

Where that differs from the RFC it is followed: `replace` may name a key that is not there, indices may be negative,
`test` takes a missing key for null.
"""

import copy
import re
from collections.abc import Sequence
from typing import Any

import orjson

from kube_sandbox.apiserver.attributes import Object

MAX_COPIED = 3 * 1024 * 1024
"""Bytes that the `copy` operations of one patch may add, so that doubling ends."""

_MISSING = "missing value"
_INDEX = re.compile(r"[+-]?[0-9]{1,18}")


class PatchError(Exception):
    """A patch that does not apply; the message is the library's."""


def apply(document: Object, operations: Sequence[Object]) -> Any:
    """A patched copy of a document. Raises PatchError."""
    patcher = _Patcher(copy.deepcopy(document))
    for operation in operations:
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
                self._move(operation, kind)
            case "test":
                self._test(_text(operation, "path", kind), operation.get("value"))
            case _:
                raise PatchError(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")

    def _add(self, path: str, value: Any) -> None:
        holder, key = self._holder(path, f'add operation does not apply: doc is missing path: "{path}"')
        _wrapped(f"error in add for path: '{path}'", _insert, holder, key, copy.deepcopy(value))

    def _remove(self, path: str) -> None:
        holder, key = self._holder(path, f'remove operation does not apply: doc is missing path: "{path}"')
        _wrapped(f"error in remove for path: '{path}'", _delete, holder, key)

    def _replace(self, path: str, value: Any) -> None:
        if path == "":
            if not isinstance(value, dict | list):
                raise PatchError("replace operation value must be object or array: %!w(<nil>)")
            self.document = copy.deepcopy(value)
            return
        holder, key = self._holder(path, f"replace operation does not apply: doc is missing path: {path}")
        if isinstance(holder, dict):
            holder[key] = copy.deepcopy(value)
            return
        try:
            holder[_index(key, len(holder))] = copy.deepcopy(value)
        except PatchError as error:
            raise PatchError(f"replace operation does not apply: doc is missing key: {path}: {_MISSING}") from error

    def _move(self, operation: Object, kind: str) -> None:
        source = _text(operation, "from", kind)
        holder, key = self._holder(source, f"{kind} operation does not apply: doc is missing from path: {source}")
        if kind == "move":
            value = _wrapped(f"error in move for path: '{key}'", _get, holder, key)
            _wrapped(f"error in move for path: '{key}'", _delete, holder, key)
        else:
            value = copy.deepcopy(_wrapped(f"error in copy for from: '{source}'", _get, holder, key))
            self._copied += len(orjson.dumps(value))
        path = _text(operation, "path", kind)
        target, key = self._holder(path, f"{kind} operation does not apply: doc is missing destination path: {path}")
        if self._copied > MAX_COPIED:
            raise PatchError(
                "Unable to complete the copy, the accumulated size increase of copy is "
                f"{self._copied}, exceeding the limit {MAX_COPIED}"
            )
        told = f"error in move for path: '{path}'" if kind == "move" else "error while adding value during copy"
        _wrapped(told, _insert, target, key, value)

    def _test(self, path: str, value: Any) -> None:
        if path == "":
            found = self.document
        else:
            holder, key = self._holder(path, f"test operation does not apply: is missing path: {path}")
            found = _wrapped(f"error in test for path: '{path}'", _get, holder, key)
        if not _equal(found, value):
            raise PatchError(f"testing value {path} failed: test failed")

    def _holder(self, path: str, missing: str) -> tuple[Any, str]:
        """The object or array that holds what a path names, and its key there."""
        _, *steps = path.split("/")
        holder = self.document
        for step in steps[:-1]:
            try:
                holder = _get(holder, _unescaped(step))
            except PatchError:
                holder = None
            if not isinstance(holder, dict | list):
                break
        if not steps or not isinstance(holder, dict | list):
            raise PatchError(f"{missing}: {_MISSING}")
        return holder, _unescaped(steps[-1])


def _wrapped(told: str, step: Any, *arguments: Any) -> Any:
    try:
        return step(*arguments)
    except PatchError as error:
        raise PatchError(f"{told}: {error}") from error


def _text(operation: Object, field: str, kind: str) -> str:
    value = operation.get(field)
    if isinstance(value, str):
        return value
    why = _MISSING
    if (kind, field) not in (("add", "path"), ("remove", "path"), ("copy", "path")):
        why = f"operation{',' if field == 'from' else ''} missing {field} field: {_MISSING}"
    raise PatchError(f"{kind} operation failed to decode {field}: {why}")


def _unescaped(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")


def _get(holder: Any, key: str) -> Any:
    return holder.get(key) if isinstance(holder, dict) else holder[_index(key, len(holder))]


def _insert(holder: Any, key: str, value: Any) -> None:
    if isinstance(holder, dict):
        holder[key] = value
    elif key == "-":
        holder.append(value)
    elif _INDEX.fullmatch(key) is None:
        raise PatchError(f"value was not a proper array index: '{key}': {_not_a_number(key)}")
    else:
        holder.insert(_index(key, len(holder) + 1), value)


def _delete(holder: Any, key: str) -> None:
    if isinstance(holder, list):
        del holder[_index(key, len(holder))]
    elif key in holder:
        del holder[key]
    else:
        raise PatchError(f"Unable to remove nonexistent key: {key}: {_MISSING}")


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
    """Whether two JSON values are the same; unlike in Python, true is not 1."""
    return orjson.dumps(one, option=orjson.OPT_SORT_KEYS) == orjson.dumps(other, option=orjson.OPT_SORT_KEYS)
