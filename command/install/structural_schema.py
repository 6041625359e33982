"""The schema of a type, as a CustomResourceDefinition has it.

msgspec generates the JSON schema of each type. Kubernetes requires a *structural* schema: no references, no unions with
null, and a type on every node. This module also adds list types, which a JSON schema does not have.
"""

from typing import Any

import msgspec

Schema = dict[str, Any]

_COPIED = (
    *("maxLength", "minLength", "minimum", "maximum", "minItems", "maxItems", "maxProperties", "pattern"),
    *("enum", "description", "x-kubernetes-validations"),
    *("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"),
)
"""The keys that a structural schema takes unchanged from a JSON schema."""

_NO_DEFAULT = {"phases"}
"""Fields whose default is not in the schema: the phases of a check depend on its kind."""


def structural_schema(type_: type) -> Schema:
    """The structural schema of a msgspec type."""
    (schema,), definitions = msgspec.json.schema_components([type_], ref_template="{name}")
    return _structural(schema, definitions)


def _structural(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    own = {key: schema[key] for key in _COPIED if key in schema}
    if schema.get("default") not in (None, "", (), [], {}):
        default = schema["default"]
        own["default"] = list(default) if isinstance(default, tuple) else default
    if "$ref" in schema:
        named = _structural(definitions[schema["$ref"]], definitions)
        if schema.get("default") == {} and any("default" in each for each in named.get("properties", {}).values()):
            own["default"] = {}  # the API server then sets the defaults of its fields
        return named | own
    if "anyOf" in schema:  # the types have no other unions than `type | None` and `int | str`
        values = [option for option in schema["anyOf"] if option.get("type") != "null"]
        if len(values) < len(schema["anyOf"]):
            own["nullable"] = True
        return (_int_or_string(values) if len(values) > 1 else _structural(values[0], definitions)) | own
    out: Schema = {"type": schema.get("type", "string")} | own  # the schema of a StrEnum has no type
    match out["type"]:
        case "integer":
            out["format"] = "int64"
        case "object":
            out |= _object(schema, definitions)
        case "array":
            out |= _list(schema["items"], definitions)
    return out


def _int_or_string(options: list[Schema]) -> Schema:
    limits = {key: option[key] for option in options for key in _COPIED if key in option}
    return {"x-kubernetes-int-or-string": True} | limits


def _object(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """The fields of an object, or the values of a map."""
    if "properties" not in schema:
        if "additionalProperties" in schema:
            return {"additionalProperties": _structural(schema["additionalProperties"], definitions)}
        return {"x-kubernetes-preserve-unknown-fields": True}
    if not schema["properties"]:  # the API server drops an empty map, and GitOps tools would report a difference
        return {}
    properties = {name: _structural(sub, definitions) for name, sub in schema["properties"].items()}
    for name in _NO_DEFAULT & properties.keys():
        properties[name].pop("default", None)
    required = {"required": list(schema["required"])} if schema.get("required") else {}
    return {"properties": properties} | required


def _list(items: Schema, definitions: dict[str, Schema]) -> Schema:
    """The items of a list; conditions are merged by their type."""
    found = _structural(items, definitions)
    if {"type", "status", "lastTransitionTime"} <= found.get("properties", {}).keys():
        return {"items": found, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    return {"items": found}
