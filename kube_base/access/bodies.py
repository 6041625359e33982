"""The bodies of requests and responses: JSON, and the lists in it.

msgspec decodes the response's bytes directly into the type that the caller asks for. Fields that this type does not
have are dropped.
"""

from collections.abc import Callable
from typing import Annotated, Generic, TypeVar

import msgspec
import orjson

from kube_base.access.errors import SchemaError, UnreadableError

T = TypeVar("T")

_ESCAPED = [(character.encode(), b"\\u%04x" % ord(character)) for character in "<>&\u2028\u2029"]


class ListMeta(msgspec.Struct, rename="camel"):
    """The metadata of a list, or of a page of it."""

    resource_version: Annotated[str, msgspec.Meta(min_length=1)]
    continue_: str = msgspec.field(default="", name="continue")


class ObjectList(msgspec.Struct, Generic[T]):
    """A list. A watch continues from `metadata.resource_version`."""

    metadata: ListMeta
    items: list[T]


class Page(msgspec.Struct):
    """A page of a list, with undecoded items."""

    metadata: ListMeta
    items: list[msgspec.Raw] | None = None  # Go encodes an empty slice as null


def encode(body: object) -> bytes:
    """JSON as Go's `encoding/json` writes it: keys are sorted, and `<`, `>`, `&` and two separators are escaped.

    The API server stores `data` of a ControllerRevision as sent, and refuses each update after which Go would write it
    otherwise (ValidateControllerRevisionUpdate compares bytes). So no label, annotation or owner could change.
    """
    data = orjson.dumps(body, default=msgspec.to_builtins, option=orjson.OPT_SORT_KEYS)
    for character, escaped in _ESCAPED:
        data = data.replace(character, escaped)
    return data


def decode(data: bytes | msgspec.Raw, as_: type[T]) -> T:
    """The body as this type. UnreadableError: it is no JSON; SchemaError: it has another type."""
    try:
        return msgspec.json.decode(data, type=as_)
    except (msgspec.DecodeError, RecursionError) as error:
        kind = SchemaError if isinstance(error, msgspec.ValidationError) else UnreadableError
        raise kind(f"the API server's response cannot be decoded: {error}") from error


def project(data: bytes | msgspec.Raw, read: Callable[[bytes | msgspec.Raw], T], name: str) -> T:
    """The projection that `read` makes of an object of `name`. SchemaError: `read` raises msgspec.DecodeError or
    ValueError."""
    try:
        return read(data)
    except (ValueError, RecursionError) as error:  # msgspec.DecodeError is a ValueError
        raise SchemaError(f"an object of {name} cannot be read: {error}") from error
