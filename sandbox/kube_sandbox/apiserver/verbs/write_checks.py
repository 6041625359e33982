"""Checks of a write against its URL, the stored version and the validation rules of its type."""

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.context import Call
from kube_sandbox.apiserver.errors import StatusError, invalid
from kube_sandbox.apiserver.patch.patches import APPLY, JSON, MERGE, STRATEGIC
from kube_sandbox.apiserver.schema import custom
from kube_sandbox.apiserver.storage import registry
from kube_sandbox.apiserver.storage.registry import ResourceType
from kube_sandbox.apiserver.storage.store import Item, conflict
from kube_sandbox.apiserver.validation import objects

_PATCH_TYPES = (JSON, MERGE, STRATEGIC, APPLY)


def check_patch_type(resource: ResourceType, content_type: str) -> None:
    """Raise StatusError 415 for a patch type that the resource does not support."""
    known = [type_ for type_ in _PATCH_TYPES if resource.custom is None or "strategic" not in type_]
    if content_type not in known and resource.custom is None:
        raise StatusError(415, "415: Unsupported Media Type", details={})
    if content_type not in known:
        raise StatusError(
            415,
            f"the body of the request was in an unknown format - accepted media types include: {', '.join(known)}",
        )


def check_namespace(call: Call, obj: Object) -> None:
    """Set the object's namespace to that of the URL, in place. Raises StatusError 400 when it has another namespace."""
    namespace = call.attributes.namespace if call.resource.namespaced else ""
    metadata = obj.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        raise StatusError(400, "the object's metadata is not an object")
    named = metadata.get("namespace") or ""
    if namespace and named and named != namespace:
        raise StatusError(400, "the namespace of the provided object does not match the namespace sent on the request")
    if namespace:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)


def check_name(call: Call, obj: Object) -> None:
    """Raise StatusError 400 when the object does not have the name in the URL."""
    name, wanted = obj["metadata"].get("name", ""), call.attributes.name
    if not name:
        raise StatusError(
            400, f"the name of the object ({wanted} based on URL) was undeterminable: name must be provided"
        )
    if name != wanted:
        raise StatusError(400, f"the name of the object ({name}) does not match the name on the URL ({wanted})")


def check_version(resource: ResourceType, name: str, metadata: Object, current: Item) -> None:
    """Raise StatusError 409 when the request has another resourceVersion than the stored object, and 422 when it has
    none but the type requires one."""
    version = metadata.get("resourceVersion", "")
    if version in ("", "0"):
        if resource.custom is not None or registry.NEEDS_VERSION in resource.flags:
            raise _version_required(resource, name)
    elif not version.isdigit():
        raise StatusError(500, f'strconv.ParseUint: parsing "{version}": invalid syntax', reason="")
    elif version != str(current.revision):
        raise conflict((resource.group, resource.plural), name)


def _version_required(resource: ResourceType, name: str) -> StatusError:
    message = "Invalid value: 0: must be specified for an update"
    cause = {"reason": "FieldValueInvalid", "message": message, "field": "metadata.resourceVersion"}
    return invalid(resource.group, resource.plural, name, [cause])


def uid_conflict(resource: ResourceType, current: Item, wanted: str) -> StatusError:
    (namespace, name), found = current.key, current.uid
    parts = (resource.group if resource.custom else "", resource.plural, namespace, name)
    key = "/".join(["/registry", *(part for part in parts if part)])
    return conflict(
        (resource.group, resource.plural),
        name,
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition"
        f" failed: UID in precondition: {wanted}, UID in object meta: {found}",
    )


def validate(resource: ResourceType, obj: Object, old: Object | None, subresource: str = "") -> None:
    if resource.custom is None:
        causes = objects.validate(obj, old, subresource)
    else:
        causes = objects.validate_metadata(obj, old)
        causes += custom.validate(obj, old, resource.custom, subresource, causes)
    if causes:
        raise invalid(resource.group, resource.kind, obj["metadata"].get("name", ""), causes)
