"""What ends with its release: the webhook configurations (and our Secret) are owned by the release's ClusterRole.

A webhook configuration that outlives its gatekeepers blocks a cluster. Whoever takes the release away, by whatever
tool and in whatever order, takes the ClusterRole away, and Kubernetes' garbage collector does the rest. No chart can
say so, since an owner is named by the uid that it only has in the cluster.

Who deletes the namespace instead leaves the ClusterRole. (The namespace cannot own that: Argo CD leaves alone what has
an owner.) Then the configurations are deleted while there still is somebody to do it.
"""

import asyncio
import functools
import logging
from collections.abc import Iterable

import msgspec

from altershield.api.meta import ObjectMeta
from altershield.api.resources import CLUSTER_ROLES, NAMESPACES, Resource
from altershield.kube.backoff import retry_while_unavailable
from altershield.kube.client import Client, PatchType
from altershield.kube.errors import KubernetesError, NotFoundError
from altershield.kube.informer import Informer

logger = logging.getLogger(__name__)

FIELD_MANAGER = "altershield-owner"

Place = tuple[Resource, str, str]
"""Resource, namespace and name of an object."""


class _Object(msgspec.Struct):
    metadata: ObjectMeta


async def adopt(client: Client, places: Iterable[Place], role: str) -> None:
    """Make the ClusterRole `role` the owner of those objects that exist. ConflictError where one of them was made anew
    in the meantime."""
    try:
        owner = (await client.get(CLUSTER_ROLES, role, as_=_Object)).metadata
    except NotFoundError:
        return  # the release is being taken away
    reference = {
        "apiVersion": CLUSTER_ROLES.api_version,
        "kind": CLUSTER_ROLES.kind,
        "name": owner.name,
        "uid": owner.uid,
    }
    for resource, namespace, name in places:
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


async def end_with(client: Client, namespace: str, places: Iterable[Place]) -> None:
    """Wait until `namespace` is being deleted, then delete those objects."""
    ending = asyncio.Event()
    informer = Informer(client, NAMESPACES, _Object, field_selector=f"metadata.name={namespace}", resync=0)
    informer.add_handler(lambda _old, new: ending.set() if new and new.metadata.deletion_timestamp else None)
    following = asyncio.create_task(informer.run())
    try:
        await ending.wait()
    finally:
        following.cancel()
    for resource, within, name in places:
        about = {"kind": resource.kind, "object": name, "namespace": namespace}
        try:
            await retry_while_unavailable(functools.partial(client.delete, resource, name, within))
        except NotFoundError:
            continue  # another replica was faster
        except KubernetesError as error:
            logger.error(  # noqa: TRY400  (the sentence is enough)
                "cannot delete what would ask gatekeepers that go with their namespace, delete it by hand",
                extra={**about, "cause": str(error)},
            )
        else:
            logger.warning("deleted what would ask gatekeepers that go with their namespace", extra=about)
