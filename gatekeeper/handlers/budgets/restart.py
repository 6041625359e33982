"""The restart of containers by a ContainerRecreateRequest of OpenKruise. Kubernetes has no request for a restart."""

import functools
from collections.abc import Awaitable

import msgspec

from altershield.api.budgets import Operation
from altershield.budgets.pods import Pod, short_id
from altershield.budgets.steps import Disruption
from gatekeeper.handler import handler
from gatekeeper.handlers.budgets.answer import HANDLER_SECONDS, answer_by_name, disruption_of, has_budgets
from gatekeeper.handlers.budgets.reasons import OUTCOMES
from gatekeeper.listers import Listers
from gatekeeper.request import Object, Request
from gatekeeper.response import NOTHING, Response


class _Context(msgspec.Struct, frozen=True, rename="camel"):
    container_id: str = msgspec.field(default="", name="containerID")


class _Container(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    status_context: _Context | None = None
    """OpenKruise's webhook sets it."""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    pod_name: str = ""
    containers: tuple[_Container, ...] = ()


class RestartRequest(Object, frozen=True):
    """The fields of a ContainerRecreateRequest that the handler reads."""

    spec: _Spec = _Spec()


@handler(reads=RestartRequest, outcomes=OUTCOMES, seconds=HANDLER_SECONDS)
def judge(request: Request[RestartRequest], listers: Listers) -> Response | Awaitable[Response]:
    """It does I/O because the request does not contain the pod, and because an admitted restart is recorded in its
    budget before the answer."""
    name = request.object.spec.pod_name
    if not name or not has_budgets(request, listers):
        return NOTHING
    return answer_by_name(listers, request.namespace, name, functools.partial(_disruption, request))


def _disruption(request: Request[RestartRequest], pod: Pod) -> Disruption:
    spec = request.object.spec
    ids = tuple(
        (each.name, short_id(each.status_context.container_id))
        for each in spec.containers
        if each.status_context is not None and each.status_context.container_id
    )
    names = tuple(each.name for each in spec.containers)
    name = request.object.metadata.name
    return disruption_of(request, Operation.RESTART, pod, restarts=names, request_name=name, container_ids=ids)
