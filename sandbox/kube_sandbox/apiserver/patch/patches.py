"""Applies a JSON patch, merge patch or strategic merge patch, with the errors of the real server.

Server-side apply (`application/apply-patch+yaml`) is in `apply`. The rules are those of k8s.io/apiserver,
pkg/endpoints/handlers/patch.go.
"""

from typing import Any

import orjson

from kube_sandbox.apiserver import gotext, syntax
from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.errors import StatusError, invalid
from kube_sandbox.apiserver.patch import json_patch, strategic
from kube_sandbox.apiserver.schema import fields, types

JSON, MERGE = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"

_MAX_OPERATIONS = 10_000


def apply(
    content_type: str,
    current: Object,
    patch: bytes,
    *,
    api_version: str,
    kind: str,
    field_validation: str,
    crd_schema: Object | None,
) -> tuple[Object, list[str]]:
    """The patched object and, with field validation `Warn`, the warnings for unknown and duplicate fields.

    An object of a built-in kind is decoded (see `fields.check`). A custom resource is not; the caller checks it against
    its schema. Raises StatusError 415 for an unsupported content type, 400 for a malformed patch, 413 for too many
    operations, 422 for a patch that cannot be applied or whose result is not a valid object of the kind.
    """
    supported = [JSON, MERGE, APPLY] if crd_schema is not None else [JSON, MERGE, STRATEGIC, APPLY]
    if content_type not in supported:
        raise StatusError(
            415,
            "the body of the request was in an unknown format - accepted media types include: " + ", ".join(supported),
        )
    prefix = "" if content_type == STRATEGIC else "error decoding patch: "
    document, duplicates = _parse(patch, prefix, expect=list if content_type == JSON else dict)
    if content_type == JSON:
        patched = _json_patch(current, document)
        duplicates = [f"json patch {message}" for message in duplicates]
    elif document is None:
        if content_type == MERGE:
            raise StatusError(400, "Invalid JSON Patch")
        patched = current
    elif content_type == MERGE:
        patched = _merge_patch(current, document)
    else:
        patched = strategic.merge(current, document, types.model_of(api_version, kind) or "")
        # The real server takes the kind from the URL here.
        patched |= {"apiVersion": api_version, "kind": kind}
    in_order = {name: patched[name] for name in sorted(patched)}
    shown = gotext.value_text(document or {}) if content_type == STRATEGIC else orjson.dumps(in_order).decode()
    messages = duplicates
    if crd_schema is None:
        try:
            patched, unknown = fields.decode(
                patched, api_version=api_version, kind=kind, unstructured=content_type == STRATEGIC
            )
        except ValueError as error:
            raise rejected(shown, str(error)) from None
        messages = [*duplicates, *unknown]
    if messages and field_validation == "Strict":
        raise rejected(shown, f"strict decoding error: {', '.join(messages)}")
    return patched, messages if field_validation == "Warn" else []


def rejected(shown: str, why: str) -> StatusError:
    """422: the result of the patch is not a valid object. `shown` is the result; for a strategic merge patch it is the
    patch."""
    message = f"Invalid value: {gotext.quoted(shown)}: {why}"
    return invalid("", "", "", [{"reason": "FieldValueInvalid", "message": message, "field": "patch"}])


def _parse(patch: bytes, prefix: str, *, expect: type) -> tuple[Any, list[str]]:
    try:
        document, duplicates = fields.parse(patch)
    except (ValueError, RecursionError):
        raise StatusError(400, f"{prefix}{syntax.json_error(patch.decode(errors='replace'))}") from None
    go_type = "map[string]interface {}" if expect is dict else "[]handlers.jsonPatchOp"
    wrong = None if document is None or isinstance(document, expect) else document
    if expect is list and isinstance(document, list):
        wrong = next((operation for operation in document if not isinstance(operation, dict)), None)
        go_type = "handlers.jsonPatchOp"
    if wrong is not None:
        raise StatusError(
            400, f"{prefix}json: cannot unmarshal {gotext.json_name(wrong)} into Go value of type {go_type}"
        )
    return document, duplicates


def _json_patch(current: Object, operations: list[Object]) -> Object:
    if len(operations or []) > _MAX_OPERATIONS:
        raise StatusError(
            413,
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{_MAX_OPERATIONS}, got {len(operations)}",
        )
    try:
        patched = json_patch.apply(current, operations or [])
    except json_patch.PatchError:
        raise _does_not_apply() from None
    if not isinstance(patched, dict):
        raise _does_not_apply()
    return patched


def _does_not_apply() -> StatusError:
    return StatusError(422, "the server rejected our request due to an error in our request", details={})


def _merge_patch(current: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(current) if isinstance(current, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merge_patch(result.get(name), value)
    return result
