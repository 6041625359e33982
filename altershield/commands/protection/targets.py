"""The objects that the arguments name, in the syntax of kubectl: KIND/NAME."""

from typing import NamedTuple

from altershield.api.names import is_name
from altershield.api.protected_kinds import PROTECTED_KINDS, ProtectedKind
from altershield.errors import UsageError


class Target(NamedTuple):
    kind: ProtectedKind
    name: str

    def __str__(self) -> str:
        """As kubectl prints it: `deployment.apps/web`."""
        return resource_name(self.kind, self.name)


def resource_name(kind: ProtectedKind, name: str) -> str:
    """As kubectl prints it: `deployment.apps/web`."""
    return f"{f'{kind.resource.kind.lower()}.{kind.resource.group}'.removesuffix('.')}/{name}"


def parse(argument: str) -> Target:
    """The object of `KIND/NAME`. UsageError: objects of the kind cannot be protected, or none can have the name."""
    word, _, name = argument.partition("/")
    kind = _kind(word)
    if kind is None or not is_name(name):
        known = ", ".join(dict.fromkeys(each.resource.kind.lower() for each in PROTECTED_KINDS))
        raise UsageError(f'"{argument}" cannot be protected; write KIND/NAME, where KIND is one of: {known}')
    return Target(kind, name)


def kinds(incomplete: str) -> list[str]:
    """The kinds that begin with `incomplete`, for shell completion."""
    known = dict.fromkeys(f"{each.resource.kind.lower()}/" for each in PROTECTED_KINDS)
    return [kind for kind in known if kind.startswith(incomplete)]


def _kind(word: str) -> ProtectedKind | None:
    """The kind that kubectl calls so. A built-in kind comes before one of OpenKruise with the same name."""
    return next((kind for kind in PROTECTED_KINDS if kind.resource.is_called(word, kind.short_names)), None)
