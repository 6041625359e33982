"""Validation of the selectable fields of a CustomResourceDefinition.

The rules are those of `k8s.io/apiextensions-apiserver`, `ValidateCustomResourceSelectableFields` in
`pkg/apis/apiextensions/validation` and `ValidFieldPath` in `pkg/apiserver/schema/cel`.
"""

import re
from collections.abc import Sequence

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.validation import causes
from kube_sandbox.apiserver.validation.causes import Causes

_MAX_FIELDS = 8
_TYPES = ("string", "boolean", "integer")
_TOKEN = re.compile(r"'.*?(?<!\\)'|'.*|[.\[\]]|[^.\[\]]+", re.DOTALL)


class _InvalidPathError(Exception):
    """Why a path does not lead to a field."""


def selectable(fields: Sequence[Object], schema: Object | None, path: str) -> Causes:
    """Validate selectable fields. `schema`: the schema of the object. None: it is not where the server looks for it,
    which is among the parts that all versions share if all share the fields, and otherwise in the version."""
    if fields and schema is None:
        place = "`version.schema.openAPIV3Schema` is not included"
        if not path.startswith("spec.versions"):
            place = "validations.schema is included"
        yield causes.invalid(path, "", f"may only be set when {place}")
        return
    found: set[tuple[str, ...]] = set()
    for index, field in enumerate(fields):
        json_path, where = field["jsonPath"], f"{path}[{index}].jsonPath"
        if not json_path:
            yield causes.required(where)
            continue
        try:
            names, type_ = _resolve(json_path, schema or {})
        except _InvalidPathError as error:
            yield causes.invalid(where, json_path, f"is an invalid path: {error}")
            continue
        if names[0] == "metadata":
            yield causes.invalid(where, json_path, "must not point to fields in metadata")
        if type_ not in _TYPES:
            why = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats "
                "are allowed."
            )
            yield causes.invalid(where, json_path, why)
        if names in found:
            yield causes.duplicate(where, json_path)
        found.add(names)
    if len(found) > _MAX_FIELDS:
        yield causes.too_many(path, len(found), _MAX_FIELDS)


def _resolve(json_path: str, schema: Object) -> tuple[tuple[str, ...], str]:
    """The names in a path, and the type of the field to which it leads."""
    names: list[str] = []
    tokens = iter(_TOKEN.findall(json_path))
    for part in tokens:
        if part == "[":
            raise _InvalidPathError("array notation is not allowed")
        if part != ".":
            raise _InvalidPathError(f"expected [ or . but got: {part}")
        if (name := next(tokens, "")) == "":
            raise _InvalidPathError("unexpected end of JSON path")
        properties, values = schema.get("properties"), schema.get("additionalProperties")
        below = properties.get(name) if properties else values
        if below is None:
            raise _InvalidPathError("does not refer to a valid field")
        schema = below if isinstance(below, dict) else {}
        names.append(name)
    return tuple(names), schema.get("type", "")
