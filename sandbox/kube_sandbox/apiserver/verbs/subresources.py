"""Subresources with their own type or their own behavior, and reviews, which the server answers and never stores."""

from typing import Any

import orjson

from kube_base.times import now
from kube_sandbox.apiserver.admission import built_in
from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.auth import token_requests
from kube_sandbox.apiserver.context import Api, Call, Result
from kube_sandbox.apiserver.errors import StatusError, invalid, not_allowed
from kube_sandbox.apiserver.http import codec, requests
from kube_sandbox.apiserver.http.responses import created
from kube_sandbox.apiserver.patch import apply, patches
from kube_sandbox.apiserver.printers.cells import selector_text
from kube_sandbox.apiserver.storage.store import Item, conflict, not_found
from kube_sandbox.apiserver.verbs import evictions, write_checks, writes

_TOPOLOGY = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
_BUILT_IN_SCALE_PATHS = (".spec.replicas", ".status.replicas", "")
"""The paths of the requested replicas, the existing replicas and the selector."""


async def serve(api: Api, call: Call) -> Result:
    """Serve one request for a subresource. Returns the object of the response and the HTTP status code."""
    attributes = call.attributes
    subresource = call.resource.subresource(attributes.subresource)
    if subresource is None or attributes.verb not in subresource.verbs:
        raise not_allowed()
    attributes.kind = codec.kind_of(call.resource, subresource)[2]
    match attributes.subresource, attributes.verb:
        case "status" | "finalize" | "ephemeralcontainers" | "resize", "get":
            return call.current(api), 200
        case "status" | "ephemeralcontainers" | "resize", "patch":
            return await writes.patch(api, call)
        case "status" | "finalize" | "ephemeralcontainers" | "resize", "update":
            return await writes.update(api, call)
        case "scale", "get":
            return _scale_of(call, call.current(api)), 200
        case "scale", _:
            return await _set_scale(api, call)
        case "binding", "create":
            return await _bind(api, call)
        case "eviction", "create":
            return await evictions.evict(api, call)
        case "token", "create":
            return await _request_token(api, call)
    call.current(api)
    raise StatusError(
        503,
        f"{call.resource.plural}/{attributes.subresource} is not supported: the sandbox runs no containers",
    )


async def review(api: Api, call: Call) -> Result:
    """The response to a review such as TokenReview or SubjectAccessReview. `bindings` is the old form of
    `pods/binding`."""
    resource, attributes = call.resource, call.attributes
    if resource.plural == "bindings":
        return await _bind(api, call)
    options = requests.write_options("CreateOptions", call.query, call.dry_run)
    validation = str(options.get("fieldValidation") or "Warn")
    obj = codec.decode(resource, await call.body(), call.content_type, validation, attributes.warnings)
    write_checks.check_namespace(call, obj)
    admitted = await _admit(api, call, obj, None, "CREATE", options)
    return api.reviews.create(admitted, attributes.user, attributes.namespace), 201


def _scale_of(call: Call, item: Item) -> Object:
    """The Scale of an object: the requested replicas, the existing replicas and the selector of the pods."""
    obj, metadata = item.object, item.object["metadata"]
    spec_path, status_path, selector_path = _scale_paths(call)
    status: Object = {"replicas": _integer_at(obj, status_path)}
    if selector := _selector(call, obj, selector_path):
        status["selector"] = selector
    replicas = _integer_at(obj, spec_path)
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def _scale_paths(call: Call) -> tuple[str, str, str]:
    custom = call.resource.custom
    if custom is None or custom.scale is None:
        return _BUILT_IN_SCALE_PATHS
    scale = custom.scale
    return scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath", "")


def _value_at(obj: Any, path: str) -> Any:
    for part in path.strip(".").split("."):
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


def _integer_at(obj: Object, path: str) -> int:
    value = _value_at(obj, path)
    return value if isinstance(value, int) else 0


def _selector(call: Call, obj: Object, path: str) -> str:
    if call.resource.custom is not None:
        value = _value_at(obj, path) if path else ""
        return value if isinstance(value, str) else ""
    selector = obj["spec"].get("selector") or {}
    if call.resource.kind == "ReplicationController":
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    return selector_text(selector, empty="")


async def _set_scale(api: Api, call: Call) -> Result:
    """PUT or PATCH of a Scale: set the requested replicas of the object."""
    attributes = call.attributes
    body = await call.body()
    kind = "UpdateOptions" if attributes.verb == "update" else "PatchOptions"
    options = requests.write_options(kind, call.query, call.dry_run)
    path = _scale_paths(call)[0]
    content_type = call.content_type.partition(";")[0].strip()

    def sent(current: Item) -> Object:
        if attributes.verb == "update":
            scale = codec.decode_subresource(("autoscaling", "v1", "Scale"), body, call.content_type)
            write_checks.check_name(call, scale)
            return scale
        patched = patches.apply(
            content_type,
            _scale_of(call, current),
            body,
            api_version="autoscaling/v1",
            kind="Scale",
            field_validation="Ignore",
            crd_schema=None,
        )[0]
        return codec.decode_subresource(("autoscaling", "v1", "Scale"), orjson.dumps(patched), "")

    current = call.current(api)
    scale = sent(current)
    version = scale["metadata"].get("resourceVersion")
    if attributes.verb == "patch" and version == str(current.revision):
        version = ""  # the version comes from the current Scale, so the patch does not require one
    scale = await _admit(api, call, scale, _scale_of(call, current), "UPDATE", options)
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if replicas < 0:
        raise _negative_replicas(attributes.name, replicas)

    def build(current: Item) -> Object:
        if version and version != str(current.revision):
            raise conflict((call.resource.group, call.resource.plural), attributes.name)
        obj = codec.from_storage(call.resource, current)
        _set_at(obj, path, replicas)
        return obj

    item = await writes.modify(api, call, build, options, tracked=True, admitted=True)
    return _scale_of(call, item), 200


async def _admit(api: Api, call: Call, obj: Object, old: Object | None, operation: str, options: Object) -> Object:
    """Call the admission plugins and the webhooks for the body of a request. Returns the object as the webhooks changed
    it."""
    attributes = call.attributes
    attributes.operation, attributes.options, attributes.dry_run = operation, options, bool(call.dry_run)
    attributes.obj, attributes.old = obj, old
    built_in.admit(attributes, api.store)
    await api.webhooks.mutate(attributes)
    await api.webhooks.validate(attributes)
    return attributes.obj


def _negative_replicas(name: str, replicas: int) -> StatusError:
    message = f"Invalid value: {replicas}: must be greater than or equal to 0"
    cause = {"reason": "FieldValueInvalid", "message": message, "field": "spec.replicas"}
    return invalid("autoscaling", "Scale", name, [cause])


def _set_at(obj: Object, path: str, value: int) -> None:
    *parents, last = path.strip(".").split(".")
    for part in parents:
        obj = obj.setdefault(part, {})
    obj[last] = value


def _topology_labels(api: Api, node: str) -> dict[str, str]:
    """The labels that a pod receives from its node (admission plugin PodTopologyLabels)."""
    found = api.store.item(("", "nodes"), "", node)
    labels = (found.object["metadata"].get("labels") if found else None) or {}
    return {key: labels[key] for key in _TOPOLOGY if key in labels}


async def _bind(api: Api, call: Call) -> Result:
    """Create a Binding: assign a pod to a node."""
    attributes = call.attributes
    options = requests.write_options("CreateOptions", call.query, call.dry_run)
    binding = codec.decode_subresource(("", "v1", "Binding"), await call.body(), call.content_type)
    write_checks.check_namespace(call, binding)
    named = binding["metadata"].get("name", "")
    name = attributes.name or named
    if name != named:
        raise StatusError(400, "name in URL does not match name in Binding object")
    target = binding.get("target") or {}
    if target.get("kind") not in (None, "", "Node"):
        raise StatusError(400, "binding: target must be a Node")
    item = api.store.item(("", "pods"), attributes.namespace, name)
    if item is None:
        raise not_found(("", "pods"), name)
    pod = item.copy()
    if pod["metadata"].get("deletionTimestamp"):
        raise conflict(("", "pods/binding"), name, f"pod {name} is being deleted, cannot be assigned to a host")
    if node := pod["spec"].get("nodeName"):
        raise conflict(("", "pods/binding"), name, f'pod {name} is already assigned to node "{node}"')
    await _admit(api, call, binding, None, "CREATE", options)
    pod["spec"]["nodeName"] = target.get("name", "")
    if labels := _topology_labels(api, target.get("name", "")):
        pod["metadata"]["labels"] = labels | (pod["metadata"].get("labels") or {})
    conditions = [c for c in pod["status"].get("conditions") or () if c["type"] != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now()}
    pod["status"]["conditions"] = [*conditions, scheduled]
    pod = apply.track_update(item.copy(), pod, manager=call.manager, subresource="binding", now=now(), crd_schema=None)
    if not options.get("dryRun"):
        api.store.update(("", "pods"), item, pod)
    return created(), 201


async def _request_token(api: Api, call: Call) -> Result:
    """Create a TokenRequest: issue a token for a ServiceAccount."""
    attributes = call.attributes
    options = requests.write_options("CreateOptions", call.query, call.dry_run)
    request = codec.decode_subresource(
        ("authentication.k8s.io", "v1", "TokenRequest"), await call.body(), call.content_type
    )
    admitted = await _admit(api, call, request, None, "CREATE", options)
    return token_requests.create(api.tokens, api.store, attributes.namespace, attributes.name, admitted), 201
