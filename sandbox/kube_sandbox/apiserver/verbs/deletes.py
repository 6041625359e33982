"""Delete and deletecollection: immediate deletion, or deletion after a grace period or after the last finalizer.

The rules are those of `k8s.io/apiserver`, `pkg/registry/generic/registry/store.go` and `pkg/registry/rest/delete.go`.
"""

import enum
import time
from typing import Any

from kube_base.times import now, rfc3339, unix
from kube_sandbox.apiserver.admission import built_in
from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.context import Api, Call
from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.http import requests
from kube_sandbox.apiserver.http.responses import success
from kube_sandbox.apiserver.http.selection import Selection
from kube_sandbox.apiserver.storage import crds, registry
from kube_sandbox.apiserver.storage.registry import ResourceType
from kube_sandbox.apiserver.storage.store import Item, Key, conflict, details, not_found, sorted_by_key

_PODS = ("", "pods")
_DEFAULT_GRACE = 30


async def delete(api: Api, call: Call) -> tuple[Item | Object, int]:
    """DELETE of one object. Returns the object or a Status, and the HTTP status code."""
    options = requests.delete_options(await call.body(), call.content_type, call.query, call.dry_run)
    key = (call.attributes.namespace, call.attributes.name)
    item, deleted = await _delete_one(api, call, key, options, options)
    code = 202 if not deleted and options.get("orphanDependents") is False else 200
    resource = call.resource
    if registry.RETURNS_DELETED in resource.flags or not deleted:
        return item, code
    return success(details((resource.group, resource.plural), call.attributes.name, uid=item.uid)), code


async def delete_collection(api: Api, call: Call, selection: Selection) -> list[Item]:
    """DELETE of a collection. Returns the selected objects as they were before the deletion.

    The AdmissionReview of each object has an empty name, like on the real server, because the URL has no name. The
    first refusal ends the deletion; the objects before it are deleted.
    """
    options = requests.delete_options(await call.body(), call.content_type, call.query, call.dry_run)
    chosen = sorted_by_key(
        item for item in api.store.collection(call.resource.storage).items.values() if selection.matches(item.object)
    )
    for item in chosen:
        try:
            await _delete_one(api, call, item.key, dict(options), options)
        except StatusError as error:
            if error.code != 404:
                raise
    return chosen


async def _delete_one(api: Api, call: Call, key: Key, options: Object, shown: Object) -> tuple[Item, bool]:
    """Admit and delete one object. Returns the object and whether the store no longer contains it.

    `shown` are the options in the AdmissionReviews. A deletion in two writes is reviewed before each write. The second
    review shows an object with a deletion timestamp. A deletion that changes nothing, because the object is
    already being deleted, is not reviewed.
    """
    resource = call.resource
    current = _current(api, resource, key)
    check_preconditions(resource, current, options)
    if _is_pending(resource, current.object, options):
        return current, False
    _complete_options(resource, current.object, options)
    current = await _admit(api, call, key, options, shown)
    item, state = _begin(api, resource, current, options)
    if state is _State.WAITS:
        return item, False
    if state is _State.MARKED and not options.get("dryRun"):
        if "resourceVersion" in (preconditions := options.get("preconditions") or {}):
            version = item.object["metadata"]["resourceVersion"]
            options = {**options, "preconditions": {**preconditions, "resourceVersion": version}}
        try:
            item = await _admit(api, call, key, options, shown)
        except StatusError as error:
            if error.code != 404:
                raise
            return item, True  # another request was faster
    return _finish(api, resource, item, options), True


async def _admit(api: Api, call: Call, key: Key, options: Object, shown: Object) -> Item:
    """Call the admission plugins and webhooks. If the object changes meanwhile, call them again with the changed
    object. Returns the object that they reviewed last."""
    attributes, resource = call.attributes, call.resource
    while True:
        current = _current(api, resource, key)
        check_preconditions(resource, current, options)
        attributes.operation, attributes.options = "DELETE", shown
        attributes.dry_run = bool(options.get("dryRun"))
        attributes.obj, attributes.old = None, current.copy()
        built_in.admit(attributes, api.store)
        await api.webhooks.mutate(attributes)
        await api.webhooks.validate(attributes)
        if api.store.item(resource.storage, *key) is current:
            return current


def _current(api: Api, resource: ResourceType, key: Key) -> Item:
    current = api.store.item(resource.storage, *key)
    if current is None:
        raise not_found((resource.group, resource.plural), key[1])
    return current


def remove(api: Api, resource: ResourceType, current: Item, options: Object) -> tuple[Item, bool]:
    """Delete an object without admission. Returns the object and whether the store no longer contains it."""
    item, state = _begin(api, resource, current, options)
    if state is _State.WAITS:
        return item, False
    return _finish(api, resource, item, options), True


class _State(enum.Enum):
    """The state of a deletion after its first step."""

    WAITS = enum.auto()
    """The grace period, a finalizer or a controller completes the deletion."""
    MARKED = enum.auto()
    """The real server changes the object first. The deletion is a second write, which is reviewed again."""
    FREE = enum.auto()
    """The deletion is the only write."""


def _begin(api: Api, resource: ResourceType, current: Item, options: Object) -> tuple[Item, _State]:
    """The first step of a deletion: set the deletion timestamp, the grace period and the finalizers of the object."""
    obj, dry_run = current.copy(), bool(options.get("dryRun"))
    metadata = obj["metadata"]

    def stored() -> Item:
        return Item(obj, current.revision) if dry_run else api.store.update(resource.storage, current, obj)

    if _is_pending(resource, obj, options):
        return current, _State.WAITS
    if resource.storage in (registry.NAMESPACES, registry.CRDS) and not metadata.get("deletionTimestamp"):
        if resource.storage == registry.CRDS:
            crds.begin_deletion(obj)
        else:
            _terminate_namespace(resource, obj, options)
        return stored(), _State.WAITS
    had_finalizers = bool(metadata.get("finalizers"))
    graceful = _begin_grace(resource, obj, options)
    finalizers = _finalizers_for_deletion(resource, metadata, options)
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    if finalizers and not graceful:
        _mark_deleting(metadata)
    if finalizers or metadata.get("deletionGracePeriodSeconds", 0) > 0:
        return current if obj == current.object else stored(), _State.WAITS
    if graceful:  # watches report the start of the deletion, even with a grace period of 0 seconds
        return stored(), _State.MARKED
    return current, _State.MARKED if had_finalizers else _State.FREE


def _finish(api: Api, resource: ResourceType, current: Item, options: Object) -> Item:
    return current if options.get("dryRun") else api.store.delete(resource.storage, current)


def _is_pending(resource: ResourceType, obj: Object, options: Object) -> bool:
    """Whether the object is already being deleted in a way that this request does not change: its grace period runs
    and the request does not shorten it, or the namespace controller deletes its content."""
    metadata = obj["metadata"]
    if not metadata.get("deletionTimestamp"):
        return False
    if resource.storage == registry.NAMESPACES:
        return bool((obj.get("spec") or {}).get("finalizers"))
    pending = metadata.get("deletionGracePeriodSeconds")
    if not pending:
        return False
    requested = options.get("gracePeriodSeconds")
    return requested is None or requested >= pending


def _complete_options(resource: ResourceType, obj: Object, options: Object) -> None:
    """Set the options that the server derives from the object, in place: the grace period of a pod, and the uid of a
    namespace or CRD. The AdmissionReviews of a DELETE of one object contain them."""
    if resource.storage in (registry.NAMESPACES, registry.CRDS):
        options["preconditions"] = {"uid": obj["metadata"]["uid"]} | (options.get("preconditions") or {})
    elif resource.storage == _PODS and not obj["metadata"].get("deletionTimestamp"):
        options["gracePeriodSeconds"] = _grace(obj, options)


def _grace(pod: Object, options: Object) -> int:
    """The grace period of a pod: that of the request, else the pod's own. It is 0 for a pod that does not run."""
    requested = options.get("gracePeriodSeconds")
    grace: int = pod["spec"].get("terminationGracePeriodSeconds", _DEFAULT_GRACE) if requested is None else requested
    phase = (pod.get("status") or {}).get("phase")
    if not pod["spec"].get("nodeName") or phase in ("Failed", "Succeeded"):
        return 0
    return 1 if grace < 0 else grace


def _begin_grace(resource: ResourceType, obj: Object, options: Object) -> bool:
    """Set the grace period and the deletion timestamp of a pod, in place. Returns whether this request sets them.

    It sets none for other types. It sets none for a pod that is already being deleted, if the request contains no
    grace period or the grace period of the pod is 0."""
    if resource.storage != _PODS:
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
    grace = _grace(obj, options)
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


def _terminate_namespace(resource: ResourceType, namespace: Object, options: Object) -> None:
    """Start the deletion of a namespace, in place. It ends when the namespace controller has deleted the content and
    removed its finalizer."""
    metadata = namespace["metadata"]
    metadata["deletionTimestamp"] = now()
    namespace["status"] = {**(namespace.get("status") or {}), "phase": "Terminating"}
    if finalizers := _finalizers_for_deletion(resource, metadata, options):
        metadata["finalizers"] = finalizers


def check_preconditions(resource: ResourceType, current: Item, options: Object) -> None:
    """Raise StatusError 409 unless the object has the uid and the resourceVersion that the options require."""
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
