"""Get and list: the latest state, an older state, or the pages of one consistent snapshot."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from kube_sandbox.apiserver.context import Api, Call
from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.http import codec, requests
from kube_sandbox.apiserver.http.responses import list_body, with_type
from kube_sandbox.apiserver.http.selection import select
from kube_sandbox.apiserver.printers import tables
from kube_sandbox.apiserver.storage.store import Item, Key, sorted_by_key

_META = "meta.k8s.io/v1"
_EVENTS = ("", "events")


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list: its items, its resource version, and the token for the next page.

    `remaining` is the number of items on the following pages; None when it is unknown or there are none.
    """

    items: list[Item]
    revision: int
    continue_: str = ""
    remaining: int | None = None

    @property
    def metadata(self) -> dict[str, object]:
        metadata: dict[str, object] = {"resourceVersion": str(self.revision)}
        if self.continue_:
            metadata["continue"] = self.continue_
        if self.remaining is not None:
            metadata["remainingItemCount"] = self.remaining
        return metadata


def encode_item(call: Call, item: Item) -> bytes:
    """One object in the representation that the client accepts. Raises StatusError 406 for a list representation."""
    match call.form.shape:
        case "Table":
            revision = item.object["metadata"].get("resourceVersion", "")
            return tables.table(call.resource, [item], {"resourceVersion": revision}, call.query, call.form.version)
        case "PartialObjectMetadata":
            return partial_metadata(item, call.form.version)
        case "PartialObjectMetadataList":
            raise StatusError(
                406,
                "you requested PartialObjectMetadataList, but the requested object is not a list"
                f" ({call.resource.kind})",
            )
    return codec.encode(call.resource, item)


def partial_metadata(item: Item, version: str) -> bytes:
    """An object as PartialObjectMetadata."""
    return with_type(
        f"meta.k8s.io/{version}", "PartialObjectMetadata", orjson.dumps({"metadata": item.object["metadata"]})
    )


def encode_list(call: Call, page: Page) -> bytes:
    """A list in the representation that the client accepts. Raises StatusError 406 for that of a single object."""
    resource = call.resource
    match call.form.shape:
        case "Table":
            return tables.table(resource, page.items, page.metadata, call.query, call.form.version)
        case "PartialObjectMetadataList":
            items = [partial_metadata(item, call.form.version) for item in page.items]
            return list_body(f"meta.k8s.io/{call.form.version}", "PartialObjectMetadataList", page.metadata, items)
        case "PartialObjectMetadata":
            raise StatusError(
                406, f"you requested PartialObjectMetadata, but the requested object is a list ({resource.list_kind})"
            )
    items = [codec.encode_in_list(resource, item) for item in page.items]
    metadata = page.metadata
    if resource.custom is not None:
        metadata = {"continue": "", **metadata}
    return list_body(resource.api_version, resource.list_kind, metadata, items)


def get(api: Api, call: Call) -> Item:
    """The object that the URL names. Raises StatusError 504 when `resourceVersion` of the query is in the future."""
    if version := call.query.get("resourceVersion", ""):
        try:
            _check_not_in_future(api, parse_version(version))
        except StatusError as error:
            if error.code == 400:  # the real server returns 400 for a list and 500 for a get
                raise StatusError(500, error.message.removeprefix("invalid resource version: "), reason="") from error
            raise
    return call.current(api)


def list_page(api: Api, call: Call) -> Page:
    """The page of objects that a list request selects."""
    query = call.query
    selection = select(call.resource, call.attributes.namespace, call.attributes.name, query)
    limit = requests.integer(query, "limit") or 0
    continue_ = query.get("continue", "")
    version, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    requests.integer(query, "timeoutSeconds")
    check_list_options(query, watch=False)
    if version == "0" and not continue_ and call.resource.storage != _EVENTS:
        limit = 0  # the real server answers from its cache, which has no pages; it has no cache of events
    start = ""
    if continue_:
        revision, start = _parse_continue_token(api, continue_)
        items = _items_at(api, call, revision, expired_page=True)
    elif match == "Exact" or (limit and version not in ("", "0") and not match):
        revision = parse_version(version)
        _check_not_in_future(api, revision)
        items = _items_at(api, call, revision)
    else:
        if version:
            _check_not_in_future(api, parse_version(version))
        revision = api.store.revision
        items = api.store.collection(call.resource.storage).items
    chosen = sorted_by_key(item for item in items.values() if selection.matches(item.object))
    if start:
        chosen = [item for item in chosen if "/".join(item.key) >= start]
    page, rest = chosen[:limit], len(chosen) - limit
    if limit <= 0 or rest < 0 or not (rest or _others_follow(items, page[-1], selection.namespace)):
        return Page(chosen, revision)
    token = _continue_token(revision, page[-1])
    return Page(page, revision, token, None if selection.filters else rest)


def _others_follow(items: Mapping[Key, Item], last: Item, namespace: str) -> bool:
    """Whether any object follows the last one of a page. The real server does not check whether it is selected."""
    return any(key > last.key and namespace in ("", key[0]) for key in items)


def _items_at(api: Api, call: Call, revision: int, *, expired_page: bool = False) -> dict[Key, Item]:
    collection = api.store.collection(call.resource.storage)
    if revision < collection.compacted_revision:
        if expired_page:
            raise StatusError(
                410,
                "The provided continue parameter is too old to display a consistent list result. You can start a new"
                " list without the continue parameter.",
            )
        raise StatusError(410, "The resourceVersion for the provided list is too old.")
    return collection.at(revision)


def too_old(revision: int, oldest: int) -> StatusError:
    return StatusError(410, f"too old resource version: {revision} ({oldest})")


def parse_version(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise StatusError(
            400,
            f"invalid resource version: resourceVersion: Invalid value: {json.dumps(text)}: strconv.ParseUint: parsing"
            f" {json.dumps(text)}: invalid syntax",
        )
    return int(text)


def _check_not_in_future(api: Api, revision: int) -> None:
    if revision > api.store.revision:
        raise version_too_large(revision, api.store.revision)


def version_too_large(revision: int, current: int) -> StatusError:
    return StatusError(
        504,
        f"Timeout: Too large resource version: {revision}, current: {current}",
        details={
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        },
    )


def _continue_token(revision: int, last: Item) -> str:
    """The `continue` token of the next page, which starts after the last object of this page."""
    token = {"v": _META, "rv": revision, "start": "/".join(last.key) + "\0"}
    return base64.urlsafe_b64encode(orjson.dumps(token)).decode().rstrip("=")


def _parse_continue_token(api: Api, text: str) -> tuple[int, str]:
    decoded = b""
    try:
        decoded = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        token = json.loads(decoded)
        revision, start = int(token["rv"]), str(token["start"])
    except (ValueError, KeyError, TypeError) as error:
        why = f"invalid character '{decoded[:1].decode(errors='replace')}' looking for beginning of value"
        raise StatusError(400, f"invalid continue token: continue key is not valid: {why}") from error
    return (revision if revision > 0 else api.store.revision), start


def check_list_options(query: Mapping[str, str], *, watch: bool) -> None:
    """Raise StatusError 422 for contradictory options (apimachinery's `ValidateListOptions`)."""
    match, version = query.get("resourceVersionMatch", ""), query.get("resourceVersion", "")
    initial = "sendInitialEvents" in query
    causes = []

    def forbid(field: str, why: str) -> None:
        causes.append(("FieldValueForbidden", f"Forbidden: {why}", field))

    if watch and initial and match != "NotOlderThan":
        forbid("resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
    if watch and match and not initial:
        forbid(
            "resourceVersionMatch", "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        )
    if not watch and match and not version:
        forbid("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided")
    if query.get("continue") and (match or (watch and version in ("", "0"))):
        forbid("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")
    known = ("NotOlderThan",) if watch else ("Exact", "NotOlderThan", "")
    if match and match not in known:
        supported = ", ".join(f'"{value}"' for value in known)
        causes.append(
            (
                "FieldValueNotSupported",
                f'Unsupported value: "{match}": supported values: {supported}',
                "resourceVersionMatch",
            )
        )
    if not watch and match == "Exact" and version == "0":
        forbid("resourceVersionMatch", 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    if not watch and initial:
        forbid("sendInitialEvents", "sendInitialEvents is forbidden for list")
    if causes:
        raise requests.invalid_options("ListOptions", causes)
