"""OpenAPI documents: what kubectl validates and explains with."""

import orjson
from aiohttp import web

from altershield.sandbox.apiserver.errors import StatusError
from altershield.sandbox.apiserver.registry import Registry


def serve(registry: Registry, path: list[str], accept: str) -> web.Response:
    """`/openapi/v2`, the index at `/openapi/v3`, and a document per group and version below it."""
    if path == ["v3"]:
        paths = {}
        for group, versions in registry.group_versions().items():
            for version in versions:
                where = f"apis/{group}/{version}" if group else f"api/{version}"
                paths[where] = {"serverRelativeURL": f"/openapi/v3/{where}?hash={registry.changes}"}
        return web.Response(body=orjson.dumps({"paths": paths}), content_type="application/json")
    raise StatusError(404, "the server could not find the requested resource", details={})
