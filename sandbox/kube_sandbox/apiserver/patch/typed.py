"""Operations on objects with a `Shape`: field sets, comparison, merge, removal and validation.

The rules are those of sigs.k8s.io/structured-merge-diff, package `typed`. ABSENT stands for a missing member; null is a
value.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson

from kube_sandbox.apiserver import gotext
from kube_sandbox.apiserver.patch import field_sets
from kube_sandbox.apiserver.patch.field_sets import EMPTY, Fields, Path
from kube_sandbox.apiserver.patch.shapes import Shape

ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class Comparison:
    """The fields in which two objects differ. No field is in more than one set."""

    removed: Fields = EMPTY
    modified: Fields = EMPTY
    added: Fields = EMPTY

    def without(self, excluded: tuple[Path, ...]) -> "Comparison":
        return Comparison(
            *(fields - field_sets.below(fields, excluded) for fields in (self.removed, self.modified, self.added))
        )


def path_element(shape: Shape, item: Any) -> str:
    """The path element that identifies a list item. Raises ValueError when nothing identifies it."""
    if shape.is_set:
        if item is None:
            raise ValueError("associative list without keys has an element that's an explicit null")
        if isinstance(item, dict):
            raise ValueError("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise ValueError("not supported: associative list with lists as elements")
        return field_sets.item_by_value(item)
    if item is None:
        raise ValueError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise ValueError("associative list with keys may not have non-map elements")  # noqa: TRY004
    keys = {key: item.get(key, shape.defaults.get(key)) for key in shape.keys if key in item or key in shape.defaults}
    if not keys:
        raise ValueError(
            f"associative list with keys has an element that omits all key fields {gotext.quoted_list(shape.keys)} "
            "(and doesn't have default values for any key fields)"
        )
    return field_sets.item_by_keys(keys)


def _merge_mode(shape: Shape, *values: Any) -> str:
    """`map` or `list` when the values are merged member by member, `leaf` when they are replaced as a whole. Values
    that are all empty or null are a `leaf`."""
    present = [value for value in values if value is not ABSENT and value not in (None, {}, [])]
    if not present or shape.atomic:
        return "leaf"
    if shape.kind in ("map", "deduced") and all(isinstance(value, dict) for value in present):
        return "map"
    if shape.kind == "list" and all(isinstance(value, list) for value in present):
        return "list"
    return "leaf"


def _members(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(shape: Shape, value: Any) -> dict[str, list[Any]]:
    """The items of a list by their path element. Items without one are omitted."""
    found: dict[str, list[Any]] = {}
    for item in value if isinstance(value, list) else []:
        try:
            found.setdefault(path_element(shape, item), []).append(item)
        except ValueError:
            continue
    return found


def field_set(shape: Shape, value: Any) -> Fields:
    """The fields that a configuration sets."""
    return frozenset(_field_set(shape, value, ()))


def _field_set(shape: Shape, value: Any, path: Path) -> Iterator[Path]:
    if (shape.kind == "map" and not shape.atomic) or (shape.kind == "deduced" and isinstance(value, dict)):
        for name, below in _members(value).items():
            where = (*path, field_sets.member(name))
            yield from _field_set(shape.of(name) or shape, below, where)
            if below in (None, {}) or shape.member(name) is None:
                yield where
    elif shape.kind == "list" and not shape.atomic:
        for identity, items in _items(shape, value).items():
            where = (*path, identity)
            if len(items) == 1 and shape.items is not None:
                yield from _field_set(shape.items, items[0], where)
            yield where
    elif path:
        yield path


def _are_equal(old: Any, new: Any) -> bool:
    """Whether two values are equal, with their types: 1, 1.0 and true are equal in Python."""
    if old is new:
        return True
    if old.__class__ is not new.__class__ or old != new:
        return False
    return old.__class__ is str or orjson.dumps(old) == orjson.dumps(new)


def compare(shape: Shape, old: Any, new: Any) -> Comparison:
    """The changes from the old object to the new one."""
    changes = [] if _are_equal(old, new) else [(kind, path) for kind, path in _changes(shape, old, new, ()) if path]
    removed, modified, added = (
        frozenset(path for kind, path in changes if kind == wanted) for wanted in ("removed", "modified", "added")
    )
    return Comparison(removed, modified, added)


def _changes(shape: Shape, old: Any, new: Any, path: Path) -> Iterator[tuple[str, Path]]:
    """The changes between two values that differ."""
    mode = _merge_mode(shape, old, new)
    if mode == "map":
        olds, news = _members(old), _members(new)
        for name in olds.keys() | news.keys():
            before, after = olds.get(name, ABSENT), news.get(name, ABSENT)
            if not _are_equal(before, after) and (below := shape.of(name)) is not None:
                yield from _changes(below, before, after, (*path, field_sets.member(name)))
    elif mode == "list" and shape.items is not None:
        yield from _item_changes(shape, shape.items, old, new, path)
    elif old is not ABSENT and new is not ABSENT and (old != new or type(old) is not type(new)):
        yield "modified", path
    if old is ABSENT:
        yield "added", path
    elif new is ABSENT:
        yield "removed", path


def _item_changes(shape: Shape, items: Shape, old: Any, new: Any, path: Path) -> Iterator[tuple[str, Path]]:
    olds, news = _items(shape, old), _items(shape, new)
    for identity in olds.keys() | news.keys():
        before, after, where = olds.get(identity, []), news.get(identity, []), (*path, identity)
        match len(before), len(after):
            case 0 | 1, 0 | 1:
                old_item, new_item = (before or [ABSENT])[0], (after or [ABSENT])[0]
                if not _are_equal(old_item, new_item):
                    yield from _changes(items, old_item, new_item, where)
            case _, 0 | 1:
                if after:
                    yield from _changes(items, ABSENT, after[0], where)
                yield "removed", where
            case 0 | 1, _:
                if before:
                    yield from _changes(items, before[0], ABSENT, where)
                yield "added", where
            case _ if before != after:
                yield "modified", where


def merge(shape: Shape, live: Any, applied: Any) -> Any:
    """The live value merged with the applied one. Where both have a value, the applied value is used."""
    if applied is ABSENT:
        return live
    mode = _merge_mode(shape, live, applied)
    if mode == "map":
        live_members, applied_members = _members(live), _members(applied)
        return {
            name: merge(shape.of(name) or shape, live_members.get(name, ABSENT), applied_members.get(name, ABSENT))
            for name in (*live_members, *(name for name in applied_members if name not in live_members))
        }
    if mode == "list" and shape.items is not None:
        return _merge_lists(shape, shape.items, live, applied)
    return applied


def _merge_lists(shape: Shape, items: Shape, live: Any, applied: Any) -> list[Any]:
    """The applied items in their order. Live items that are not applied keep their positions between them."""
    live_items = [(path_element(shape, item), item) for item in (live if isinstance(live, list) else [])]
    applied_items = {identity: found[0] for identity, found in _items(shape, applied).items()}
    live_by_element = _items(shape, live)
    shared = [identity for identity in applied_items if identity in live_by_element]
    result: list[Any] = []
    done: set[str] = set()
    waiting = list(applied_items)
    next_shared = 0

    def take(identity: str) -> None:
        nonlocal next_shared
        found = live_by_element.get(identity, [])
        done.add(identity)
        result.append(merge(items, found[0] if len(found) == 1 else ABSENT, applied_items[identity]))
        if next_shared < len(shared) and shared[next_shared] == identity:
            next_shared += 1

    index = 0
    while index < len(live_items) or waiting:
        identity, item = live_items[index] if index < len(live_items) else ("", None)
        if index < len(live_items) and waiting:
            if identity == waiting[0]:
                take(waiting.pop(0))
                index += 1
                continue
            if identity in applied_items and next_shared < len(shared) and shared[next_shared] != identity:
                index += 1
                continue
        if index < len(live_items):
            if identity not in applied_items:
                result.append(item)
                index += 1
                continue
            if identity in done:
                index += 1
        if waiting:
            take(waiting.pop(0))
    return result


def remove(shape: Shape, value: Any, fields: Fields) -> Any:
    """The value without these fields and without the fields below them."""
    return _remove(shape, value, _tree(fields))


def _tree(fields: Fields) -> dict[str, Any]:
    """The fields to remove as a tree: per element, the elements below it to remove, or None to remove it whole."""
    tree: dict[str, Any] = {}
    for path in sorted(fields, key=len):
        node: Any = tree
        for name in path[:-1]:
            node = None if node is None else node.setdefault(name, {})
        if node is not None:
            node[path[-1]] = None
    return tree


def _remove(shape: Shape, value: Any, tree: dict[str, Any]) -> Any:
    mode = _merge_mode(shape, value)
    if mode == "map":
        kept = {}
        for name, below in value.items():
            found = tree.get(field_sets.member(name), ABSENT)
            if found is not None:
                kept[name] = below if found is ABSENT else _remove(shape.of(name) or shape, below, found)
        return kept
    if mode == "list" and shape.items is not None:
        items = []
        for item in value:
            found = tree.get(path_element(shape, item), ABSENT)
            if found is not None:
                items.append(item if found is ABSENT else _remove(shape.items, item, found))
        return items
    return value


def with_named_parents(shape: Shape, fields: Fields) -> Fields:
    """The set together with the declared fields that are parents of its paths."""
    result = set(fields)
    for path in fields:
        here: Shape | None = shape
        for index, name in enumerate(path[:-1]):
            if here is None:
                break
            if name.startswith("f:"):
                if here.member(name[2:]) is not None:
                    result.add(path[: index + 1])
                here = here.of(name[2:])
            else:
                here = here.items
    return frozenset(result)


def validate(shape: Shape, value: Any, path: str = "") -> list[str]:
    """The server's error texts for a configuration: wrong types, undeclared fields, duplicate items."""
    if value is None or shape.kind in ("free", "deduced"):
        return []
    match shape.kind:
        case "map":
            if not isinstance(value, dict):
                return [f"{path}: expected map, got &{{{gotext.value_text(value)}}}"]
            found = []
            for name in value:
                below = shape.of(name)
                where = f"{path}.{name}"
                found += (
                    [f"{where}: field not declared in schema"] if below is None else validate(below, value[name], where)
                )
            return found
        case "list":
            return _validate_list(shape, value, path)
        case "numeric" if isinstance(value, bool) or not isinstance(value, int | float):
            return [f"{path}: expected numeric (int or float), got {gotext.GO_TYPES[type(value)]}"]
        case "string" if not isinstance(value, str):
            return [f"{path}: expected string, got &value.valueUnstructured{{Value:{gotext.value_text(value)}}}"]
        case "boolean" if not isinstance(value, bool):
            return [f"{path}: expected boolean, got &{{{gotext.value_text(value)}}}"]
        case "untyped" if isinstance(value, dict | list):
            return [f"{path}: expected any scalar, got &{{{gotext.value_text(value)}}}"]
    return []


def _validate_list(shape: Shape, value: Any, path: str) -> list[str]:
    if not isinstance(value, list):
        return [f"{path}: expected list, got &{{{gotext.value_text(value)}}}"]
    found: list[str] = []
    seen: set[str] = set()
    for index, item in enumerate(value):
        where = f"[{index}]"
        if not shape.atomic:
            try:
                identity = path_element(shape, item)
            except ValueError as error:
                return [*found, f"{path}: element {index}: {error}"]
            where = field_sets.element_text(identity)
            if identity in seen:
                found.append(f"{path}: duplicate entries for key {where}")
            seen.add(identity)
        if shape.items is not None:
            found += validate(shape.items, item, path + where)
    return found
