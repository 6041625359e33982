"""Requests: the first argument of handlers, with the objects decoded into the type that the handler declares."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Generic, TypeVar, cast

import msgspec

from altershield.admission.registration import Operation
from kube_base.resources import Resource

_Text = Annotated[str, msgspec.Meta(max_length=253)]
_R = TypeVar("_R")


class Metadata(msgspec.Struct, frozen=True):
    """The metadata that handlers read. Unlike `altershield.api.meta.ObjectMeta`, its texts have bounds, because any
    caller may send a review, and it costs no decoding of other fields."""

    name: _Text = ""
    uid: _Text = ""
    labels: dict[str, str] | None = None


class Object(msgspec.Struct, frozen=True, rename="camel"):
    """The fields that every handler reads. A handler that reads more fields declares a subclass."""

    metadata: Metadata
    api_version: str = ""
    kind: str = ""

    @property
    def labels(self) -> dict[str, str] | None:
        return self.metadata.labels

    def label(self, key: str) -> str | None:
        labels = self.metadata.labels
        return labels.get(key) if labels else None

    @property
    def annotations(self) -> Mapping[str, str] | None:
        """The annotations that handlers write, as far as they exist; None if there is no annotation at all."""
        return None

    @property
    def template_labels(self) -> dict[str, str] | None:
        """The labels of the pod template, for kinds that have one."""
        return None

    @property
    def has_template_metadata(self) -> bool:
        """Whether `/spec/template/metadata` exists, so that a patch may add labels to it."""
        return False

    @property
    def dry_run(self) -> bool:
        """Whether the object says that its request is a dry run, as an Eviction can."""
        return False

    def problem(self) -> str:
        """Why handlers cannot read the object. Empty: they can."""
        return ""


T = TypeVar("T", bound=Object)


def is_dry_run(flag: bool | None, obj: object) -> bool:
    """Whether a request changes nothing. `flag`: what the API server says, which does not read the options in the
    object."""
    return bool(flag) or (isinstance(obj, Object) and obj.dry_run)


class Request(msgspec.Struct, Generic[T], frozen=True):
    """One admission request. On a DELETE, `object` is the object that is deleted, and `old_object` is None."""

    resource: Resource
    subresource: str
    operation: Operation
    name: str
    """Empty if the API server has not generated it yet."""
    namespace: str
    user: str
    groups: tuple[str, ...]
    dry_run: bool
    """See `is_dry_run`."""
    raw_options: msgspec.Raw
    object: T
    old_object: T | None
    received: float
    """When the gatekeeper received the request, Unix seconds."""
    memo: dict[Callable[..., Any], Any]

    @property
    def kind(self) -> str:
        """The kind in lower case, as users see it in messages."""
        return self.resource.kind.lower()

    @property
    def options(self) -> dict[str, Any]:
        """The CreateOptions, UpdateOptions or DeleteOptions of the request, or an empty dict."""
        return self.once(_options)

    @property
    def field_manager(self) -> str:
        """The field manager that the client named; empty: it named none."""
        found = self.options.get("fieldManager")
        return found if isinstance(found, str) else ""

    def once(self, compute: "Callable[..., _R]", *more: Any) -> _R:
        """The result of `compute` for this request and `more`, which are the same in each call for it. It is computed
        once for all handlers."""
        if compute not in self.memo:
            self.memo[compute] = compute(self, *more)
        return cast(_R, self.memo[compute])


def _options(request: Request[Any]) -> dict[str, Any]:
    found = msgspec.json.decode(request.raw_options) if request.raw_options else None
    return found if isinstance(found, dict) else {}
