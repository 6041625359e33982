"""The users of the port and their permissions, as the API server knows them: TokenReviews and SubjectAccessReviews.

No answer is cached. So a token that is revoked, or a permission that is taken away, has no effect from the next request
on, and no token stays in memory. The requests to the API server are few at a time and on connections of their own:
unauthenticated callers delay each other, and not the reconciler.
"""

import asyncio
import re
from typing import Any, TypeVar

import msgspec
from multidict import CIMultiDictProxy

from kube_base.access.client import Client
from kube_base.access.errors import KubernetesError
from kube_base.resources import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Resource
from reconciler.endpoints.endpoint_errors import EndpointError
from reconciler.endpoints.places import Places

T = TypeVar("T", bound=msgspec.Struct)

_AT_A_TIME = 4
_WAITING = 32  # reviews that are sent, or wait to be sent
_SECONDS = 5.0
_BEARER = re.compile(r"(?i:bearer) +([!-~]{1,8192})")


class User(msgspec.Struct, frozen=True):
    """A user as a TokenReview describes it."""

    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class _TokenStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: User = User()


class _TokenReview(msgspec.Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(msgspec.Struct, frozen=True):
    allowed: bool = False
    denied: bool = False


class _AccessReview(msgspec.Struct, frozen=True):
    status: _AccessStatus = _AccessStatus()


class Access:
    """Asks the API server. Close it."""

    def __init__(self, client: Client) -> None:
        self._client = client.with_own_connections(max_in_flight=_AT_A_TIME)
        self._places = Places(_WAITING, "the reconciler is busy with other requests; send it again")

    async def close(self) -> None:
        await self._client.close()

    async def user(self, headers: CIMultiDictProxy[str]) -> User:
        """The user whose bearer token the request has. EndpointError (401) if there is no valid token; EndpointError
        (503) if the API server does not answer."""
        values = headers.getall("Authorization", [])
        found = _BEARER.fullmatch(values[0]) if len(values) == 1 else None
        if found is None:
            raise EndpointError("send a Kubernetes token: `Authorization: Bearer TOKEN`", 401)
        review = await self._review(TOKEN_REVIEWS, {"token": found[1]}, _TokenReview)
        if not review.status.authenticated or not review.status.user.username:
            raise EndpointError("the API server does not accept the bearer token", 401)
        return review.status.user

    async def require(
        self, user: User, verb: str, resource: Resource, namespace: str, name: str = "", *, subresource: str = ""
    ) -> None:
        """EndpointError (403) unless the user has this permission: in all namespaces if `namespace` is empty, and on
        all objects if `name` is. EndpointError (503) if the API server does not answer."""
        attributes = {
            "verb": verb,
            "group": resource.group,
            "version": resource.version,
            "resource": resource.plural,
            "subresource": subresource,
            "namespace": namespace,
            "name": name,
        }
        spec = {
            "user": user.username,
            "uid": user.uid,
            "groups": user.groups or [],
            "extra": user.extra or {},
            "resourceAttributes": {key: value for key, value in attributes.items() if value},
        }
        review = await self._review(SUBJECT_ACCESS_REVIEWS, spec, _AccessReview)
        if not review.status.allowed or review.status.denied:
            full_name = f"{resource.plural}/{subresource}" if subresource else resource.plural
            where = f"in the namespace {namespace}" if namespace else "in all namespaces"
            raise EndpointError(f"{user.username} may not {verb} {full_name} {where}", 403)

    async def _review(self, resource: Resource, spec: dict[str, Any], type_: type[T]) -> T:
        review = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
        with self._places:
            try:
                async with asyncio.timeout(_SECONDS):
                    return await self._client.create(resource, review, as_=type_)
            except (KubernetesError, TimeoutError) as error:
                message = f"the API server does not answer the {resource.kind}, so the request is refused"
                raise EndpointError(message, 503) from error
