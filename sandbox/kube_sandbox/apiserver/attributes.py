"""The attributes of one request: the user, the verb and the resource. Authorization and admission use them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

Object = dict[str, Any]

_Json = TypeVar("_Json")


def copied(value: _Json) -> _Json:
    """A deep copy of a JSON value. `copy.deepcopy` takes several times as long."""
    if isinstance(value, dict):
        return {name: copied(below) if below.__class__ in _NESTED else below for name, below in value.items()}  # type: ignore[return-value]
    if isinstance(value, list):
        return [copied(item) if item.__class__ in _NESTED else item for item in value]  # type: ignore[return-value]
    return value


_NESTED = (dict, list)


@dataclass(frozen=True, slots=True)
class User:
    """An authenticated user, with the fields of `UserInfo` in `authentication.k8s.io`."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class Attributes:
    """The attributes of one request.

    `operation` is CREATE, UPDATE, DELETE or CONNECT, and empty for reads. `obj` is the object in the request; admission
    may replace it. `old` is the stored object, None on create. `options` is the CreateOptions, UpdateOptions,
    PatchOptions or DeleteOptions object. For a non-resource URL, `path` is set and the other fields are empty.
    `warnings` collects the texts of the response's Warning headers, also when the request fails.
    """

    user: User
    verb: str
    group: str = ""
    version: str = ""
    plural: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    path: str = ""
    operation: str = ""
    obj: Object | None = None
    old: Object | None = None
    options: Object = field(default_factory=dict)
    dry_run: bool = False
    warnings: list[str] = field(default_factory=list)

    @property
    def namespace_or_self(self) -> str:
        """The namespace for authorization and admission. A Namespace object counts as part of its own namespace."""
        is_namespace = self.plural == "namespaces" and not self.group
        return self.namespace or (self.name if is_namespace else "")


class Reader(Protocol):
    """Read access to stored objects. Callers must not change the objects."""

    def get(self, group: str, plural: str, name: str, namespace: str = "") -> Object | None: ...

    def list(self, group: str, plural: str, namespace: str = "") -> Sequence[Object]: ...
