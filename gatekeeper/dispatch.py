"""Calls the handlers of a request in their order and combines their responses."""

import asyncio
from typing import Any

from altershield.api.json_patch import Operation
from gatekeeper.handler import Handler
from gatekeeper.listers import Listers
from gatekeeper.patch import patch
from gatekeeper.request import Object, Request
from gatekeeper.response import NOTHING, PASSED, Answer, Decision, Reason, Response
from gatekeeper.review import WireRequest
from gatekeeper.routes import Route

_IO_SECONDS = 1.0  # for one handler that does I/O; API servers wait for two or three seconds

_Responses = list[tuple[Object, Response]]
"""Each response, with the object that its handler read."""


def decide(route: Route, wire: WireRequest[Any], listers: Listers) -> Answer:
    """The answer to a request. No handler is called after a denial. The answer has the first reason of a response.
    ReviewError (400): an object cannot be read."""
    requests = route.requests(wire)
    responses: _Responses = []
    for handler in route.handlers[wire.operation] if requests else ():
        request = requests[handler.reads]
        response = handler.function(request, listers)
        if response is not NOTHING:
            responses.append((request.object, response))
            if response.denial is not None:
                break
    return _combined(responses) if responses else PASSED


async def decide_with_io(route: Route, wire: WireRequest[Any], listers: Listers) -> Answer:
    """Like `decide`, for a route with a handler that does I/O. TimeoutError: a handler takes too long."""
    requests = route.requests(wire)
    responses: _Responses = []
    for handler in route.handlers[wire.operation] if requests else ():
        request = requests[handler.reads]
        response = await _ask(handler, request, listers)
        if response is not NOTHING:
            responses.append((request.object, response))
            if response.denial is not None:
                break
    return _combined(responses) if responses else PASSED


async def _ask(handler: Handler[Any], request: Request[Any], listers: Listers) -> Response:
    found: Any = handler.function(request, listers)
    if handler.does_io:
        async with asyncio.timeout(_IO_SECONDS):
            found = await found
    response: Response = found
    return response


def _combined(responses: _Responses) -> Answer:
    """One answer from all responses. No two handlers of a request set the same label."""
    target, first = responses[0]
    denial = responses[-1][1].denial
    reason = next((each.reason for _, each in responses if each.reason is not None), Reason.PASSED)
    if len(responses) == 1:
        labels, template_labels, warnings, audit = first.labels, first.template_labels, first.warnings, first.audit
    else:
        labels = {key: value for _, each in responses for key, value in each.labels.items()}
        template_labels = {key: value for _, each in responses for key, value in each.template_labels.items()}
        warnings = tuple(line for _, each in responses for line in each.warnings)
        audit = {key: value for _, each in responses for key, value in each.audit.items()}
        target = next((found for found, each in responses if each.template_labels), target)
    operations: list[Operation] = []
    if denial is None:
        operations = patch(target, labels, template_labels)
        for _, each in responses:
            operations += each.patch
    decision = Decision.DENIED if denial else Decision.PATCHED if operations else Decision.ALLOWED
    return Answer(decision, reason, operations, warnings, audit, denial)
