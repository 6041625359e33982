"""The end of `altershield dev` and `demo`: the objects that they installed are deleted, except for those with data."""

import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from typing import Any

from altershield.api.names import LEASE, SYSTEM_NAMESPACE
from command.let_go import end_directly
from command.uninstall import LeftOverError
from kube_base.access.client import Client
from kube_base.access.errors import ForbiddenError, KubernetesError, NotFoundError
from kube_base.errors import ReportedError
from kube_base.resources import LEASES, Resource

Installed = tuple[Resource, dict[str, Any]]

_LEASE: Installed = LEASES, {"metadata": {"name": LEASE, "namespace": SYSTEM_NAMESPACE}}


@contextlib.asynccontextmanager
async def removed(admin: Client, objects: Iterable[Installed]) -> AsyncIterator[None]:
    """Delete the objects and the Lease at the end of the block, and say what was deleted and what was kept. The last
    object is deleted first.

    LeftOverError: objects are left, because the API server does not answer or refuses, or because a second signal
    stopped the deletion. If the block ends with a LeftOverError, the API server does not answer, and nothing is tried.
    A user who may not install objects may not delete them either, which is no second error.
    """
    failure: ReportedError | None = None
    try:
        yield
    except ReportedError as error:
        failure = error
        raise
    finally:
        if not isinstance(failure, LeftOverError):
            deleted = await _delete(admin, [*objects, _LEASE], failure)
            await _end_holds(admin)
            print(_summary(deleted), file=sys.stderr, flush=True)


async def _delete(admin: Client, objects: list[Installed], failure: ReportedError | None) -> Counter[str]:
    """Delete the objects. Returns how many were deleted, by kind."""
    deleted: Counter[str] = Counter()
    try:
        for resource, obj in reversed(objects):
            with contextlib.suppress(NotFoundError):
                await admin.delete(resource, obj["metadata"]["name"], obj["metadata"].get("namespace", ""))
                deleted[resource.kind] += 1
    except (KubernetesError, asyncio.CancelledError) as error:
        if failure is not None and isinstance(error, ForbiddenError):
            return deleted
        why = str(error) or "the command was stopped before they were deleted"
        raise LeftOverError(
            f"{f'{failure}; ' if failure else ''}objects of AlterShield are left in the cluster: {why}; the webhooks "
            "are deleted; to delete the other objects, run: altershield uninstall"
        ) from error
    return deleted


async def _end_holds(admin: Client) -> None:
    """Give the workloads that are held in steps their own fields back: neither a webhook nor a reconciler is left."""
    try:
        await end_directly(admin)
    except (KubernetesError, asyncio.CancelledError) as error:
        why = str(error) or "the command was stopped before"
        raise LeftOverError(
            f"workloads may still be held in steps: {why}; to end the holds, run: altershield uninstall --only-holds"
        ) from error


def _summary(deleted: Counter[str]) -> str:
    found = ", ".join(f"{count} {kind}" for kind, count in deleted.items())
    return (
        f"Deleted the webhooks{f' and {found}' if found else ''}.\n"
        f"Kept the CustomResourceDefinitions with all their objects, the history of workloads, the namespace "
        f"{SYSTEM_NAMESPACE} with the settings, and the labels of your namespaces and workloads.\n"
        "To delete the CustomResourceDefinitions with their objects, and the history: altershield uninstall --crds\n"
        "To install AlterShield with Helm and keep them: helm install --take-ownership …"
    )
