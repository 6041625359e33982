"""Why there is no release to show."""

from collections.abc import Sequence

from altershield.api import labels
from altershield.api.namespace import Namespace
from altershield.views.releases.model import StatusError
from altershield.views.selection import Selection, full_plural
from kube_base.access.client import Client
from kube_base.access.errors import ForbiddenError, NotFoundError
from kube_base.resources import NAMESPACES


async def demand_namespace(client: Client, namespace: str) -> None:
    """StatusError: the namespace does not exist."""
    try:
        await client.get(NAMESPACES, namespace, as_=Namespace)
    except NotFoundError:
        raise StatusError(_missing(namespace)) from None
    except ForbiddenError:
        return


async def why_nothing(client: Client, namespace: str, selections: Sequence[Selection]) -> str:
    """The sentence about a namespace without releases of the selections. An empty namespace means all namespaces."""
    kinds = {adapter for selection in selections for adapter in selection.adapters}
    of = f" of {full_plural(kinds.pop())}" if len(kinds) == 1 else ""
    if not namespace:
        return f"no release{of} found in any namespace"
    try:
        found = await client.get(NAMESPACES, namespace, as_=Namespace)
    except NotFoundError:
        return _missing(namespace)
    except ForbiddenError:
        return (
            f'no release{of} found in namespace "{namespace}"; you may not read the namespace, so it may not exist or '
            "not be governed"
        )
    if not found.governed:
        return (
            f'no release{of} found in namespace "{namespace}", which AlterShield does not govern; to govern it, run '
            f"`kubectl label namespace {namespace} {labels.GOVERNED_SELECTOR}`"
        )
    return f'no release{of} found in namespace "{namespace}": nothing was released since AlterShield governs it'


def _missing(namespace: str) -> str:
    return f'namespace "{namespace}" not found; check the name, or set another namespace with -n'
