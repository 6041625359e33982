"""Strategic merge patches as the server applies them (apimachinery, pkg/util/strategicpatch, `mergeMap`).

A list of a built-in kind that has a merge key is merged item by item; any other list is replaced. The directives are
`$patch: delete|replace`, `$retainKeys`, `$setElementOrder/<list>` and `$deleteFromPrimitiveList/<list>`.
"""

from collections.abc import Iterable
from typing import Any

from kube_sandbox.apiserver import gotext
from kube_sandbox.apiserver.attributes import Object, copied
from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.schema import types

_PATCH, _RETAIN = "$patch", "$retainKeys"
_ORDER, _DELETE = "$setElementOrder", "$deleteFromPrimitiveList"
_BAD_FORMAT = {_RETAIN: "retainKeys", _ORDER: "setElementOrder list", _DELETE: "primitive list"}
_ANY = types.Type("any")


def merge(current: Object, patch: Object, model: str) -> Object:
    """The patched object. The function removes the directives that it has applied from `patch`, because the server's
    error messages show the rest.

    Raises StatusError 400 for a malformed directive, and 500 for a patch that does not fit the type (the real server
    returns 500 too).
    """
    return _merge_map(copied(current), patch, types.Type("struct", model=model))


def _failed(message: str) -> StatusError:
    return StatusError(500, message, reason="")


def _malformed(directive: str) -> StatusError:
    return StatusError(400, f"invalid patch format of {_BAD_FORMAT[directive]}")


def _wrong_type(expected: type, value: object) -> StatusError:
    return _failed(f"expected a {gotext.GO_TYPES[expected]}, but received a {gotext.GO_TYPES[type(value)]}")


def _no_merge_key(item: Any, key: str) -> StatusError:
    return _failed(f"map: {gotext.value_text(item)} does not contain declared merge key: {key}")


def _unknown_directive(item: Object) -> StatusError:
    return _failed(f"unknown patch type: {gotext.value_text(item[_PATCH])} in map: {gotext.value_text(item)}")


def _field(type_: types.Type, name: str) -> types.Field:
    """The declaration of a member in the type of its object."""
    if type_.kind == "map" and type_.items is not None:
        return types.Field(type_.items)
    known = types.fields(type_.model) if type_.kind == "struct" else {}
    if name not in known:
        struct = types.go_name(type_.model) or "RawExtension"
        raise _failed(f'unable to find api field in struct {struct} for the json field "{name}"')
    return known[name]


def _merge_map(original: Object, patch: Object, type_: types.Type) -> Object:
    match patch.get(_PATCH, ...):
        case "replace":
            del patch[_PATCH]
            return patch
        case "delete":
            return {}
        case directive if directive is not ...:
            raise _unknown_directive(patch)
    _retain_keys(original, patch)
    _set_order(original, patch, type_)
    for name, value in patch.items():
        if name.startswith(_DELETE):
            _delete_values(original, _list_name(name, _DELETE), value)
        elif value is None:
            original.pop(name, None)
        elif type(original.get(name)) is not type(value) or not isinstance(value, dict | list):
            _set_member(original, name, value)
        elif isinstance(value, dict):
            field = _field(type_, name)
            original[name] = value if field.replaces else _merge_map(original[name], value, field.type)
        else:
            field = _field(type_, name)
            original[name] = _merge_list(original[name], value, field) if field.merges else value
    return original


def _delete_values(original: Object, name: str, removed: Any) -> None:
    """Remove values from a list of scalars, in place."""
    if removed is None:
        original.pop(name, None)
    elif isinstance(removed, list) and isinstance(original.get(name), list):
        original[name] = [value for value in original[name] if value not in removed]


def _set_member(original: Object, name: str, value: Any) -> None:
    """Replace a member, in place. Nulls and directives in the value are removed, because they have no effect here."""
    _drop_nulls(value)
    cleaned = _without_directives(value)
    if cleaned is ...:
        original.pop(name, None)
    else:
        original[name] = cleaned


def _drop_nulls(value: Any) -> None:
    if isinstance(value, dict):
        for name in [name for name, item in value.items() if item is None]:
            del value[name]
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _drop_nulls(item)


def _without_directives(value: Any) -> Any:
    if isinstance(value, dict):
        if _PATCH in value:
            return ...
        for name, item in list(value.items()):
            value[name] = _without_directives(item)
            if value[name] is ...:
                del value[name]
    if isinstance(value, list):
        return [kept for item in value if (kept := _without_directives(item)) is not ...]
    return value


def _retain_keys(original: Object, patch: Object) -> None:
    if _RETAIN not in patch:
        return
    retained = patch.pop(_RETAIN)
    if not isinstance(retained, list):
        raise _malformed(_RETAIN)
    for name, value in patch.items():
        if value is not None and not name.startswith((_DELETE, _ORDER)) and name not in retained:
            raise _malformed(_RETAIN)
    for name in [name for name in original if name not in retained]:
        del original[name]


def _list_name(directive: str, prefix: str) -> str:
    start, slash, name = directive.partition("/")
    if not slash or start != prefix:
        raise _malformed(prefix)
    return name


def _set_order(original: Object, patch: Object, type_: types.Type) -> None:
    """Merge the lists that have an order directive, and remove them from the patch."""
    for directive in [name for name in patch if name.startswith(_ORDER)]:
        order = patch.pop(directive)
        if not isinstance(order, list):
            raise _wrong_type(list, order)
        name = _list_name(directive, _ORDER)
        for side in (original, patch):
            if name in side and not isinstance(side[name], list):
                raise _wrong_type(list, side[name])
        field = _field(type_, name)
        before, wanted = original.get(name), patch.pop(name, None)
        places = list(before or ())
        _check_order(wanted or [], order, field.merge_key)
        if before is None and wanted is None:
            continue
        if before is None:
            merged = _without_directives(wanted)
        elif wanted is None:
            merged = before
        else:
            merged = _merge_list(places, wanted, field) if field.merges else wanted
        original[name] = _ordered(merged, order, places, field.merge_key)


def _check_order(wanted: list[Any], order: list[Any], key: str) -> None:
    """Check that the items of the patch are in its order directive, in the same order. Deleted items are ignored."""
    if not wanted or not order:
        return
    for item in wanted if key else ():
        if not isinstance(item, dict):
            raise _wrong_type(dict, item)
    items = [item for item in wanted if not key or item.get(_PATCH) != "delete"]
    index = place = 0
    while index < len(items) and place < len(order):
        if isinstance(items[index], dict) and _PATCH in items[index]:
            index += 1
            continue
        index += _identity(items[index], key) == _identity(order[place], key)
        place += 1
    if index < len(items):
        raise _failed(
            f"The order in patch list:\n{gotext.value_text(wanted)}\n"
            f" doesn't match {_ORDER} list:\n{gotext.value_text(order)}\n"
        )


def _identity(item: Any, key: str) -> Any:
    if not key:
        return item
    if not isinstance(item, dict):
        raise _wrong_type(dict, item)
    if key not in item:
        raise _no_merge_key(item, key)
    return item[key]


def _merge_list(original: list[Any], patch: list[Any], field: types.Field) -> list[Any]:
    if not original and not patch:
        return original
    if len({type(item) for item in (*original, *patch)}) > 1:
        raise _failed(f"list element types are not identical: {gotext.value_text([original, patch])}")
    if isinstance((*original, *patch)[0], list):
        raise StatusError(422, "the server rejected our request due to an error in our request")
    if not isinstance((*original, *patch)[0], dict):
        return _ordered(_distinct([*original, *patch]), patch, original, "")
    key, places = field.merge_key, original
    if not key:
        raise _failed("cannot merge lists without merge key for struct")
    original, patch = _apply_directives(original, patch, key)
    item_type = field.type.items or _ANY
    merged = list(original)
    for item in patch:
        value = _identity(item, key)
        index = next((i for i, old in enumerate(merged) if key in old and old[key] == value), None)
        if index is None:
            merged.append(item)  # it may contain directives; the decoder ignores them
        else:
            merged[index] = _merge_map(merged[index], item, item_type)
    result = _ordered(merged, patch, original, key)
    # In the real server the new list shares memory with the original list. Added items overwrite the deleted ones in
    # it, and `_set_order` sorts the result by this list.
    places[: len(merged)] = merged[: len(places)]
    return result


def _apply_directives(original: list[Object], patch: list[Object], key: str) -> tuple[list[Object], list[Object]]:
    """Apply `$patch` directives of list items. Returns the original list without the deleted items, and the items of
    the patch without directives. With `$patch: replace`, it returns these items and an empty list."""
    plain = [item for item in patch if _PATCH not in item]
    replace = False
    for item in patch:
        match item.get(_PATCH, ...):
            case "delete":
                value = _identity(item, key)
                original = [old for old in original if old.get(key) != value]
            case "replace":
                replace = True
            case "merge":
                raise _failed("merging lists cannot yet be specified in the patch")
            case directive if directive is not ...:
                raise _unknown_directive(item)
    return (plain, []) if replace else (original, plain)


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


def _ordered(merged: list[Any], wanted: list[Any], before: list[Any], key: str) -> list[Any]:
    """The merged items: those of the patch in the order of the patch, the others in their original order, interleaved
    by their original positions."""

    def places(items: list[Any]) -> dict[Any, int]:
        found: dict[Any, int] = {}
        for index, item in enumerate(items):
            found.setdefault(_hashable(_identity(item, key)), index)
        return found

    def place(item: Any, order: dict[Any, int]) -> int:
        return order.get(_hashable(_identity(item, key)), -1)

    in_patch, in_before = places(wanted), places(before)
    patched = sorted((item for item in merged if place(item, in_patch) >= 0), key=lambda item: place(item, in_patch))
    others = sorted((item for item in merged if place(item, in_patch) < 0), key=lambda item: place(item, in_before))
    result = []
    while patched and others:
        left, right = place(others[0], in_before), place(patched[0], in_before)
        result.append(others.pop(0) if 0 <= left < right else patched.pop(0))
    return [*result, *patched, *others]


def _hashable(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else gotext.value_text(value)
