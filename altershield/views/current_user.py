"""The user who runs a command."""

from typing import Any

from kube_base.access.client import Client
from kube_base.resources import SELF_SUBJECT_REVIEWS


async def user(client: Client) -> str:
    """The name of this user, as the API server knows it."""
    return str((await user_info(client)).get("username") or "")


async def user_info(client: Client) -> dict[str, Any]:
    """The `UserInfo` of this user: the name, the groups and more."""
    review = {"apiVersion": SELF_SUBJECT_REVIEWS.api_version, "kind": SELF_SUBJECT_REVIEWS.kind}
    answer: dict[str, Any] = await client.create(SELF_SUBJECT_REVIEWS, review)
    info: dict[str, Any] = answer["status"]["userInfo"]
    return info
