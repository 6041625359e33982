"""Sets of fields as in managedFields (FieldsV1), and their text in messages.

A path is a tuple of FieldsV1 elements: `f:name` is a member, `k:{"name":"x"}` an item by its keys, `v:"x"` an item by
its value, `i:0` an item by its index. A set contains only the owned paths, not their parents.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import orjson

from kube_sandbox.apiserver import gotext
from kube_sandbox.apiserver.attributes import Object

Path = tuple[str, ...]
Fields = frozenset[Path]

EMPTY: Fields = frozenset()
_RANKS = {"f": 0, "k": 1, "v": 2, "i": 3}


def member(name: str) -> str:
    return f"f:{name}"


def item_by_keys(keys: Mapping[str, Any]) -> str:
    return f"k:{_json(dict(sorted(keys.items())))}"


def item_by_value(value: Any) -> str:
    return f"v:{_json(value)}"


def _json(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def decode(fields: Any) -> Fields:
    """The set in a `fieldsV1` object. Raises ValueError when it is malformed."""
    return _decoded(orjson.dumps(fields))


@lru_cache(maxsize=1024)
def _decoded(encoded: bytes) -> Fields:
    """Cached, because most objects of one kind have the same few sets."""
    return frozenset(_decode(orjson.loads(encoded), ()))


def _decode(fields: Any, path: Path) -> Iterator[Path]:
    if not isinstance(fields, dict):
        raise ValueError("fieldsV1 is not an object")  # noqa: TRY004  (the value is input, not an argument)
    if path and (not fields or "." in fields):
        yield path
    for element, below in fields.items():
        if element == ".":
            continue
        if len(element) < 2 or element[1] != ":":
            raise ValueError(f"missing colon: {element}")
        if element[0] in _RANKS:
            yield from _decode(below, (*path, element))


def encode(fields: Fields) -> Object:
    """A set as a `fieldsV1` object."""
    encoded: Object = orjson.loads(_encoded(fields))
    return encoded


@lru_cache(maxsize=1024)
def _encoded(fields: Fields) -> bytes:
    """The JSON. Cached like `_decoded`."""
    root: Object = {}
    for path in fields:
        node = root
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return orjson.dumps(_in_order(root))


def _in_order(node: Object) -> Object:
    """The node with sorted elements, the dot first, and without the dots of leaves. FieldsV1 uses a dot only to mark
    that a node with members is owned itself."""
    dot = node.pop(".", None)
    members = {element: _in_order(node[element]) for element in sorted(node, key=_element_order)}
    return {".": dot, **members} if members and dot is not None else members


def below(fields: Fields, excluded: Iterable[Path]) -> Fields:
    """The paths that are equal to an excluded path or below it."""
    prefixes = tuple(excluded)
    return frozenset(path for path in fields if any(path[: len(prefix)] == prefix for prefix in prefixes))


def _element_order(element: str) -> tuple[int, str]:
    return _RANKS[element[0]], element[2:]


def in_conflict_order(fields: Fields) -> list[Path]:
    """The paths in the order of conflict messages: per parent, first its own members, then the members below them."""
    tree: dict[str, Any] = {}
    for path in fields:
        node = tree
        for element in path[:-1]:
            node = node.setdefault(element, ({}, set()))[0]
        node.setdefault(path[-1], ({}, set()))[1].add(True)
    return list(_in_conflict_order(tree, ()))


def _in_conflict_order(tree: dict[str, Any], path: Path) -> Iterator[Path]:
    elements = sorted(tree, key=_element_order)
    for element in elements:
        if tree[element][1]:
            yield (*path, element)
    for element in elements:
        yield from _in_conflict_order(tree[element][0], (*path, element))


def text(path: Path) -> str:
    """The text of a path in messages: `.spec.containers[name="c"].image`."""
    return "".join(element_text(element) for element in path)


def element_text(element: str) -> str:
    kind, value = element[0], element[2:]
    match kind:
        case "f":
            return f".{value}"
        case "k":
            return f"[{','.join(f'{name}={_scalar(key)}' for name, key in json.loads(value).items())}]"
        case "v":
            return f"[={_scalar(json.loads(value))}]"
    return f"[{value}]"


def _scalar(value: Any) -> str:
    return gotext.quoted(value) if isinstance(value, str) else gotext.value_text(value)
