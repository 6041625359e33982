"""The paths for people's tools, which send a Kubernetes token: suspended workloads, and requests for rollbacks."""

import logging
from typing import Annotated

import msgspec
from aiohttp import web

from altershield.api.resources import CHANGE_WORKLOADS
from altershield.texts import one_line
from altershield.workloads import Adapter
from kube_base.access.client import Client
from reconciler.cluster.caches import Caches
from reconciler.cluster.writer import Writer
from reconciler.endpoints.access import Access
from reconciler.endpoints.endpoint_errors import EndpointError
from reconciler.endpoints.intake import MAX_REQUEST, Intake
from reconciler.endpoints.refusals import Refusals
from reconciler.endpoints.responses import RETRIED, envelope, refused
from reconciler.endpoints.rollbacks import Rollbacks
from reconciler.endpoints.suspended import suspended

logger = logging.getLogger(__name__)

_Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z")]
_Namespace = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")]


class _RollbackRequest(msgspec.Struct):
    namespace: _Namespace
    name: _Name
    version: _Name | None = None


class ToolsEndpoint:
    """`client` is not closed."""

    def __init__(self, client: Client, caches: Caches, writer: Writer, intake: Intake, refusals: Refusals) -> None:
        self._client = client
        self._caches = caches
        self._rollbacks = Rollbacks(caches, writer)
        self._intake = intake
        self._refusals = refusals
        self._access: Access | None = None

    def open(self) -> None:
        """Accept requests."""
        self._access = Access(self._client)

    async def close(self) -> None:
        """Close the connections."""
        if self._access is not None:
            await self._access.close()

    async def list_suspended(self, adapter: Adapter, request: web.BaseRequest) -> web.Response:
        """The suspended workloads of a kind, in one namespace or in all."""
        access = self._open_access()
        user = await access.user(request.headers)
        namespaces = request.rel_url.query.getall("namespace", [""])
        if len(namespaces) != 1:
            raise EndpointError("name one namespace, or none for all", 400)
        await access.require(user, "list", adapter.resource, namespaces[0])
        return envelope(200, success=True, domain=suspended(self._caches, adapter, namespaces[0]))

    async def roll_back(self, adapter: Adapter, request: web.BaseRequest) -> web.Response:
        """Request a rollback of a workload."""
        access = self._open_access()
        user = await access.user(request.headers)
        async with self._intake.body(request, MAX_REQUEST) as body:
            wanted = _rollback_request(body)
        await access.require(user, "patch", adapter.resource, wanted.namespace, wanted.name)
        await access.require(user, "patch", CHANGE_WORKLOADS, wanted.namespace, subresource="status")
        requested = await self._rollbacks.request(adapter, wanted.namespace, wanted.name, wanted.version or "")
        logger.info(
            "rollback requested by a user of the callback port",
            extra={
                "user": one_line(user.username, 253),
                "namespace": requested.namespace,
                "workload": requested.name,
                "version": requested.version,
                "to": requested.rollback_to,
            },
        )
        return envelope(200, success=True, domain=requested)

    def refuse(self, error: EndpointError) -> web.Response:
        """The answer to a request that is refused."""
        if error.code in RETRIED:
            self._refusals.note("reviews", error)
        return refused(error)

    def _open_access(self) -> Access:
        if self._access is None:
            raise EndpointError("the port is not open", 503)
        return self._access


def _rollback_request(body: bytes) -> _RollbackRequest:
    try:
        return msgspec.json.decode(body, type=_RollbackRequest)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        cause = one_line(str(error), 256)
        raise EndpointError(f'send {{"namespace":…,"name":…}} and optionally "version": {cause}', 400) from None
