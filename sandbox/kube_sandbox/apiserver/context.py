"""The arguments of every handler: the parts of the API server, and the request."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiohttp import web

from kube_sandbox.apiserver.attributes import Attributes, Object
from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.http.local import Request
from kube_sandbox.apiserver.http.requests import MAX_BODY
from kube_sandbox.apiserver.http.responses import Form
from kube_sandbox.apiserver.storage.registry import Registry, ResourceType
from kube_sandbox.apiserver.storage.store import Item, Store, not_found

if TYPE_CHECKING:
    from kube_sandbox.apiserver.admission.webhooks.dispatch import Webhooks
    from kube_sandbox.apiserver.auth.access_reviews import AccessReviews
    from kube_sandbox.apiserver.auth.authentication import Authenticator
    from kube_sandbox.apiserver.auth.authorization import Authorizer
    from kube_sandbox.apiserver.auth.tokens import ServiceAccountTokens
    from kube_sandbox.apiserver.storage.crds import CustomResources


@dataclass(slots=True)
class Api:
    """The parts of one API server."""

    store: Store
    registry: Registry
    authenticator: "Authenticator"
    authorizer: "Authorizer"
    reviews: "AccessReviews"
    webhooks: "Webhooks"
    tokens: "ServiceAccountTokens"
    crds: "CustomResources"
    bookmark_interval: float = 60.0


@dataclass(slots=True)
class Call:
    """One request for a resource."""

    request: Request
    resource: ResourceType
    attributes: Attributes
    form: Form = field(default_factory=Form)
    pretty: bool = False

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query

    @property
    def dry_run(self) -> list[str]:
        return self.request.query.getall("dryRun", [])

    @property
    def content_type(self) -> str:
        return self.request.headers.get("Content-Type", "")

    @property
    def manager(self) -> str:
        """The field manager of a write: `fieldManager` of the query, else the program name in User-Agent."""
        return (
            self.request.query.get("fieldManager") or self.request.headers.get("User-Agent", "").partition("/")[0][:128]
        )

    async def body(self) -> bytes:
        """The request's body. Raises StatusError 413 when it is longer than 3 MiB."""
        try:
            return await self.request.read()
        except web.HTTPRequestEntityTooLarge as error:
            raise StatusError(413, f"Request entity too large: limit is {MAX_BODY}") from error

    def current(self, api: Api) -> Item:
        """The object that the URL names. Raises StatusError 404 when it does not exist."""
        item = api.store.item(self.resource.storage, self.attributes.namespace, self.attributes.name)
        if item is None:
            raise not_found((self.resource.group, self.resource.plural), self.attributes.name)
        return item


Result = tuple[Object | Item, int]
"""The object in the response to a write, and the HTTP status code."""
