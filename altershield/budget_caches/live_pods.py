"""Live reads of pods, because a cache may be older than the API server."""

from altershield.budgets import pods
from altershield.budgets.pods import Pod
from kube_base.access.client import Client
from kube_base.access.errors import NotFoundError
from kube_base.resources import PODS


async def read_pod(client: Client, namespace: str, name: str) -> Pod | None:
    """The pod, or None if it does not exist. KubernetesError: it cannot be read."""
    try:
        return pods.read(await client.request("GET", PODS.path(namespace, name)))
    except NotFoundError:
        return None
