"""Routes with features that no handler uses yet: several types, I/O, conditions and subresources."""

import asyncio
import json
from typing import Any

import msgspec
import pytest

from altershield.admission.registration import ALWAYS, Condition, Operation, Phase, Registration
from altershield.admission.webhooks import webhooks
from command.install.webhooks import registered as registered_fields
from gatekeeper import dispatch
from gatekeeper.handler import handler
from gatekeeper.listers import Listers
from gatekeeper.request import Object, Request
from gatekeeper.response import NOTHING, Response
from gatekeeper.routes import Route, routes
from kube_base.resources import PODS

from .reviews import StaticListers, encode, review

computed: list[str] = []


class _Node(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class Pod(Object, frozen=True, rename="camel"):
    spec: _Node = _Node()


def _name(request: Request[Any]) -> str:
    computed.append(request.name)
    return request.name


@handler(reads=Object)
def labelled(request: Request[Object], listers: Listers) -> Response:
    return Response(labels={"named": request.once(_name)})


@handler(reads=Pod)
def placed(request: Request[Pod], listers: Listers) -> Response:
    return Response(labels={"node": request.object.spec.node_name, "again": request.once(_name)})


@handler(reads=Object, seconds=0.05)
async def looked_up(request: Request[Object], listers: Listers) -> Response:
    """It does I/O because no cache has the data."""
    await asyncio.sleep(0 if request.dry_run else 60)
    return NOTHING


def registered(monkeypatch: pytest.MonkeyPatch, *names: str, **options: Any) -> tuple[Registration, ...]:
    monkeypatch.setattr("gatekeeper.routes._HANDLERS", "tests.unit.gatekeeper")
    made = []
    for name in names:
        chosen = {"phase": Phase.MUTATE, "resources": (PODS,), "operations": (Operation.CREATE,), **options}
        made.append(Registration(f"test_registry:{name}", **chosen))
    return tuple(made)


def pod(**request: Any) -> bytes:
    body = review({"metadata": {"name": "web-1"}, "spec": {"nodeName": "n1"}}, name="web-1", **request)
    body["request"]["resource"] = {"group": "", "version": "v1", "resource": "pods"}
    body["request"]["object"] |= {"apiVersion": "v1", "kind": "Pod"}
    return encode(body)


def only(found: dict[str, Route]) -> Route:
    (route,) = found.values()
    return route


def test_responses_of_handlers_that_read_different_types_are_combined(monkeypatch: pytest.MonkeyPatch) -> None:
    route = only(routes(registered(monkeypatch, "labelled", "placed")))
    computed.clear()
    answer = dispatch.decide(route, route.decode(pod()), StaticListers())
    assert answer.patch == [
        {"op": "add", "path": "/metadata/labels", "value": {"named": "web-1", "node": "n1", "again": "web-1"}}
    ]
    assert computed == ["web-1"], "computed once for all handlers of a request"


def test_operation_without_handlers_decodes_no_object(monkeypatch: pytest.MonkeyPatch) -> None:
    route = only(routes(registered(monkeypatch, "labelled", "placed")))
    wire = route.decode(pod(operation="CONNECT").replace(b'"spec"', b'"spec": 7, "was"'))
    assert route.requests(wire) == {}


async def test_handler_that_does_io_is_awaited_and_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    registrations = registered(monkeypatch, "looked_up", does_io=True)
    (webhook,) = webhooks(registrations)
    assert registered_fields(webhook)["sideEffects"] == "NoneOnDryRun"
    route = only(routes(registrations))
    answer = await dispatch.decide_with_io(route, route.decode(pod(dryRun=True)), StaticListers())
    assert json.dumps(answer.decision) == '"allowed"'
    with pytest.raises(TimeoutError):
        await dispatch.decide_with_io(route, route.decode(pod()), StaticListers())


def test_registration_that_does_not_match_its_handler_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="does_io"):
        routes(registered(monkeypatch, "looked_up"))
    with pytest.raises(TypeError, match="not a handler"):
        routes(registered(monkeypatch, "computed"))


def test_conditions_of_the_handlers_of_a_webhook_are_combined(monkeypatch: pytest.MonkeyPatch) -> None:
    big = Condition("big", "object.spec.x > 1")
    first = registered(monkeypatch, "labelled", condition=big)
    assert [each.condition for each in webhooks(first)] == [big]
    other = registered(monkeypatch, "placed", operations=(Operation.DELETE, Operation.UPDATE), condition=ALWAYS)
    (both,) = webhooks(first + other)
    assert both.operations == (Operation.CREATE, Operation.UPDATE, Operation.DELETE)
    assert both.condition == Condition(
        "big-or-always",
        "(request.operation in ['CREATE'] && (object.spec.x > 1)) || (request.operation in ['DELETE', 'UPDATE'])",
    )
    (eviction,) = webhooks(registered(monkeypatch, "labelled", subresource="eviction", phase=Phase.VALIDATE))
    assert (eviction.name, eviction.path) == ("vpod-eviction.kb.io", "/validate--v1-pod-eviction")
    assert registered_fields(eviction)["rules"][0]["resources"] == ["pods/eviction"]
