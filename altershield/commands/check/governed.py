"""Whether a release in the namespace of the check can be verified at all."""

from altershield.api import labels, names
from altershield.api.namespace import Namespace
from altershield.api.resources import NAMESPACES
from altershield.errors import UsageError
from altershield.kube.client import Client
from altershield.kube.errors import ForbiddenError, NotFoundError


async def require_governed(client: Client, namespace: str) -> None:
    """UsageError: the namespace does not exist or is not governed. Nothing happens if this user may not read it."""
    try:
        found = await client.get(NAMESPACES, namespace, as_=Namespace)
    except ForbiddenError:
        return
    except NotFoundError as error:
        raise UsageError(f'there is no namespace "{namespace}"; set a governed namespace with -n') from error
    if namespace in names.never_governed():
        raise UsageError(f'AlterShield never governs namespace "{namespace}"; set another namespace with -n')
    if not found.governed:
        label = labels.GOVERNED_SELECTOR
        raise UsageError(
            f'namespace "{namespace}" is not governed, because it does not have the label {label}; set a governed '
            f"namespace with -n, or run: kubectl label namespace {namespace} {label} --overwrite"
        )
