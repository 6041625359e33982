"""Encodes objects as tables for `kubectl get`, with the columns of built-in kinds or of CRDs."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.printers import columns as built_in
from kube_sandbox.apiserver.printers.humans import age
from kube_sandbox.apiserver.storage.registry import CustomType, ResourceType
from kube_sandbox.apiserver.storage.store import Item

_NAME = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a"
    " client to request the generation of an appropriate name automatically. Name is primarily intended for creation"
    " idempotence and configuration definition. Cannot be updated. More info:"
    " https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
_STEP = re.compile(
    r"\.?([A-Za-z0-9_\-/$]+)|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]|\[(-?\d+)\]|\[\?\(([^)]*)\)\]|\[\*\]|\.\*|(\.\.)"
)
_FILTER = re.compile(r"@\.([A-Za-z0-9_.\-]+)\s*(==|!=)\s*(?:\"([^\"]*)\"|'([^']*)'|(\S+))")


def table(
    resource: ResourceType,
    items: Sequence[Item],
    metadata: Mapping[str, object],
    query: Mapping[str, str],
    version: str,
    *,
    columns: bool = True,
) -> bytes:
    """A Table of the objects, as JSON. `includeObject` in the query selects the object in each row: its metadata, the
    whole object, or none. `columns` includes the column definitions. Raises StatusError 400 for another
    `includeObject`."""
    include = query.get("includeObject", "Metadata") or "Metadata"
    if include not in ("None", "Metadata", "Object"):
        raise StatusError(
            400,
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}": must be'
            " 'Metadata', 'Object', 'None', or empty",
        )
    rows = [_row(resource, item, include, version) for item in items]
    document = {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": dict(metadata),
        "columnDefinitions": definitions(resource) if columns else None,
        "rows": rows,
    }
    return orjson.dumps(document)


def scale_table(scale: Object, version: str) -> bytes:
    """A Scale as a Table with one row."""
    metadata = scale["metadata"]
    columns = (("Name", "string"), ("Desired", "integer"), ("Available", "integer"), ("Age", "string"))
    cells = [
        metadata["name"],
        scale["spec"].get("replicas", 0),
        scale["status"]["replicas"],
        age(metadata.get("creationTimestamp")),
    ]
    api_version = f"meta.k8s.io/{version}"
    partial = {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": metadata}
    document = {
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": {"resourceVersion": metadata["resourceVersion"]},
        "columnDefinitions": [
            {"name": name, "type": type_, "format": "", "description": "", "priority": 0} for name, type_ in columns
        ],
        "rows": [{"cells": cells, "object": partial}],
    }
    return orjson.dumps(document)


def definitions(resource: ResourceType) -> list[Object]:
    """The column definitions of a type."""
    if resource.custom is None:
        return [
            {
                "name": name,
                "type": type_,
                "format": "name" if name == "Name" else "",
                "description": "",
                "priority": priority,
            }
            for name, type_, priority in built_in.columns_of(resource)
        ]
    named = {"name": "Name", "type": "string", "format": "name", "description": _NAME, "priority": 0}
    return [named] + [
        {
            "name": column["name"],
            "type": column["type"],
            "format": column.get("format", ""),
            "description": column.get("description")
            or f"Custom resource definition column (in JSONPath format): {column['jsonPath']}",
            "priority": column.get("priority", 0),
        }
        for column in resource.custom.columns
    ]


def _row(resource: ResourceType, item: Item, include: str, version: str) -> Object:
    obj = item.object
    cells, conditions = (custom_cells(resource.custom, obj), []) if resource.custom else built_in.cells(resource, obj)
    row: Object = {"cells": cells}
    if conditions:
        row["conditions"] = conditions
    if include == "Metadata":
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": f"meta.k8s.io/{version}",
            "metadata": obj["metadata"],
        }
    elif include == "Object":
        row["object"] = obj
    else:
        row["object"] = None
    return row


def custom_cells(custom: CustomType, obj: Object) -> list[Any]:
    """The cells of a custom resource: its name, and the values at the paths of the columns."""
    cells: list[Any] = [obj["metadata"].get("name", "")]
    for column in custom.columns:
        found = find(obj, column["jsonPath"])
        cells.append(_cell(found[0], column["type"]) if found else None)
    return cells


def _cell(value: Any, type_: str) -> Any:
    """The cell for a value in a column of a type; None for a value of another type."""
    match type_:
        case "integer":
            return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
        case "number":
            return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            try:
                return age(value) if isinstance(value, str) and value else "<invalid>"
            except ValueError:
                return "<invalid>"
        case "string" if isinstance(value, (dict, list)):
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
        case "string":
            return {True: "true", False: "false"}.get(value, value) if isinstance(value, bool) else str(value)
    return None


def find(obj: Any, path: str) -> list[Any]:
    """The values at the JSONPath of a printer column. Supported are names, indices, `[*]` and simple filters."""
    values = [obj]
    text = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    position = 0
    while position < len(text):
        step = _STEP.match(text, position)
        if step is None or step.end() == position:
            return []
        values = [found for value in values for found in _step(value, step)]
        position = step.end()
    return values


def _step(value: Any, step: re.Match[str]) -> list[Any]:
    name, single, double, index, condition, deep = step.groups()
    key = name if name is not None else single if single is not None else double
    if key is not None:
        key = key.replace("\\.", ".") if name is None else key
        return [value[key]] if isinstance(value, dict) and key in value else []
    if index is not None:
        position = int(index)
        inside = isinstance(value, list) and -len(value) <= position < len(value)
        return [value[position]] if inside else []
    if condition is not None:
        return [item for item in value if _matches_filter(item, condition)] if isinstance(value, list) else []
    if deep:
        return []
    return list(value) if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []


def _matches_filter(item: Any, condition: str) -> bool:
    found = _FILTER.fullmatch(condition.strip())
    if found is None:
        return False
    path, operator, double, single, bare = found.groups()
    wanted = next(text for text in (double, single, bare) if text is not None)
    value = find(item, f".{path}")
    text = str(value[0]).lower() if value and isinstance(value[0], bool) else str(value[0]) if value else ""
    return (text == wanted) is (operator == "==")
