"""The objects that the arguments name, in the syntax of kubectl."""

from collections.abc import Sequence
from typing import NamedTuple

from altershield.api.names import is_name
from altershield.api.protected_kinds import PROTECTED_KINDS, ProtectedKind
from altershield.views.named import Named, named
from altershield.views.names import resource_name
from kube_base.errors import UsageError


class NamedObject(NamedTuple):
    kind: ProtectedKind
    name: str

    def __str__(self) -> str:
        """As kubectl prints it: `deployment.apps/web`."""
        return resource_name(self.kind.resource, self.name)


def parse(arguments: Sequence[str]) -> list[NamedObject]:
    """The objects of `TYPE/NAME...` or `TYPE NAME...`. UsageError: objects of the type cannot be protected, or none can
    have the name."""
    return [_object(each) for each in named(arguments, lambda word: _kind(word) is not None)]


def _object(found: Named) -> NamedObject:
    kind = _kind(found.type or "")
    if kind is None or not is_name(found.name or ""):
        known = ", ".join(dict.fromkeys(each.resource.kind.lower() for each in PROTECTED_KINDS))
        raise UsageError(
            f'"{found.argument}" cannot be protected; write TYPE/NAME or TYPE NAME, where TYPE is one of: {known}'
        )
    return NamedObject(kind, found.name or "")


def kinds(incomplete: str) -> list[str]:
    """The kinds that begin with `incomplete`, for shell completion."""
    known = dict.fromkeys(f"{each.resource.kind.lower()}/" for each in PROTECTED_KINDS)
    return [kind for kind in known if kind.startswith(incomplete)]


def _kind(word: str) -> ProtectedKind | None:
    """The kind that kubectl calls so. A built-in kind comes before one of OpenKruise with the same name."""
    return next((kind for kind in PROTECTED_KINDS if kind.resource.is_called(word, kind.short_names)), None)
