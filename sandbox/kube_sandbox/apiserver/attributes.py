"""What is known of one request: who asks for what. Authorization and admission decide on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class User:
    """An authenticated user, as `authentication.k8s.io` describes one."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class Attributes:
    """One request. Admission may replace `obj`; `options` is the CreateOptions, UpdateOptions, PatchOptions or
    DeleteOptions object, `old` the stored object (None on create), `operation` CREATE, UPDATE, DELETE or CONNECT
    (empty for reads). For a non-resource URL `path` is set and the rest is empty. `warnings` collects what the
    answer's Warning headers say, whether the request succeeds or not."""

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
        """The namespace that counts for authorization and admission: a Namespace lies in itself."""
        is_namespace = self.plural == "namespaces" and not self.group
        return self.namespace or (self.name if is_namespace else "")


class Reader(Protocol):
    """Read access to what is stored, whatever stores it. Objects must not be changed."""

    def get(self, group: str, plural: str, name: str, namespace: str = "") -> Object | None: ...

    def list(self, group: str, plural: str, namespace: str = "") -> Sequence[Object]: ...
