"""OpenAPI documents with the parts that kubectl reads: for validation, `kubectl explain` and `kubectl apply`.

The schemas of built-in kinds come from the models of the Kubernetes client, those of custom resources from their CRDs.
"""

import copy
import hashlib
import re
from collections.abc import Callable, Iterator
from functools import cache

import orjson
from aiohttp import web

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.errors import StatusError, not_served
from kube_sandbox.apiserver.http import openapi_protobuf
from kube_sandbox.apiserver.http.responses import accepted
from kube_sandbox.apiserver.schema import models, types
from kube_sandbox.apiserver.storage.registry import Registry, ResourceType

_V3, _V2 = "#/components/schemas/", "#/definitions/"
_SCALARS: dict[str, Object] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float": {"type": "number", "format": "double"},
    "quantity": {"type": "string"},
    "int-or-string": {"x-kubernetes-int-or-string": True},
    "time": {"type": "string", "format": "date-time"},
    "micro-time": {"type": "string", "format": "date-time"},
    "bytes": {"type": "string", "format": "byte"},
    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
_DEEP_MODELS = {"V1JSONSchemaProps": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
_METADATA = "V1ObjectMeta"
_RETAIN_KEYS = ("V1DeploymentSpec.strategy", "V1PodSpec.volumes")
"""Structs with mutually exclusive members. Patches contain `$retainKeys` with the members to keep."""
_WRITE_QUERY = ("dryRun", "fieldManager", "fieldValidation")


def serve(registry: Registry, path: list[str], accept: str) -> web.Response:
    """Serve `/openapi/v2`, the index at `/openapi/v3`, and a document per group version below `/openapi/v3`.

    Raises StatusError 406 when the client does not accept JSON; `/openapi/v2` is also available in protobuf.
    """
    readable = ("application/json", "*/*", "application/*")
    media_types = [media_type for media_type, _ in accepted(accept)]
    if path == ["v2"] and openapi_protobuf.REQUESTED_TYPE in media_types:
        body = _cached(registry, openapi_protobuf.MEDIA_TYPE, lambda: openapi_protobuf.encode(_swagger(registry)))
        return web.Response(body=body, headers={"Content-Type": openapi_protobuf.MEDIA_TYPE})
    if not any(media_type in readable for media_type in media_types):
        raise StatusError(406, "only the following media types are accepted: application/json")
    match path:
        case ["v2"]:
            return _json_response(_cached(registry, "v2", lambda: orjson.dumps(_swagger(registry))))
        case ["v3"]:
            paths = {where: _index_entry(registry, where) for where in _document_paths(registry)}
            return _json_response(orjson.dumps({"paths": paths}))
        case ["v3", *rest] if (where := "/".join(rest)) in (found := _document_paths(registry)):
            document = _cached(registry, where, lambda: orjson.dumps(_document(registry, *found[where])))
            return _json_response(document)
    raise not_served()


def _cached(registry: Registry, name: str, build: Callable[[], bytes]) -> bytes:
    """The document with this name, which is built once after each change of the resources: each process of kubectl
    reads the documents, and to build one takes a tenth of a second."""
    if name not in registry.documents:
        registry.documents[name] = build()
    return registry.documents[name]


def _json_response(data: bytes) -> web.Response:
    response = web.Response(body=data, content_type="application/json")
    response.etag = hashlib.sha256(data).hexdigest()[:32]
    return response


def _document_paths(registry: Registry) -> dict[str, tuple[str, str]]:
    """The group and version of each document, by path."""
    return {
        f"apis/{group}/{version}" if group else f"api/{version}": (group, version)
        for group, versions in registry.group_versions().items()
        for version in versions
    }


def _index_entry(registry: Registry, where: str) -> Object:
    return {"serverRelativeURL": f"/openapi/v3/{where}?hash={registry.changes:032X}"}


def _document(registry: Registry, group: str, version: str) -> Object:
    resources = [found for found in registry if (found.group, found.version) == (group, version)]
    schemas: Object = {}
    paths: Object = {}
    for resource in resources:
        schemas |= _components(resource, _V3)
        paths |= _paths(resource, _V3)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.2"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _swagger(registry: Registry) -> Object:
    definitions: Object = {}
    paths: Object = {}
    for resource in registry:
        definitions |= _components(resource, _V2)
        paths |= _paths(resource, _V2)
    info = {"title": "Kubernetes", "version": "v1.36.2"}
    return {"swagger": "2.0", "info": info, "paths": paths, "definitions": definitions}


def _kind(resource: ResourceType) -> Object:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _paths(resource: ResourceType, refs: str) -> Object:
    """The paths of a resource, with the parts that kubectl reads."""
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    if resource.namespaced:
        root += "/namespaces/{namespace}"
    kind = {"x-kubernetes-group-version-kind": _kind(resource)}
    schema = {"$ref": refs + _schema_name(resource)}
    content = {"schema": schema} if refs == _V2 else {"content": {"application/json": {"schema": schema}}}
    responses = {"responses": {"200": {"description": "OK", **content}}}
    collection: Object = {}
    single: Object = {}
    for verb, method, where in (
        ("list", "get", collection),
        ("create", "post", collection),
        ("get", "get", single),
        ("update", "put", single),
        ("patch", "patch", single),
        ("delete", "delete", single),
    ):
        if verb in resource.verbs:
            query = _query(refs) if verb in ("create", "update", "patch") else []
            where[method] = {"x-kubernetes-action": verb, "parameters": query, **responses, **kind}
    paths = {f"{root}/{resource.plural}": collection, f"{root}/{resource.plural}/{{name}}": single}
    return {path: item for path, item in paths.items() if item}


def _query(refs: str) -> list[Object]:
    type_: Object = {"type": "string"} if refs == _V2 else {"schema": {"type": "string"}}
    return [{"name": name, "in": "query", **type_} for name in _WRITE_QUERY]


def _model(resource: ResourceType) -> str:
    """The model of a built-in kind."""
    return types.model_of(resource.api_version, resource.kind) or ""


def _schema_name(resource: ResourceType) -> str:
    if resource.custom is None:
        return _model_name(_model(resource))
    return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])


def _components(resource: ResourceType, refs: str) -> Object:
    """The schema of a resource, and the schemas that it references."""
    kind = {"x-kubernetes-group-version-kind": [_kind(resource)]}
    if resource.custom is not None:
        schema = copy.deepcopy(resource.custom.schema)
        properties = {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"$ref": refs + _model_name(_METADATA)},
        }
        schema["properties"] = {**(schema.get("properties") or {}), **properties}
        if resource.fields:
            schema["x-kubernetes-selectable-fields"] = [{"fieldPath": path} for path in resource.fields]
        return {_schema_name(resource): {**schema, **kind}, **_closure(_METADATA, refs)}
    model = _model(resource)
    found = dict(_closure(model, refs))
    found[_model_name(model)] = {**found[_model_name(model)], **kind}
    return found


def _model_name(model: str) -> str:
    """Models of the same name in several groups, such as Subject, begin with their group."""
    found = re.match(r"([A-Za-z]*?)(V\d+(?:(?:alpha|beta)\d+)?)", model)
    group, version = found.groups() if found else ("", "v1")
    return ".".join(filter(None, ("io.k8s.api", group.lower(), version.lower(), types.go_name(model))))


@cache
def _closure(model: str, refs: str) -> Object:
    """The schemas of a model and of all models that it references."""
    found: Object = {}
    waiting = [model]
    while waiting:
        name = waiting.pop()
        if _model_name(name) not in found:
            found[_model_name(name)] = _DEEP_MODELS.get(name) or _schema(name, refs)
            waiting += [] if name in _DEEP_MODELS else _models(name)
    return found


def _models(model: str) -> Iterator[str]:
    for field in types.fields(model).values():
        type_ = field.type
        while type_.items is not None:
            type_ = type_.items
        if type_.kind == "struct":
            yield type_.model


def _schema(model: str, refs: str) -> Object:
    known = models.fields(model)
    properties = {}
    for name, field in types.fields(model).items():
        schema = {"description": known[name].description, **_type(field.type, refs)}
        if field.merge_key:
            schema["x-kubernetes-patch-merge-key"] = field.merge_key
        if strategy := _patch_strategy(model, name, field):
            schema["x-kubernetes-patch-strategy"] = strategy
        if field.keys:
            schema |= {"x-kubernetes-list-map-keys": list(field.keys), "x-kubernetes-list-type": "map"}
        elif field.is_set:
            schema["x-kubernetes-list-type"] = "set"
        if "$ref" in schema and refs == _V3:  # OpenAPI 3.0 ignores the siblings of a reference
            schema = {"allOf": [{"$ref": schema.pop("$ref")}], "default": {}, **schema}
        properties[name] = schema
    required = [name for name in properties if known[name].is_required]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _patch_strategy(model: str, name: str, field: types.Field) -> str:
    """The value of `x-kubernetes-patch-strategy` for a field, or empty."""
    strategies = ["merge"] if field.merges else ["replace"] if field.replaces else []
    if f"{model}.{name}" in _RETAIN_KEYS:
        strategies.append("retainKeys")
    return ",".join(strategies)


def _type(type_: types.Type, refs: str) -> Object:
    if type_.kind == "struct":
        return {"$ref": refs + _model_name(type_.model)}
    if type_.items is not None:
        items = _type(type_.items, refs)
        return (
            {"type": "array", "items": items}
            if type_.kind == "list"
            else {"type": "object", "additionalProperties": items}
        )
    return dict(_SCALARS[type_.kind])
