"""What this user may do, as the API server answers to SelfSubjectAccessReviews."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kube_base.access.client import Client
from kube_base.access.errors import ApiError
from kube_base.resources import SELF_SUBJECT_ACCESS_REVIEWS, Resource


class Access(NamedTuple):
    """A request to the API server."""

    verb: str
    resource: Resource
    namespace: str
    name: str = ""
    """The name of the object; empty: any."""
    subresource: str = ""


async def allowed(client: Client, wanted: Iterable[Access]) -> Mapping[Access, bool]:
    """Whether this user may make these requests. Each is asked once, all at the same time. One that the API server does
    not answer is missing."""
    asked = list(dict.fromkeys(wanted))
    answers = await asyncio.gather(*(_ask(client, each) for each in asked))
    return {each: answer for each, answer in zip(asked, answers, strict=True) if answer is not None}


async def _ask(client: Client, wanted: Access) -> bool | None:
    attributes = {
        "verb": wanted.verb,
        "group": wanted.resource.group,
        "version": wanted.resource.version,
        "resource": wanted.resource.plural,
        "subresource": wanted.subresource,
        "namespace": wanted.namespace,
        "name": wanted.name,
    }
    review = {
        "apiVersion": SELF_SUBJECT_ACCESS_REVIEWS.api_version,
        "kind": SELF_SUBJECT_ACCESS_REVIEWS.kind,
        "spec": {"resourceAttributes": attributes},
    }
    try:
        answer: dict[str, Any] = await client.create(SELF_SUBJECT_ACCESS_REVIEWS, review)
    except ApiError:
        return None
    return answer["status"].get("allowed") is True
