"""Deletion of the webhook configurations (and of certgen's Secret) together with the Helm release.

A webhook configuration that outlives its gatekeepers blocks a cluster. So the release's ClusterRole owns these objects:
every tool that removes the release deletes the ClusterRole, and Kubernetes' garbage collector deletes its dependents.
The chart cannot set the owner, because an owner reference needs the uid, which exists only in the cluster.

If the namespace is deleted instead, the ClusterRole stays. (The namespace cannot own the ClusterRole: Argo CD ignores
objects with an owner.) So certgen deletes the webhook configurations when the namespace is being deleted.

The admission policies get no owner, and stay if the namespace is deleted. They block nothing that needs a gatekeeper,
because API servers evaluate them. And API servers ask no policy about changes of policies: if the account of certgen
could set their owner, it could delete the policies that limit this account.
"""

import asyncio
import functools
import logging
from collections.abc import Iterable

import msgspec

from kube_base.access.backoff import retry_while_unavailable
from kube_base.access.client import Client, PatchType
from kube_base.access.errors import KubernetesError, NotFoundError
from kube_base.access.informer import Informer
from kube_base.meta import ObjectMeta
from kube_base.resources import CLUSTER_ROLES, NAMESPACES, Resource

logger = logging.getLogger(__name__)

FIELD_MANAGER = "altershield-owner"

ObjectKey = tuple[Resource, str, str]
"""Resource, namespace and name of an object."""


class _Object(msgspec.Struct):
    metadata: ObjectMeta


async def set_owner(client: Client, keys: Iterable[ObjectKey], role: str) -> None:
    """Make the ClusterRole `role` the owner of the objects that exist. ConflictError if one of them was deleted and
    created again meanwhile."""
    try:
        owner = (await client.get(CLUSTER_ROLES, role, as_=_Object)).metadata
    except NotFoundError:
        return  # the release is being removed
    reference = {
        "apiVersion": CLUSTER_ROLES.api_version,
        "kind": CLUSTER_ROLES.kind,
        "name": owner.name,
        "uid": owner.uid,
    }
    for resource, namespace, name in keys:
        try:
            found = (await client.get(resource, name, namespace, as_=_Object)).metadata
        except NotFoundError:
            continue
        if any(each.uid == owner.uid for each in found.owner_references):
            continue
        applied = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": name, "uid": found.uid, "ownerReferences": [reference]},
        }
        await client.patch(
            resource, applied, name, namespace, type_=PatchType.APPLY, field_manager=FIELD_MANAGER, force=True
        )


async def delete_with_namespace(client: Client, namespace: str, keys: Iterable[ObjectKey]) -> None:
    """Wait until `namespace` is being deleted, then delete the objects."""
    terminating = asyncio.Event()
    informer = Informer(client, NAMESPACES, _Object, field_selector=f"metadata.name={namespace}", resync=0)
    informer.add_handler(lambda _old, new: terminating.set() if new and new.metadata.deletion_timestamp else None)
    watching = asyncio.create_task(informer.run())
    try:
        await terminating.wait()
    finally:
        watching.cancel()
    for resource, within, name in keys:
        about = {"kind": resource.kind, "object": name, "namespace": namespace}
        try:
            await retry_while_unavailable(functools.partial(client.delete, resource, name, within))
        except NotFoundError:
            continue  # another replica was faster
        except KubernetesError as error:
            logger.error(  # noqa: TRY400  (the traceback does not help)
                "cannot delete the webhook configuration, so delete it: its gatekeepers are deleted with the namespace",
                extra={**about, "cause": str(error)},
            )
        else:
            logger.warning(
                "deleted the webhook configuration: its gatekeepers are deleted together with the namespace",
                extra=about,
            )
