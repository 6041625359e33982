"""Create, update and patch: the steps of a write from the request body to the store.

The order is that of the real server (`k8s.io/apiserver`, `pkg/endpoints/handlers` and `pkg/registry/generic/registry`):
decode, field ownership, mutating admission, fields that the server sets, validation, validating admission, store.
"""

from collections.abc import Callable
from dataclasses import replace

import orjson

from kube_base.times import now
from kube_sandbox.apiserver.admission import built_in, quotas, resizes
from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.auth import authorization, escalation
from kube_sandbox.apiserver.context import Api, Call
from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.gotext import json_name
from kube_sandbox.apiserver.http import codec, requests
from kube_sandbox.apiserver.patch import apply, patches
from kube_sandbox.apiserver.patch.patches import APPLY, STRATEGIC
from kube_sandbox.apiserver.schema import custom, defaults
from kube_sandbox.apiserver.storage import registry, strategies
from kube_sandbox.apiserver.storage.registry import NAMESPACES, ResourceType
from kube_sandbox.apiserver.storage.store import (
    Item,
    already_exists,
    conflict,
    not_found,
)
from kube_sandbox.apiserver.verbs import write_checks

_MAX_ATTEMPTS = 6
"""The number of attempts of a write when other writes change the object at the same time."""


Build = Callable[[Item], Object]
"""Builds the new object from the stored one."""


async def create(api: Api, call: Call) -> Item:
    """POST to a collection."""
    attributes, resource = call.attributes, call.resource
    body = await call.body()
    options = requests.write_options("CreateOptions", call.query, call.dry_run)
    obj = codec.decode(resource, body, call.content_type, _field_validation(options), attributes.warnings)
    write_checks.check_namespace(call, obj)
    attributes.name = obj["metadata"].get("name", "")
    return await store_new(api, call, obj, options)


async def store_new(api: Api, call: Call, obj: Object, options: Object) -> Item:
    """Admit, validate and store a decoded new object."""
    attributes, resource = call.attributes, call.resource
    metadata = obj["metadata"]
    strategies.drop_system_fields(metadata)
    version = metadata.pop("resourceVersion", "")
    strategies.drop_empty_metadata(metadata)
    if warning := strategies.dedup_owners(metadata):
        attributes.warnings.append(warning)
    if options["kind"] != "PatchOptions":  # server-side apply has already set managedFields
        obj = apply.track_update(
            None, obj, manager=call.manager, subresource="", now=now(), crd_schema=crd_schema(resource)
        )
    attributes.operation, attributes.options, attributes.dry_run = "CREATE", options, bool(call.dry_run)
    attributes.obj, attributes.old = obj, None
    built_in.admit(attributes, api.store)
    await api.webhooks.mutate(attributes)
    escalation.check(attributes, api.authorizer)
    obj = attributes.obj
    write_checks.check_namespace(call, obj)
    metadata = obj["metadata"]
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"][: 63 - 5] + built_in.suffix()
    strategies.prepare_create(resource, obj)
    write_checks.validate(resource, obj, None)
    attributes.obj, attributes.name = obj, metadata["name"]
    await api.webhooks.validate(attributes)
    quotas.check(attributes, api.store)
    if version.isdigit() and int(version) and not call.dry_run:
        if options["kind"] == "PatchOptions":
            raise conflict((resource.group, resource.plural), attributes.name)
        raise StatusError(500, "resourceVersion should not be set on objects to be created", reason="")
    if resource.custom is not None:  # what the real server does when it reads the object from the storage
        custom.apply_defaults(obj, resource.custom.schema)
    stored = codec.to_storage(resource, obj)
    if call.dry_run:
        item = Item(stored, 0)
        if item.key in api.store.collection(resource.storage).items:
            raise already_exists((resource.group, resource.plural), metadata["name"])
        return item
    return api.store.create(resource.storage, stored)


async def update(api: Api, call: Call) -> tuple[Item, int]:
    """PUT of an object or of its status. Creates a missing object if the type allows it."""
    attributes, resource = call.attributes, call.resource
    body = await call.body()
    options = requests.write_options("UpdateOptions", call.query, call.dry_run)
    sent = codec.decode(resource, body, call.content_type, _field_validation(options), attributes.warnings)
    write_checks.check_namespace(call, sent)
    write_checks.check_name(call, sent)
    if find(api, call) is None:
        if registry.CREATE_ON_PUT not in resource.flags or attributes.subresource:
            raise not_found((resource.group, resource.plural), attributes.name)
        _authorize_create(api, call)
        return await store_new(api, call, sent, options | {"kind": "CreateOptions"}), 201
    encoded, uid = orjson.dumps(sent), sent["metadata"].get("uid")

    def build(current: Item) -> Object:
        if uid and uid != current.uid:
            raise write_checks.uid_conflict(resource, current, uid)
        obj: Object = orjson.loads(encoded)
        return obj

    return await modify(api, call, build, options, tracked=True), 200


async def patch(api: Api, call: Call) -> tuple[Item, int]:
    """PATCH of an object or of its status. Server-side apply creates a missing object."""
    attributes, resource = call.attributes, call.resource
    content_type = call.content_type.partition(";")[0].strip()
    write_checks.check_patch_type(resource, content_type)
    body = await call.body()
    options = requests.write_options("PatchOptions", call.query, call.dry_run)
    is_apply = content_type == APPLY
    if is_apply and not options.get("fieldManager"):
        raise requests.invalid_options(
            "PatchOptions", [("FieldValueRequired", "Required value: is required for apply patch", "fieldManager")]
        )
    if not is_apply and "force" in options:
        raise requests.invalid_options(
            "PatchOptions", [("FieldValueForbidden", "Forbidden: may not be specified for non-apply patch", "force")]
        )

    def build(current: Item) -> Object:
        if is_apply:
            return _applied(call, current, body, options)
        return _patched(call, current, content_type, body, _field_validation(options))

    if find(api, call) is None:
        if not is_apply or attributes.subresource:
            raise not_found((resource.group, resource.plural), attributes.name)
        _authorize_create(api, call)
        return await store_new(api, call, _applied(call, None, body, options), options), 201
    return await modify(api, call, build, options, tracked=not is_apply), 200


def _patched(call: Call, current: Item, content_type: str, body: bytes, field_validation: str) -> Object:
    """The stored object with a JSON, merge or strategic merge patch applied."""
    resource = call.resource
    patched, problems = patches.apply(
        content_type,
        codec.from_storage(resource, current),
        body,
        api_version=resource.api_version,
        kind=resource.kind,
        field_validation=field_validation,
        crd_schema=crd_schema(resource),
    )
    unknown: list[str] = []
    if resource.custom is None:
        obj = _in_go_order(patched) if content_type == STRATEGIC else patched
        defaults.apply(obj)
    else:
        shown = orjson.dumps(patched, option=orjson.OPT_SORT_KEYS)
        obj, unknown = codec.normalized(resource, patched)
        if unknown and field_validation == "Strict":
            raise patches.rejected(shown.decode(), f"strict decoding error: {', '.join(unknown)}")
    if field_validation != "Ignore":
        call.attributes.warnings += [*problems, *unknown]
    return obj


def _applied(call: Call, current: Item | None, body: bytes, options: Object) -> Object:
    """The stored object after server-side apply of a configuration."""
    resource = call.resource
    try:
        applied = requests.load_yaml(body)
    except ValueError as error:
        raise StatusError(400, f"error decoding YAML: error converting YAML to JSON: yaml: {error}") from error
    if not isinstance(applied, dict):
        why = f"cannot unmarshal {json_name(applied)} into Go value of type"
        raise StatusError(
            400,
            f"error decoding YAML: error unmarshaling JSON: while decoding JSON: json: {why} map[string]interface {{}}",
        )
    apply.check_applied(applied, api_version=resource.api_version, kind=resource.kind)
    write_checks.check_namespace(call, {"metadata": dict(applied.get("metadata") or {})})
    merged = apply.server_side_apply(
        codec.from_storage(resource, current) if current else None,
        applied,
        manager=options["fieldManager"],
        force=bool(options.get("force")),
        subresource=call.attributes.subresource,
        now=now(),
        crd_schema=crd_schema(resource),
    )
    obj = _in_go_order(codec.normalized(resource, merged)[0])
    if current is None and (uid := obj["metadata"].get("uid")):
        raise conflict(
            (resource.group, resource.plural),
            call.attributes.name,
            f"uid mismatch: the provided object specified uid {uid}, and no existing object was found",
        )
    write_checks.check_namespace(call, obj)
    return obj


def _in_go_order(obj: Object) -> Object:
    """The result of a strategic merge patch or of an apply. As in the real server, the keys in `data` of a
    ControllerRevision are sorted. `data` therefore counts as changed if its creator did not sort them."""
    if obj["kind"] == "ControllerRevision" and "data" in obj:
        obj["data"] = orjson.loads(orjson.dumps(obj["data"], option=orjson.OPT_SORT_KEYS))
    return obj


async def modify(
    api: Api,
    call: Call,
    build: Build,
    options: Object,
    *,
    tracked: bool,
    admitted: bool = False,
) -> Item:
    """Read, change, admit, validate and store an object. An unchanged object is not stored.

    When another write changes the object at the same time, and the request does not contain a resourceVersion, the
    function tries again. `tracked` updates managedFields. `admitted` skips the webhooks, which were called before.
    """
    attempt = 0
    while True:
        attempt += 1
        current = call.current(api)
        obj = build(current)
        try:
            return await _modify_once(api, call, current, obj, options, tracked=tracked, admitted=admitted)
        except StatusError as error:
            changed_meanwhile = error.reason == "Conflict" and find(api, call) is not current
            if not changed_meanwhile or attempt >= _MAX_ATTEMPTS:
                raise


async def _modify_once(
    api: Api, call: Call, current: Item, obj: Object, options: Object, *, tracked: bool, admitted: bool
) -> Item:
    attributes, resource = call.attributes, call.resource
    old = codec.from_storage(resource, current)
    write_checks.check_namespace(call, obj)
    write_checks.check_name(call, obj)
    metadata = obj["metadata"]
    strategies.drop_empty_metadata(metadata)
    if warning := strategies.dedup_owners(metadata):
        attributes.warnings.append(warning)
    if tracked:
        obj = apply.track_update(
            old,
            obj,
            manager=call.manager,
            subresource=attributes.subresource,
            now=now(),
            crd_schema=crd_schema(resource),
        )
    attributes.operation, attributes.options, attributes.dry_run = "UPDATE", options, bool(call.dry_run)
    attributes.obj, attributes.old = obj, old
    built_in.admit(attributes, api.store)
    if not admitted:
        await api.webhooks.mutate(attributes)
    escalation.check(attributes, api.authorizer)
    obj = attributes.obj
    write_checks.check_namespace(call, obj)
    metadata = obj["metadata"]
    write_checks.check_version(resource, attributes.name, metadata, current)
    strategies.prepare_update(resource, obj, old, attributes.subresource)
    write_checks.validate(resource, obj, old, attributes.subresource)
    metadata["resourceVersion"] = str(current.revision)
    attributes.obj = obj
    resizes.check(attributes, api.store)
    if not admitted:
        await api.webhooks.validate(attributes)
    stored = codec.to_storage(resource, obj)
    stored["metadata"]["resourceVersion"] = str(current.revision)
    if is_unchanged(stored, current.object):
        return current
    if call.dry_run:
        return Item(stored, current.revision)
    if _completes_deletion(resource, stored, current.object):
        api.store.delete(resource.storage, current)
        return Item(stored, current.revision)
    return api.store.update(resource.storage, current, stored)


def find(api: Api, call: Call) -> Item | None:
    return api.store.item(call.resource.storage, call.attributes.namespace, call.attributes.name)


def is_unchanged(new: Object, old: Object) -> bool:
    """Whether a write changes nothing. Times in managedFields are ignored."""
    first, second = _without_times(new), _without_times(old)
    # Compare the JSON as well, because 1 and true are equal in Python.
    return first == second and _encoded(first) == _encoded(second)


def _encoded(obj: Object) -> bytes:
    return orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)


def _without_times(obj: Object) -> Object:
    metadata = obj["metadata"]
    entries = [
        {key: value for key, value in entry.items() if key != "time"} for entry in metadata.get("managedFields") or ()
    ]
    return {**obj, "metadata": {**metadata, "managedFields": entries}}


def _completes_deletion(resource: ResourceType, new: Object, old: Object) -> bool:
    """Whether an update removes the last finalizer of an object that is being deleted, which completes the deletion
    (apiserver's `ShouldDeleteDuringUpdate`). A namespace also has finalizers in its spec."""
    if new["metadata"].get("finalizers") or not old["metadata"].get("deletionTimestamp"):
        return False
    if resource.storage == NAMESPACES and (new.get("spec") or {}).get("finalizers"):
        return False
    return not old["metadata"].get("deletionGracePeriodSeconds")


def _authorize_create(api: Api, call: Call) -> None:
    """Raise StatusError 403 unless the user may create the object that a PUT or an apply would create."""
    attributes = replace(call.attributes, verb="create")
    reason = api.authorizer.authorize(attributes)
    if reason is not None:
        raise authorization.forbidden(attributes, reason)


def _field_validation(options: Object) -> str:
    return str(options.get("fieldValidation") or "Warn")


def crd_schema(resource: ResourceType) -> Object | None:
    return resource.custom.schema if resource.custom else None
