"""Whether a release in the namespace of the check can be verified at all."""

import msgspec

from altershield.api import labels, names
from altershield.api.namespace import Namespace
from kube_base.access.client import Client
from kube_base.access.errors import ForbiddenError, NotFoundError
from kube_base.errors import UsageError
from kube_base.resources import LEASES, NAMESPACES


class _LeaseSpec(msgspec.Struct):
    holder: str | None = msgspec.field(default=None, name="holderIdentity")


class _Lease(msgspec.Struct):
    spec: _LeaseSpec


async def require_governed(client: Client, namespace: str) -> None:
    """UsageError: the namespace does not exist or is not governed. Nothing happens if this user may not read it.

    The chart may be installed in any namespace, so the Lease shows which one is AlterShield's own. It is read only if
    the namespace has no label: the account of `helm test` may not read it.
    """
    try:
        found = await client.get(NAMESPACES, namespace, as_=Namespace)
    except ForbiddenError:
        return
    except NotFoundError as error:
        raise UsageError(f'there is no namespace "{namespace}"; set a governed namespace with -n') from error
    if namespace in names.never_governed():
        raise UsageError(f'AlterShield never governs namespace "{namespace}"; set another namespace with -n')
    if not found.governed:
        if await _is_own(client, namespace):
            raise UsageError(
                f'AlterShield runs in namespace "{namespace}", and never governs its own namespace; set another '
                "namespace with -n"
            )
        label = labels.GOVERNED_SELECTOR
        raise UsageError(
            f'namespace "{namespace}" is not governed, because it does not have the label {label}; set a governed '
            f"namespace with -n, or run: kubectl label namespace {namespace} {label} --overwrite"
        )


async def _is_own(client: Client, namespace: str) -> bool:
    """Whether a reconciler holds the Lease in the namespace. False if this user may not read it. The Lease stays after
    an uninstallation, without a holder."""
    try:
        lease = await client.get(LEASES, names.LEASE, namespace, as_=_Lease)
    except (ForbiddenError, NotFoundError):
        return False
    return bool(lease.spec.holder)
