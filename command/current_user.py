"""The user who runs a command."""

from typing import Any

from altershield.api.resources import SELF_SUBJECT_REVIEWS
from altershield.kube.client import Client


async def user(client: Client) -> str:
    """The name of this user, as the API server knows it."""
    review = {"apiVersion": SELF_SUBJECT_REVIEWS.api_version, "kind": SELF_SUBJECT_REVIEWS.kind}
    answer: dict[str, Any] = await client.create(SELF_SUBJECT_REVIEWS, review)
    return str(answer["status"]["userInfo"].get("username") or "")
