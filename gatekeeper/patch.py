"""JSON patches (RFC 6902) that set labels to the values that handlers want."""

from collections.abc import Mapping

from altershield.api.json_patch import Operation, label_path
from gatekeeper.request import Object

Wanted = Mapping[str, str | None]
"""Label keys and the values that they should have. None: the label should not exist."""

_LABELS = "/metadata/labels"
_TEMPLATE_METADATA = "/spec/template/metadata"
_TEMPLATE_LABELS = f"{_TEMPLATE_METADATA}/labels"


def patch(target: Object, wanted: Wanted, template_wanted: Wanted) -> list[Operation]:
    """The operations that give `target` and its pod template the wanted labels. Labels that have the wanted value
    already need no operation."""
    operations = _labels(_LABELS, target.labels, wanted)
    template = _labels(_TEMPLATE_LABELS, target.template_labels, template_wanted)
    if template and not target.has_template_metadata:
        template = [{"op": "add", "path": _TEMPLATE_METADATA, "value": {"labels": template[0]["value"]}}]
    return operations + template


def _labels(path: str, labels: Mapping[str, str] | None, wanted: Wanted) -> list[Operation]:
    if labels is None:
        missing = {key: value for key, value in wanted.items() if value is not None}
        return [{"op": "add", "path": path, "value": missing}] if missing else []
    operations: list[Operation] = []
    for key, value in wanted.items():
        if labels.get(key) == value:
            continue
        pointer = label_path(key, path)
        if value is None:
            operations.append({"op": "remove", "path": pointer})
        else:
            operations.append({"op": "add" if key not in labels else "replace", "path": pointer, "value": value})
    return operations
