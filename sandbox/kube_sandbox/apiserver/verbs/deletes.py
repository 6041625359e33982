"""Delete and deletecollection: immediate deletion, or deletion after a grace period or after the last finalizer.

The rules are those of `k8s.io/apiserver`, `pkg/registry/generic/registry/store.go` and `pkg/registry/rest/delete.go`.
"""

import time
from typing import Any

from kube_sandbox.apiserver.admission import built_in
from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.context import Api, Call
from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.http import requests
from kube_sandbox.apiserver.http.responses import success
from kube_sandbox.apiserver.storage import crds, registry
from kube_sandbox.apiserver.storage.registry import ResourceType
from kube_sandbox.apiserver.storage.selection import Selection
from kube_sandbox.apiserver.storage.store import Item, Key, conflict, details, not_found, sorted_by_key
from kube_sandbox.times import now, rfc3339, unix

_DEFAULT_GRACE = 30


async def delete(api: Api, call: Call) -> tuple[Item | Object, int]:
    """DELETE of one object. Returns the object or a Status, and the HTTP status code."""
    options = requests.delete_options(await call.body(), call.content_type, call.query, call.dry_run)
    item, deleted = await _delete_one(api, call, (call.attributes.namespace, call.attributes.name), options)
    code = 202 if not deleted and options.get("orphanDependents") is False else 200
    resource = call.resource
    if registry.RETURNS_DELETED in resource.flags or not deleted:
        return item, code
    return success(details((resource.group, resource.plural), call.attributes.name, uid=item.uid)), code


async def delete_collection(api: Api, call: Call, selection: Selection) -> list[Item]:
    """DELETE of a collection. Returns the selected objects as they were before the deletion.

    The AdmissionReview of each object has an empty name, like on the real server, because the URL has no name.
    """
    options = requests.delete_options(await call.body(), call.content_type, call.query, call.dry_run)
    chosen = sorted_by_key(
        item for item in api.store.collection(call.resource.storage).items.values() if selection.matches(item.object)
    )
    for item in chosen:
        try:
            await _delete_one(api, call, item.key, dict(options))
        except StatusError as error:
            if error.code != 404:
                raise
    return chosen


async def _delete_one(api: Api, call: Call, key: Key, options: Object) -> tuple[Item, bool]:
    """Admit and delete one object. Returns the object and whether the store no longer contains it."""
    attributes, resource = call.attributes, call.resource
    while True:
        current = api.store.item(resource.storage, *key)
        if current is None:
            raise not_found((resource.group, resource.plural), key[1])
        _check_preconditions(resource, current, options)
        attributes.operation, attributes.options = "DELETE", options
        attributes.dry_run = bool(options.get("dryRun"))
        attributes.obj, attributes.old = None, current.copy()
        built_in.admit(attributes, api.store)
        await api.webhooks.mutate(attributes)
        await api.webhooks.validate(attributes)
        if api.store.item(resource.storage, *current.key) is current:
            return remove(api, resource, current, options)


def remove(api: Api, resource: ResourceType, current: Item, options: Object) -> tuple[Item, bool]:
    """Delete an object without admission. Returns the object and whether the store no longer contains it."""
    obj = current.copy()
    metadata = obj["metadata"]
    if resource.storage == registry.NAMESPACES:
        return _terminate_namespace(api, resource, current, obj, options)
    if resource.storage == registry.CRDS and not metadata.get("deletionTimestamp"):
        crds.begin_deletion(obj)
        dry_run = bool(options.get("dryRun"))
        return (Item(obj, current.revision) if dry_run else api.store.update(resource.storage, current, obj)), False
    if _already_pending(metadata, options):
        return current, False
    graceful = _begin_grace(resource, obj, options)
    finalizers = _finalizers_for_deletion(resource, metadata, options)
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    if finalizers and not graceful:
        _mark_deleting(metadata)
    waits = bool(finalizers) or metadata.get("deletionGracePeriodSeconds", 0) > 0
    dry_run = bool(options.get("dryRun"))
    if not waits:
        if graceful:  # watches report the start of the deletion, even with a grace period of 0 seconds
            current = Item(obj, current.revision) if dry_run else api.store.update(resource.storage, current, obj)
        return (current if dry_run else api.store.delete(resource.storage, current)), True
    if obj == current.object:
        return current, False
    return (Item(obj, current.revision) if dry_run else api.store.update(resource.storage, current, obj)), False


def _already_pending(metadata: Object, options: Object) -> bool:
    """Whether the object has a running grace period that this request does not shorten."""
    pending = metadata.get("deletionGracePeriodSeconds")
    if not metadata.get("deletionTimestamp") or not pending:
        return False
    requested = options.get("gracePeriodSeconds")
    return requested is None or requested >= pending


def _begin_grace(resource: ResourceType, obj: Object, options: Object) -> bool:
    """Set the grace period and the deletion timestamp of a pod, in place. Returns False when this request sets none:
    for all other types, and for a pod that is already being deleted when the request contains no grace period or the
    pod's is 0."""
    if resource.storage != ("", "pods"):
        return False
    metadata = obj["metadata"]
    requested = options.get("gracePeriodSeconds")
    if requested is not None and requested < 0:
        requested = 1
    if metadata.get("deletionTimestamp"):
        pending = metadata.get("deletionGracePeriodSeconds")
        if not pending or requested is None:
            return False
        # The new deletion time is the start of the deletion plus the shorter grace period.
        started = int(unix(metadata["deletionTimestamp"])) - pending
        until = max(started + requested, int(time.time()))
        if until > started + requested and requested:
            requested = 1
        metadata["deletionTimestamp"] = rfc3339(until)
        metadata["deletionGracePeriodSeconds"] = requested
        return True
    grace = obj["spec"].get("terminationGracePeriodSeconds", _DEFAULT_GRACE) if requested is None else requested
    phase = (obj.get("status") or {}).get("phase")
    if not obj["spec"].get("nodeName") or phase in ("Failed", "Succeeded"):
        grace = 0
    metadata["deletionTimestamp"] = rfc3339(time.time() + grace)
    metadata["deletionGracePeriodSeconds"] = grace
    if metadata.get("generation"):
        metadata["generation"] += 1
    return True


def _mark_deleting(metadata: Object) -> None:
    """Mark an object for a deletion that waits only for finalizers, in place."""
    if not metadata.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = now()
        if metadata.get("generation"):
            metadata["generation"] += 1
    metadata["deletionGracePeriodSeconds"] = 0


def _finalizers_for_deletion(resource: ResourceType, metadata: Object, options: Object) -> list[str]:
    """The finalizers that an object has during its deletion. The propagation policy selects at most one of `orphan` and
    `foregroundDeletion`, which the garbage collector handles."""
    present: list[str] = metadata.get("finalizers") or []
    if registry.NO_ORPHANS in resource.flags:
        return present
    others = [finalizer for finalizer in present if finalizer not in ("orphan", "foregroundDeletion")]
    policy, orphan = options.get("propagationPolicy"), options.get("orphanDependents")
    if policy is None and orphan is not None:
        policy = "Orphan" if orphan else "Background"
    if policy == "Orphan" or (policy is None and "orphan" in present):
        return [*others, "orphan"]
    if policy == "Foreground" or (policy is None and "foregroundDeletion" in present):
        return [*others, "foregroundDeletion"]
    return others


def _terminate_namespace(
    api: Api, resource: ResourceType, current: Item, obj: Object, options: Object
) -> tuple[Item, bool]:
    """Start the deletion of a namespace, or complete it. It completes after the namespace controller has deleted the
    content and removed the finalizers."""
    metadata, dry_run = obj["metadata"], bool(options.get("dryRun"))
    if not metadata.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = now()
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
        if finalizers := _finalizers_for_deletion(resource, metadata, options):
            metadata["finalizers"] = finalizers
        item = Item(obj, current.revision) if dry_run else api.store.update(resource.storage, current, obj)
        return item, False
    if (obj.get("spec") or {}).get("finalizers") or metadata.get("finalizers"):
        return current, False
    return (current if dry_run else api.store.delete(resource.storage, current)), True


def _check_preconditions(resource: ResourceType, current: Item, options: Object) -> None:
    preconditions: dict[str, Any] = options.get("preconditions") or {}
    metadata = current.object["metadata"]
    storage = (resource.group, resource.kind)
    wanted, found = preconditions.get("uid"), metadata["uid"]
    if wanted is not None and wanted != found:
        raise conflict(
            storage,
            metadata["name"],
            f"the UID in the precondition ({wanted}) does not match the UID in record ({found}). The object might have"
            " been deleted and then recreated",
        )
    wanted, found = preconditions.get("resourceVersion"), metadata["resourceVersion"]
    if wanted is not None and wanted != found:
        raise conflict(
            storage,
            metadata["name"],
            f"the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record"
            f" ({found}). The object might have been modified",
        )
