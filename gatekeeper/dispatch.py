"""Calls the handlers of a request in their order, and combines their responses into one answer. The labels and
annotations that they want become a JSON patch (RFC 6902)."""

import asyncio
import types
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, cast

from altershield.api.json_patch import Operation, label_path
from gatekeeper.listers import Listers
from gatekeeper.request import Object
from gatekeeper.response import NOTHING, PASSED, Answer, Decision, Reason, Response, Wanted
from gatekeeper.review import WireRequest
from gatekeeper.routes import Route

_Responses = list[tuple[Object, Response]]
"""Each response, with the object that its handler read."""

_LABELS = "/metadata/labels"
_ANNOTATIONS = "/metadata/annotations"
_TEMPLATE_METADATA = "/spec/template/metadata"
_TEMPLATE_LABELS = f"{_TEMPLATE_METADATA}/labels"


def decide(route: Route, wire: WireRequest[Any], listers: Listers) -> Answer:
    """The answer to a request. No handler is called after a denial. The answer has the first reason of a response.
    ReviewError (400): an object cannot be read."""
    requests = route.requests(wire)
    responses: _Responses = []
    for handler in route.handlers[wire.operation] if requests else ():
        request = requests[handler.reads]
        response = cast(Response, handler.function(request, listers))
        if response is not NOTHING:
            responses.append((request.object, response))
            if response.denial is not None:
                break
    return _combined(responses) if responses else PASSED


async def decide_with_io(route: Route, wire: WireRequest[Any], listers: Listers) -> Answer:
    """Like `decide`, for a route with handlers that may do I/O. They share one deadline, because the API server waits
    for one answer. TimeoutError: they take too long."""
    requests = route.requests(wire)
    responses: _Responses = []
    deadline = 0.0
    for handler in route.handlers[wire.operation] if requests else ():
        request = requests[handler.reads]
        response = handler.function(request, listers)
        if not isinstance(response, Response):
            deadline = deadline or asyncio.get_running_loop().time() + route.seconds
            async with asyncio.timeout_at(deadline):
                response = await response
        if response is not NOTHING:
            responses.append((request.object, response))
            if response.denial is not None:
                break
    return _combined(responses) if responses else PASSED


def _combined(responses: _Responses) -> Answer:
    """One answer from all responses. No two handlers of a request set the same label or annotation."""
    patched = responses[0][0]
    labels: Wanted = {}
    annotations: Wanted = {}
    template_labels: Wanted = {}
    audit: Mapping[str, str] = {}
    warnings: tuple[str, ...] = ()
    reason: StrEnum | None = None
    for found, each in responses:
        if each.labels:
            labels = {**labels, **each.labels} if labels else each.labels
        if each.template_labels:
            patched = patched if template_labels else found
            template_labels = {**template_labels, **each.template_labels} if template_labels else each.template_labels
        if each.annotations:
            patched = patched if annotations or template_labels else found
            annotations = {**annotations, **each.annotations} if annotations else each.annotations
        if each.audit:
            audit = {**audit, **each.audit} if audit else each.audit
        warnings += each.warnings
        reason = reason or each.reason
    denial = responses[-1][1].denial
    operations: list[Operation] = []
    if denial is None:
        operations = patch(patched, labels, template_labels, annotations)
        for _, each in responses:
            operations += each.patch
    decision = Decision.DENIED if denial else Decision.PATCHED if operations else Decision.ALLOWED
    return Answer(decision, reason or Reason.PASSED, operations, warnings, audit, denial)


def patch(
    patched: Object, wanted: Wanted, template_wanted: Wanted, annotations: Wanted = types.MappingProxyType({})
) -> list[Operation]:
    """The operations that give `patched` and its pod template the wanted labels and annotations. Those that have the
    wanted value already need no operation."""
    operations = _labels(_LABELS, patched.labels, wanted)
    if annotations:
        operations += _labels(_ANNOTATIONS, patched.annotations, annotations)
    template = _labels(_TEMPLATE_LABELS, patched.template_labels, template_wanted)
    if template and not patched.has_template_metadata:
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
