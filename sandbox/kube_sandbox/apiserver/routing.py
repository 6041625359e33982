"""Serves one HTTP request: authenticates and authorizes the user, then calls the handler of the verb."""

import logging
from dataclasses import replace

import orjson
from aiohttp import web

from kube_sandbox.apiserver.attributes import Attributes, Object
from kube_sandbox.apiserver.auth import authorization, impersonation
from kube_sandbox.apiserver.context import Api, Call
from kube_sandbox.apiserver.errors import StatusError, internal_error, not_allowed, not_served
from kube_sandbox.apiserver.http import discovery, openapi, requests, responses
from kube_sandbox.apiserver.http.local import Request
from kube_sandbox.apiserver.http.requests import Target
from kube_sandbox.apiserver.http.responses import Form
from kube_sandbox.apiserver.http.selection import select, selected_name
from kube_sandbox.apiserver.printers import tables
from kube_sandbox.apiserver.storage.registry import ResourceType
from kube_sandbox.apiserver.storage.store import Item, not_found
from kube_sandbox.apiserver.verbs import deletes, logs, reads, subresources, watch, writes

logger = logging.getLogger(__name__)

_READ_ONLY_ROOTS = ("api", "apis", "version")
_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def client_certificate(request: Request) -> bytes | None:
    """The client's certificate (DER), which TLS has verified."""
    tls = request.transport.get_extra_info("ssl_object") if request.transport else None
    certificate: bytes | None = tls.getpeercert(binary_form=True) if tls else None
    return certificate


async def handle(api: Api, request: Request) -> web.StreamResponse:
    """Serve one request. Every error becomes a response with a Status."""
    target = requests.parse_path(request.path)
    warnings: list[str] = []
    pretty = responses.wants_pretty(request.query, request.headers.get("User-Agent", ""))
    try:
        return await _serve(api, request, target, warnings, pretty=pretty)
    except StatusError as error:
        return _failure(request, error, warnings, pretty=pretty)
    except (orjson.JSONEncodeError, RecursionError) as error:
        return _failure(request, StatusError(400, f"the object cannot be encoded: {error}"), warnings, pretty=pretty)
    except Exception as error:
        logger.exception("the handler of %s %s failed", request.method, request.path)
        return _failure(request, internal_error(f"{type(error).__name__}: {error}"), warnings, pretty=pretty)


def _failure(request: Request, error: StatusError, warnings: list[str], *, pretty: bool) -> web.Response:
    try:
        form = replace(responses.negotiate(request.headers.get("Accept", "")), shape="")
    except StatusError:
        form = Form()
    data = orjson.dumps(error.status)
    response = responses.respond(data, form, code=error.code, warnings=warnings, pretty=pretty)
    if seconds := (error.details or {}).get("retryAfterSeconds"):
        response.headers["Retry-After"] = str(seconds)
    if error.code == 413:
        response.force_close()
    return response


async def _serve(
    api: Api, request: Request, target: Target | None, warnings: list[str], *, pretty: bool
) -> web.StreamResponse:
    user = api.authenticator.authenticate(request.headers.get("Authorization"), client_certificate(request))
    if target is None:
        attributes = Attributes(user, verb=_method(request), path=request.path, warnings=warnings)
    else:
        attributes = Attributes(
            user,
            verb=_verb(request, target),
            group=target.group,
            version=target.version,
            plural=target.plural,
            namespace=target.namespace,
            name=target.name,
            subresource=target.subresource,
            warnings=warnings,
        )
        if (target.group, target.plural) == ("", "namespaces"):
            attributes.namespace = ""
    to_authorize = attributes
    if attributes.verb in ("list", "watch"):
        # A user who may read an object by name may also list and watch that one object.
        to_authorize = replace(
            attributes, name=attributes.name or selected_name(request.query.get("fieldSelector", ""))
        )
    attributes.user = to_authorize.user = impersonation.impersonate(
        list(request.headers.items()), to_authorize, api.authorizer
    )
    reason = api.authorizer.authorize(to_authorize)
    if reason is not None:
        raise authorization.forbidden(to_authorize, reason)
    if target is None:
        return _serve_non_resource(api, request, pretty=pretty)
    return await _serve_resource(api, request, target, attributes, pretty=pretty)


def _method(request: Request) -> str:
    """The verb of a request for a non-resource URL."""
    return {"HEAD": "head"}.get(request.method, request.method.lower())


def _verb(request: Request, target: Target) -> str:
    verb = _VERBS.get(request.method, request.method.lower())
    if target.name and not target.watch:
        return verb
    if verb == "get":
        return "watch" if target.watch or _is_watch(request) else "list"
    return "deletecollection" if verb == "delete" else verb


def _is_watch(request: Request) -> bool:
    return requests.boolean(request.query, "watch")


async def _serve_resource(
    api: Api, request: Request, target: Target, attributes: Attributes, *, pretty: bool
) -> web.StreamResponse:
    resource = _resource(api, target)
    if resource is None:
        return _page_not_found()
    attributes.kind = resource.kind
    if resource.custom is not None and resource.custom.deprecation_warning:
        attributes.warnings.append(resource.custom.deprecation_warning)
    form = responses.negotiate(request.headers.get("Accept", ""), watch=attributes.verb == "watch")
    call = Call(request, resource, attributes, form, pretty)
    if target.subresource:
        if resource.subresource(target.subresource) is None:
            if resource.custom is not None:
                raise not_found((resource.group, resource.plural), target.name)
            raise not_served()
        if (resource.plural, target.subresource, attributes.verb) == ("pods", "log", "get"):
            return logs.read(api, call)
        return _object_response(call, *await subresources.serve(api, call))
    if not _has_verb(resource, target, attributes.verb):
        raise not_allowed()
    return await _serve_verb(api, call, resource)


def _resource(api: Api, target: Target) -> ResourceType | None:
    """The resource type of a URL, or None if the response is a page. Raises StatusError if it is a Status."""
    resource = api.registry.find(target.group, target.version, target.plural)
    if resource is None:
        if target.group and not api.registry.is_built_in(target.group):
            return None
        raise not_served()
    if resource.namespaced and target.name and not target.namespace:
        if resource.custom is not None:
            return None
        raise not_served()
    if not resource.namespaced and target.namespace and resource.plural != "namespaces":
        raise not_served()
    return resource


def _has_verb(resource: ResourceType, target: Target, verb: str) -> bool:
    """Whether the resource has the verb, with or without a name and a namespace as in the URL."""
    if verb not in resource.verbs:
        return False
    match verb:
        case "list" | "watch":
            return True
        case "create" | "deletecollection":
            return not target.name and bool(target.namespace or not resource.namespaced)
    return bool(target.name)


async def _serve_verb(api: Api, call: Call, resource: ResourceType) -> web.StreamResponse:
    match call.attributes.verb:
        case "get":
            return _object_response(call, reads.get(api, call), 200)
        case "list":
            return _respond(call, reads.encode_list(call, reads.list_page(api, call)), 200)
        case "watch":
            return await watch.watch(api, call)
        case "create" if resource.verbs == ("create",):
            return _object_response(call, *await subresources.review(api, call))
        case "create":
            return _object_response(call, await writes.create(api, call), 201)
        case "update":
            return _object_response(call, *await writes.update(api, call))
        case "patch":
            return _object_response(call, *await writes.patch(api, call))
        case "delete":
            return _object_response(call, *await deletes.delete(api, call))
        case "deletecollection":
            selection = select(resource, call.attributes.namespace, "", call.query)
            revision = api.store.revision
            deleted = await deletes.delete_collection(api, call, selection)
            return _respond(call, reads.encode_list(call, reads.Page(deleted, revision)), 200)
    raise not_allowed()


def _object_response(call: Call, result: Item | Object, code: int) -> web.Response:
    """A response with one object: a stored one, or one that exists only in this response."""
    if isinstance(result, Item):
        data = reads.encode_item(call, result)
    elif call.form.shape == "Table" and result["kind"] == "Scale":
        data = tables.scale_table(result, call.form.version)
    else:
        data = orjson.dumps(result)
    return _respond(call, data, code)


def _respond(call: Call, data: bytes, code: int) -> web.Response:
    return responses.respond(data, call.form, code=code, warnings=call.attributes.warnings, pretty=call.pretty)


def _page_not_found() -> web.Response:
    return web.Response(text="404 page not found\n", status=404)


def _serve_non_resource(api: Api, request: Request, *, pretty: bool) -> web.Response:
    """Serve discovery, OpenAPI, health checks, metrics and the version."""
    registry, parts = api.registry, [part for part in request.path.split("/") if part]
    accept = request.headers.get("Accept", "")
    found: Object | None
    if request.method != "GET" and parts and parts[0] in _READ_ONLY_ROOTS:
        raise not_allowed()
    match parts:
        case ["healthz" | "livez" | "readyz" as name, *_]:
            return web.Response(text=_health(name, verbose="verbose" in request.query))
        case ["version"]:
            return responses.respond(orjson.dumps(discovery.VERSION), Form(), pretty=True)
        case ["openapi", *rest]:
            return openapi.serve(registry, rest, accept)
        case ["metrics"]:
            return web.Response(body=api.webhooks.metrics.text().encode(), content_type="text/plain")
        case ["api" | "apis" as root] if version := discovery.wants_aggregated(accept):
            return _aggregated_discovery(api, version, root)
        case []:
            found, pretty = {"paths": _paths(api)}, True
        case _:
            found = discovery.document(registry, parts, request.host)
    if found is None:
        return _page_not_found()
    form = replace(responses.negotiate(accept), shape="")
    return responses.respond(orjson.dumps(found), form, pretty=pretty)


def _aggregated_discovery(api: Api, version: str, root: str) -> web.Response:
    response = web.Response(body=orjson.dumps(discovery.aggregated(api.registry, version, core=root == "api")))
    response.headers["Content-Type"] = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    response.headers["Vary"] = "Accept"
    return response


def _health(name: str, *, verbose: bool) -> str:
    return f"[+]ping ok\n{name} check passed\n" if verbose else "ok"


def _paths(api: Api) -> list[str]:
    paths = {"/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"}
    for group, versions in api.registry.group_versions().items():
        if group:
            paths |= {f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)}
    return sorted(paths)
