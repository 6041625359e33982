"""The user who runs a command."""

from typing import Any

from kube_base.access.client import Client
from kube_base.resources import SELF_SUBJECT_REVIEWS


async def user(client: Client) -> str:
    """The name of this user, as the API server knows it."""
    review = {"apiVersion": SELF_SUBJECT_REVIEWS.api_version, "kind": SELF_SUBJECT_REVIEWS.kind}
    answer: dict[str, Any] = await client.create(SELF_SUBJECT_REVIEWS, review)
    return str(answer["status"]["userInfo"].get("username") or "")
