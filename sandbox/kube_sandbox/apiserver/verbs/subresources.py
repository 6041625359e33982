"""Subresources with a type or a meaning of their own, and the reviews that are answered, never stored."""

from typing import Any

import orjson

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.auth import token_requests
from kube_sandbox.apiserver.context import Api, Call, Result
from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.http import codec, requests
from kube_sandbox.apiserver.patch import apply, patches
from kube_sandbox.apiserver.printers.columns import selector_text
from kube_sandbox.apiserver.storage import selectors
from kube_sandbox.apiserver.storage.store import Item, conflict
from kube_sandbox.apiserver.verbs import deletes, write_checks, writes
from kube_sandbox.times import now

_TOPOLOGY = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
_PATHS = {
    # where Scale finds its numbers: replicas asked for, replicas there, selector
    "built-in": (".spec.replicas", ".status.replicas", ""),
}


async def serve(api: Api, call: Call) -> Result:
    """One request for a subresource: its answer and HTTP status."""
    attributes = call.attributes
    subresource = call.resource.subresource(attributes.subresource)
    if subresource is None or attributes.verb not in subresource.verbs:
        raise StatusError(405, "the server does not allow this method on the requested resource", details={})
    attributes.kind = codec.kind_of(call.resource, subresource)[2]
    match attributes.subresource, attributes.verb:
        case "status" | "finalize" | "ephemeralcontainers" | "resize", "get":
            return call.current(api), 200
        case "status" | "ephemeralcontainers" | "resize", "patch":
            return await writes.patch(api, call)
        case "status" | "finalize" | "ephemeralcontainers" | "resize", "update":
            return await writes.update(api, call)
        case "scale", "get":
            return scale_of(call, call.current(api)), 200
        case "scale", _:
            return await _set_scale(api, call)
        case "binding", "create":
            return await _bind(api, call)
        case "eviction", "create":
            return await _evict(api, call)
        case "token", "create":
            return await _token(api, call)
    call.current(api)
    raise StatusError(
        503,
        f"the sandbox has no containers behind {call.resource.plural}/{attributes.subresource}: nothing to connect to",
    )


async def review(api: Api, call: Call) -> Result:
    """The answer to a review, as TokenReview or SubjectAccessReview; Binding is the pods' subresource of old."""
    resource, attributes = call.resource, call.attributes
    if resource.plural == "bindings":
        return await _bind(api, call)
    options = requests.write_options("CreateOptions", call.query, call.dry_run)
    validation = str(options.get("fieldValidation") or "Warn")
    obj = codec.decode(resource, await call.body(), call.content_type, validation, attributes.warnings)
    write_checks.check_namespace(call, obj)
    attributes.operation, attributes.options, attributes.obj = "CREATE", options, obj
    await api.webhooks.mutate(attributes)
    await api.webhooks.validate(attributes)
    return api.reviews.create(attributes.obj, attributes.user, attributes.namespace), 201


def scale_of(call: Call, item: Item) -> Object:
    """The Scale of an object: how many replicas are asked for, how many there are, which pods they are."""
    obj, metadata = item.object, item.object["metadata"]
    spec_path, status_path, selector_path = _scale_paths(call)
    status: Object = {"replicas": _number(obj, status_path)}
    if selector := _selector(call, obj, selector_path):
        status["selector"] = selector
    replicas = _number(obj, spec_path)
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
        return _PATHS["built-in"]
    scale = custom.scale
    return scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath", "")


def _at(obj: Any, path: str) -> Any:
    for part in path.strip(".").split("."):
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


def _number(obj: Object, path: str) -> int:
    value = _at(obj, path)
    return value if isinstance(value, int) else 0


def _selector(call: Call, obj: Object, path: str) -> str:
    if call.resource.custom is not None:
        value = _at(obj, path) if path else ""
        return value if isinstance(value, str) else ""
    selector = obj["spec"].get("selector") or {}
    if call.resource.kind == "ReplicationController":
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    return selector_text(selector, empty="")


async def _set_scale(api: Api, call: Call) -> Result:
    """PUT or PATCH of a Scale: sets the replicas that are asked for."""
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
            scale_of(call, current),
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
        version = ""  # the patch does not name one
    scale = await _admit(api, call, scale, scale_of(call, current), "UPDATE", options)
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if replicas < 0:
        raise _negative(attributes.name, replicas)

    def build(current: Item) -> Object:
        if version and version != str(current.revision):
            raise conflict((call.resource.group, call.resource.plural), attributes.name)
        obj = codec.view(call.resource, current)
        _put(obj, path, replicas)
        return obj

    item = await writes.modify(api, call, build, options, tracked=True, admitted=True)
    return scale_of(call, item), 200


async def _admit(api: Api, call: Call, obj: Object, old: Object | None, operation: str, options: Object) -> Object:
    """Ask the webhooks about what was sent to a subresource; what they made of it."""
    attributes = call.attributes
    attributes.operation, attributes.options, attributes.dry_run = operation, options, bool(call.dry_run)
    attributes.obj, attributes.old = obj, old
    await api.webhooks.mutate(attributes)
    await api.webhooks.validate(attributes)
    return attributes.obj


def _negative(name: str, replicas: int) -> StatusError:
    message = f"Invalid value: {replicas}: must be greater than or equal to 0"
    return StatusError(
        422,
        f'Scale.autoscaling "{name}" is invalid: spec.replicas: {message}',
        details={
            "name": name,
            "group": "autoscaling",
            "kind": "Scale",
            "causes": [{"reason": "FieldValueInvalid", "message": message, "field": "spec.replicas"}],
        },
    )


def _put(obj: Object, path: str, value: int) -> None:
    *parents, last = path.strip(".").split(".")
    for part in parents:
        obj = obj.setdefault(part, {})
    obj[last] = value


def _topology(api: Api, node: str) -> dict[str, str]:
    """The labels that a pod gets from its node (admission plugin PodTopologyLabels)."""
    found = api.store.item(("", "nodes"), "", node)
    labels = (found.object["metadata"].get("labels") if found else None) or {}
    return {key: labels[key] for key in _TOPOLOGY if key in labels}


async def _bind(api: Api, call: Call) -> Result:
    """The scheduler's word: this pod runs on that node."""
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
        raise StatusError(404, f'pods "{name}" not found', details={"name": name, "kind": "pods"})
    pod = item.copy()
    if pod["metadata"].get("deletionTimestamp"):
        raise conflict(("", "pods/binding"), name, f"pod {name} is being deleted, cannot be assigned to a host")
    if node := pod["spec"].get("nodeName"):
        raise conflict(("", "pods/binding"), name, f'pod {name} is already assigned to node "{node}"')
    attributes.operation, attributes.options, attributes.obj = "CREATE", options, binding
    await api.webhooks.mutate(attributes)
    await api.webhooks.validate(attributes)
    pod["spec"]["nodeName"] = target.get("name", "")
    if labels := _topology(api, target.get("name", "")):
        pod["metadata"]["labels"] = labels | (pod["metadata"].get("labels") or {})
    conditions = [c for c in pod["status"].get("conditions") or () if c["type"] != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now()}
    pod["status"]["conditions"] = [*conditions, scheduled]
    pod = apply.track_update(item.copy(), pod, manager=call.manager, subresource="binding", now=now(), crd_schema=None)
    if not options.get("dryRun"):
        api.store.update(("", "pods"), item, pod)
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201


async def _evict(api: Api, call: Call) -> Result:
    """A deletion that a PodDisruptionBudget may refuse."""
    attributes = call.attributes
    created = requests.write_options("CreateOptions", call.query, call.dry_run)
    eviction = codec.decode_subresource(("policy", "v1", "Eviction"), await call.body(), call.content_type)
    write_checks.check_namespace(call, eviction)
    await _admit(api, call, eviction, None, "CREATE", created)
    pod = call.current(api)
    labels = pod.object["metadata"].get("labels") or {}
    for budget in api.store.list("policy", "poddisruptionbudgets", attributes.namespace):
        if not _covers(budget, labels):
            continue
        if (budget.get("status") or {}).get("disruptionsAllowed", 0) <= 0:
            name = budget["metadata"]["name"]
            status = budget.get("status") or {}
            message = (
                f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods and has"
                f" {status.get('currentHealthy', 0)} currently"
            )
            raise StatusError(
                429,
                "Cannot evict pod as it would violate the pod's disruption budget.",
                details={"causes": [{"reason": "DisruptionBudget", "message": message}]},
            )
    options = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", **(eviction.get("deleteOptions") or {})}
    if call.dry_run:
        options["dryRun"] = call.dry_run
    deletes.remove(api, call.resource, pod, options)
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201


def _covers(budget: Object, labels: dict[str, str]) -> bool:
    selector = budget["spec"].get("selector")
    return selector is not None and selectors.matches(selector, labels)


async def _token(api: Api, call: Call) -> Result:
    """A token for a service account."""
    attributes = call.attributes
    options = requests.write_options("CreateOptions", call.query, call.dry_run)
    request = codec.decode_subresource(
        ("authentication.k8s.io", "v1", "TokenRequest"), await call.body(), call.content_type
    )
    attributes.operation, attributes.options, attributes.obj = "CREATE", options, request
    await api.webhooks.mutate(attributes)
    await api.webhooks.validate(attributes)
    return token_requests.create(api.tokens, api.store, attributes.namespace, attributes.name, attributes.obj), 201
