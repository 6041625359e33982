"""Parses the URL, the query and the body of a request, with the checks of the real server."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import yaml

from kube_sandbox.apiserver import syntax
from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.errors import StatusError, invalid
from kube_sandbox.apiserver.gotext import TYPE_META, json_name
from kube_sandbox.apiserver.http import protobuf

_SUMMARY = 30
_NO_KIND = "couldn't get version/kind"
MAX_BODY = 3 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Target:
    """The parts of a resource URL. Parts that the URL does not contain are empty."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch: bool = False


def parse_path(path: str) -> Target | None:
    """The parts of `/api/v1/...` or `/apis/group/version/...`; None for any other URL."""
    match [part for part in path.split("/") if part]:
        case ["api", version, *rest] if rest:
            group = ""
        case ["apis", group, version, *rest] if rest:
            pass
        case _:
            return None
    watch = rest[0] == "watch" and len(rest) > 1
    if watch:
        rest = rest[1:]
    namespace = ""
    match rest:
        case ["namespaces", name]:
            return Target(group, version, "namespaces", name, name, watch=watch)
        case ["namespaces", name, ("status" | "finalize") as part]:
            return Target(group, version, "namespaces", name, name, part, watch)
        case ["namespaces", namespace, *rest]:
            pass
    plural, name, *more = (*rest, "", "")
    return Target(group, version, plural, namespace, name, "/".join(part for part in more if part), watch)


def integer(query: Mapping[str, str], key: str) -> int | None:
    """An integer from the query, or None. Raises StatusError 400 for other text."""
    text = query.get(key, "")
    if not text:
        return None
    if not re.fullmatch(r"[+-]?\d{1,19}", text):
        raise StatusError(400, f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def boolean(query: Mapping[str, str], key: str) -> bool:
    """A boolean from the query. Every value except `false` and `0` is true, as in Kubernetes."""
    value = query.get(key)
    return value is not None and value.lower() not in ("false", "0")


_FIELD_VALIDATIONS = ("", "Ignore", "Strict", "Warn")


def write_options(kind: str, query: Mapping[str, Any], dry_run: list[str]) -> Object:
    """The CreateOptions, UpdateOptions or PatchOptions of a query. Raises StatusError 422 for invalid options."""
    options: Object = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    causes = _dry_run_causes(dry_run)
    if dry_run and not causes:
        options["dryRun"] = dry_run
    if force := query.get("force"):
        options["force"] = force.lower() not in ("false", "0")
    if validation := query.get("fieldValidation"):
        options["fieldValidation"] = validation
        if validation not in _FIELD_VALIDATIONS:
            known = ", ".join(json.dumps(value) for value in _FIELD_VALIDATIONS)
            causes.append(
                (
                    "FieldValueNotSupported",
                    f'Unsupported value: "{validation}": supported values: {known}',
                    "fieldValidation",
                )
            )
    if manager := query.get("fieldManager"):
        options["fieldManager"] = manager
        if len(manager) > 128:
            causes.append(("FieldValueTooLong", "Too long: may not be more than 128 bytes", "fieldManager"))
        elif not manager.isprintable():
            index, bad = next((i, c) for i, c in enumerate(manager) if not c.isprintable())
            shown = json.dumps(manager).replace("\\u00", "\\x")
            why = f"invalid character U+{ord(bad):04X} (at position {index})"
            causes.append(("FieldValueInvalid", f"Invalid value: {shown}: {why}", "fieldManager"))
    if causes:
        raise invalid_options(kind, causes)
    return options


def _dry_run_causes(dry_run: list[str]) -> list[tuple[str, str, str]]:
    if dry_run in ([], ["All"]):
        return []
    listed = " ".join(json.dumps(value) for value in dry_run)
    return [("FieldValueNotSupported", f'Unsupported value: [{listed}]: supported values: "All"', "dryRun")]


def invalid_options(kind: str, causes: list[tuple[str, str, str]]) -> StatusError:
    """422 for invalid request options. A cause is (reason, message, field)."""
    listed = [{"reason": reason, "message": message, "field": field} for reason, message, field in causes]
    return invalid("meta.k8s.io", kind, "", listed)


def delete_options(body: bytes, content_type: str, query: Mapping[str, Any], dry_run: list[str]) -> Object:
    """The DeleteOptions in the body, or in the query when the body is empty. Raises StatusError 400 for a malformed
    body and 422 for invalid options."""
    if body:
        try:
            options = decode(body, content_type, "DeleteOptions")
        except StatusError as error:
            if error.code != 400:
                raise
            why = error.message.partition("(must be of type DeleteOptions): ")[2].rpartition(" (")[0]
            raise StatusError(400, why or error.message) from error
        if (kind := options.get("kind", "DeleteOptions")) != "DeleteOptions":
            scheme = "pkg/apis/meta/internalversion/scheme/register.go:27"
            version = options.get("apiVersion", "v1")
            raise StatusError(400, f'no kind "{kind}" is registered for version "{version}" in scheme "{scheme}"')
    else:
        options = {}
        if (seconds := integer(query, "gracePeriodSeconds")) is not None:
            options["gracePeriodSeconds"] = seconds
        if policy := query.get("propagationPolicy"):
            options["propagationPolicy"] = policy
        if orphan := query.get("orphanDependents"):
            options["orphanDependents"] = orphan.lower() not in ("false", "0")
        if dry_run:
            options["dryRun"] = dry_run
    options = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"} | {
        key: value for key, value in options.items() if key not in ("kind", "apiVersion") and value is not None
    }
    check_delete_options(options)
    return options


def check_delete_options(options: Object) -> None:
    """Raise StatusError 400 for options of a wrong type and 422 for invalid ones."""
    types = {
        "gracePeriodSeconds": int,
        "propagationPolicy": str,
        "orphanDependents": bool,
        "dryRun": list,
        "preconditions": dict,
    }
    for key, type_ in types.items():
        value = options.get(key)
        if value is not None and (not isinstance(value, type_) or (type_ is int and isinstance(value, bool))):
            raise StatusError(400, f"json: cannot unmarshal into Go struct field DeleteOptions.{key}")
    causes = []
    policy, orphan = options.get("propagationPolicy"), options.get("orphanDependents")
    if policy is not None and orphan is not None:
        causes.append(
            (
                "FieldValueInvalid",
                f'Invalid value: "{policy}": orphanDependents and deletionPropagation cannot be both set',
                "propagationPolicy",
            )
        )
    if policy not in (None, "Foreground", "Background", "Orphan"):
        causes.append(
            (
                "FieldValueNotSupported",
                f'Unsupported value: "{policy}": supported values: "Foreground", "Background", "Orphan", "nil"',
                "propagationPolicy",
            )
        )
    causes += _dry_run_causes(options.get("dryRun") or [])
    if causes:
        raise invalid_options("DeleteOptions", causes)


_ACCEPTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"


def decode(body: bytes, content_type: str, kind: str) -> Object:
    """The object in a JSON, YAML or protobuf body. Raises StatusError 415 for another content type and 400 for a
    malformed body."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type in ("", "application/json"):
        try:
            obj = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise _unreadable(
                kind, f"{_NO_KIND}; json parse error: {syntax.json_error(body.decode(errors='replace'))}", body
            ) from error
    elif media_type == "application/yaml":
        try:
            obj = load_yaml(body)
        except ValueError as error:
            raise _unreadable(kind, f"yaml: {error}", body) from error
    elif media_type == protobuf.MEDIA_TYPE:
        try:
            obj = protobuf.decode(body)
        except (ValueError, LookupError, OverflowError) as error:
            raise StatusError(400, f"the object provided is unrecognized (must be of type {kind}): {error}") from error
    else:
        raise StatusError(
            415, f"the body of the request was in an unknown format - accepted media types include: {_ACCEPTED}"
        )
    if not isinstance(obj, dict):
        if obj is None:
            return {}
        why = f"json: cannot unmarshal {json_name(obj)} into Go value of type {TYPE_META}"
        raise _unreadable(kind, f"{_NO_KIND}; json parse error: {why}", body)
    for key in ("apiVersion", "kind"):
        if not isinstance(obj.get(key, ""), str):
            why = f"json: cannot unmarshal {json_name(obj[key])} into Go struct field .{key} of type string"
            raise _unreadable(kind, f"{_NO_KIND}; json parse error: {why}", body)
    return obj


def _unreadable(kind: str, why: str, body: bytes) -> StatusError:
    return StatusError(400, f"the object provided is unrecognized (must be of type {kind}): {why} ({summary(body)})")


def summary(body: bytes) -> str:
    """The first bytes of a body as error messages quote them (apimachinery's `summarizeData`)."""
    if not body:
        return "<empty>"
    start = body[:_SUMMARY]
    shown = start.decode(errors="replace") if body.startswith(b"{") else start.hex()
    return shown if len(body) <= _SUMMARY else f"{shown} ..."


class _Loader(yaml.CSafeLoader):
    """A YAML loader that leaves times and dates as text, like Kubernetes."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def load_yaml(body: bytes) -> Any:
    """The JSON value of a YAML document. Raises ValueError with Go's error text for a malformed document."""
    if b"&" in body and b"*" in body and _has_many_aliases(body):
        raise ValueError("document contains excessive aliasing")
    try:
        return orjson.loads(orjson.dumps(yaml.load(body, _Loader), option=orjson.OPT_NON_STR_KEYS))  # noqa: S506  (a safe loader)
    except (yaml.YAMLError, orjson.JSONEncodeError, ValueError, RecursionError) as error:
        raise ValueError(syntax.yaml_error(error)) from error


def _has_many_aliases(body: bytes) -> bool:
    """Whether a document has so many aliases that its expansion may be too large."""
    return len(re.findall(rb"\*\w+", body)) > 100
