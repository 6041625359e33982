"""The paths of the webhooks and the handlers of each path, from the registry."""

import importlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from altershield.admission.registration import Operation, Registration
from altershield.admission.registry import REGISTRY
from altershield.admission.webhooks import Webhook, webhooks
from gatekeeper.errors import ReviewError
from gatekeeper.handler import Handler
from gatekeeper.request import Object, Request, is_dry_run
from gatekeeper.response import Outcome
from gatekeeper.review import WireRequest, reader
from kube_base.resources import Resource

_HANDLERS = "gatekeeper.handlers"


@dataclass(frozen=True, slots=True)
class Route:
    """One webhook and its handlers by operation. `decode` decodes the body of a review."""

    webhook: Webhook
    handlers: Mapping[Operation, tuple[Handler[Any], ...]]
    outcomes: tuple[Outcome, ...]
    reads: type[Any]
    """The type of the objects in the decoded review; `msgspec.Raw` if the handlers read different types."""
    decode: Callable[[bytes], WireRequest[Any]]
    seconds: float
    """The time for the I/O of the handlers of one request: that of the handler with the longest."""

    def requests(self, wire: WireRequest[Any]) -> dict[type[Object], Request[Any]]:
        """One request for each type that the handlers of the operation read. Empty: there is no handler.
        ReviewError (400): the webhook is not for this resource or object."""
        webhook = self.webhook
        resource, named = webhook.resource, wire.resource
        if named is not None and (named.resource, named.group, named.version) != (
            resource.plural,
            resource.group,
            resource.version,
        ):
            raise ReviewError(
                f"the request is about {named.resource[:64]} of {named.group[:64]}/{named.version[:64]}, but this path "
                f"reviews only {resource.plural} of {resource.api_version}; "
                "correct the rules of the webhook configuration"
            )
        handlers = self.handlers.get(wire.operation, ()) if wire.sub_resource == webhook.subresource else ()
        memo: dict[Callable[..., Any], Any] = {}
        if self.reads is not msgspec.Raw:
            return {self.reads: _request(webhook, wire, wire.object, wire.old_object, memo)} if handlers else {}
        return {
            type_: _request(webhook, wire, _decoded(wire.object, type_), _decoded(wire.old_object, type_), memo)
            for type_ in {each.reads for each in handlers}
        }


def routes(registry: Iterable[Registration] = REGISTRY) -> dict[str, Route]:
    """The routes of a registry, by path. TypeError or ImportError: a registration does not match its handler."""
    registrations = tuple(registry)
    handlers = {each.handler: _load(each) for each in registrations}
    found = {}
    for webhook in webhooks(registrations):
        own = [
            (each, handlers[each.handler])
            for each in registrations
            if each.phase == webhook.phase and webhook.resource in each.resources
            if each.subresource == webhook.subresource
        ]
        types = {handler.reads for _, handler in own}
        type_: type[Any] = types.pop() if len(types) == 1 else msgspec.Raw
        by_operation = {
            operation: tuple(handler for each, handler in own if operation in each.operations)
            for operation in webhook.operations
        }
        outcomes = tuple(dict.fromkeys(outcome for _, handler in own for outcome in handler.outcomes))
        seconds = max(handler.seconds for _, handler in own)
        found[webhook.path] = Route(webhook, by_operation, outcomes, type_, reader(type_), seconds)
    return found


def _load(registration: Registration) -> Handler[Any]:
    module, _, name = registration.handler.partition(":")
    handler = getattr(importlib.import_module(f"{_HANDLERS}.{module}"), name, None)
    if not isinstance(handler, Handler):
        raise TypeError(f"the registry names {registration.handler}, which is not a handler")
    if handler.does_io != registration.does_io:
        raise TypeError(
            f"{registration.handler}: does_io must be True for a handler with seconds, and False for any other"
        )
    return handler


def _decoded(data: Any, type_: type[Object]) -> Object | None:
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=type_ | None)
    except (ValueError, RecursionError) as error:
        raise ReviewError(f"an object in the request cannot be read: {error}") from error


def _request(
    webhook: Webhook, wire: WireRequest[Any], new: Object | None, old: Object | None, memo: dict[Any, Any]
) -> Request[Any]:
    operation, resource = wire.operation, webhook.resource
    if operation == Operation.DELETE:
        found, before = _checked(old, "oldObject", webhook), None
    else:
        found = _checked(new, "object", webhook)
        before = _checked(old, "oldObject", webhook) if operation == Operation.UPDATE else None
    return Request(
        resource,
        wire.sub_resource,
        operation,
        wire.name or found.metadata.name,
        wire.namespace,
        wire.user_info.username,
        wire.user_info.groups or (),
        is_dry_run(wire.dry_run, found),
        wire.options,
        found,
        before,
        time.time(),
        memo,
    )


def _checked(found: Object | None, where: str, webhook: Webhook) -> Object:
    """The object at `request.{where}`. ReviewError: it is missing or has another kind than the webhook. The object of a
    subresource may have another kind."""
    resource: Resource = webhook.resource
    if found is None:
        raise ReviewError(f"request.{where} is missing or null")
    if not webhook.subresource and (found.kind != resource.kind or found.api_version != resource.api_version):
        raise ReviewError(
            f"request.{where} is a {found.api_version[:64]} {found.kind[:64]}, "
            f"not a {resource.kind} of {resource.api_version}"
        )
    problem = found.problem()
    if problem:
        raise ReviewError(f"request.{where}{problem}")
    return found
