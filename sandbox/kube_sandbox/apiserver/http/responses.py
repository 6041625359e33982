"""Content negotiation and the encoding of responses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import yaml
from aiohttp import web

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.http import warning_headers

JSON = "application/json"
YAML = "application/yaml"

_REPRESENTATIONS = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
_STREAMS = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
_SHAPES = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


@dataclass(frozen=True, slots=True)
class Form:
    """A representation of an object: the media type, and the kind and version in `meta.k8s.io` to convert it to.

    `shape` is Table, PartialObjectMetadata, PartialObjectMetadataList, or empty for the object itself.
    """

    media_type: str = JSON
    shape: str = ""
    version: str = "v1"


def negotiate(accept: str, *, watch: bool = False) -> Form:
    """The supported representation with the highest quality in an Accept header. Raises StatusError 406 for none."""
    for media_type, parameters in accepted(accept):
        if media_type in ("*/*", "application/*"):
            media_type = JSON
        if media_type != JSON and (media_type != YAML or watch):
            continue
        shape = parameters.get("as", "")
        if not shape:
            return Form(media_type)
        version = parameters.get("v", "")
        if shape in _SHAPES and parameters.get("g") == "meta.k8s.io" and version in ("v1", "v1beta1"):
            return Form(media_type, shape, version)
    raise not_acceptable(accept, watch=watch)


def not_acceptable(accept: str, *, watch: bool) -> StatusError:
    """406. The real server has one text for an unknown media type and another for an unknown conversion."""
    known = (JSON, YAML, "application/vnd.kubernetes.protobuf")
    if not any(media_type in (*known, "*/*", "application/*") for media_type, _ in accepted(accept)):
        listed = f"{_REPRESENTATIONS}, {_STREAMS}"
        return StatusError(406, f"406: Not Acceptable\n\nAvailable representations: {listed}", details={})
    wanted = _STREAMS if watch else _REPRESENTATIONS
    return StatusError(406, f"only the following media types are accepted: {wanted}")


def accepted(accept: str) -> list[tuple[str, Mapping[str, str]]]:
    """The media types and parameters in an Accept header, in descending order of quality."""
    clauses = []
    for clause in (accept or "*/*").split(","):
        media_type, *rest = (part.strip() for part in clause.split(";"))
        parameters = dict(part.partition("=")[::2] for part in rest)
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 0.0
        clauses.append((quality, media_type.lower(), parameters))
    clauses.sort(key=lambda clause: -clause[0])
    return [(media_type, parameters) for _, media_type, parameters in clauses]


def with_type(api_version: str, kind: str, body: bytes) -> bytes:
    """The JSON of an object with `apiVersion` and `kind` added at the start."""
    head = b'{"kind":%b,"apiVersion":%b' % (orjson.dumps(kind), orjson.dumps(api_version))
    return head + (b"," + body[1:] if len(body) > 2 else b"}")


def respond(
    data: bytes, form: Form, *, code: int = 200, warnings: Sequence[str] = (), pretty: bool = False
) -> web.Response:
    """A response with a JSON body, encoded in the media type of `form`, and with Warning headers."""
    if form.media_type == YAML:
        data = yaml.dump(orjson.loads(data), Dumper=yaml.CSafeDumper, allow_unicode=True).encode()
    elif pretty:
        data = orjson.dumps(orjson.loads(data), option=orjson.OPT_INDENT_2)
    response = web.Response(body=data, status=code, content_type=form.media_type)
    add_warnings(response, warnings)
    response.headers["Cache-Control"] = "no-cache, private"
    return response


def add_warnings(response: web.StreamResponse, warnings: Sequence[str]) -> None:
    for value in warning_headers.headers(warnings):
        response.headers.add("Warning", value)


def success(details: Object) -> Object:
    """The Status of a successful deletion."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def created() -> Object:
    """The Status of a subresource that was created and is not stored, such as a Binding."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def list_body(api_version: str, kind: str, metadata: Mapping[str, Any], items: Sequence[bytes]) -> bytes:
    return b'{"kind":%b,"apiVersion":%b,"metadata":%b,"items":[%b]}' % (
        orjson.dumps(kind),
        orjson.dumps(api_version),
        orjson.dumps(metadata),
        b",".join(items),
    )


def wants_pretty(query: Mapping[str, str], user_agent: str) -> bool:
    """Whether to indent the JSON: for the `pretty` parameter, and by default for browsers and curl."""
    if "pretty" in query:
        return query["pretty"].lower() not in ("false", "0")
    return user_agent.startswith(("curl", "Wget", "Mozilla/"))
