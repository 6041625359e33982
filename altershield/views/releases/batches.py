"""Reads the ChangePods of a release."""

from altershield import releases
from altershield.api import labels
from altershield.api.change_pod import ChangePod
from altershield.api.names import change_workload_of
from altershield.api.resources import CHANGE_PODS
from altershield.views.releases.model import StoredRelease
from kube_base.access.client import Client
from kube_base.access.errors import ForbiddenError


async def batches_of(client: Client, release: StoredRelease) -> list[ChangePod]:
    """The ChangePods of a release; empty if the user may not read them."""
    metadata = release.metadata
    selector = f"{labels.VERSION}={releases.version_of(release.release)}"
    try:
        listed = await client.list(CHANGE_PODS, metadata.namespace, as_=ChangePod, label_selector=selector)
    except ForbiddenError:
        return []
    return [each for each in listed.items if change_workload_of(each.metadata.name) == metadata.name]
