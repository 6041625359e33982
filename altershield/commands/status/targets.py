"""Which workloads the arguments name, written as kubectl takes them."""

from collections.abc import Sequence
from typing import NamedTuple

from altershield.errors import UsageError
from altershield.workloads import ADAPTERS, Adapter


class Target(NamedTuple):
    """Workloads of these kinds with this name; with any name where it is empty."""

    adapters: Sequence[Adapter]
    name: str

    @property
    def described(self) -> str:
        """The workload as kubectl names it in an error, with its type and group; `workload "web"` without a type."""
        return f'{full_plural(self.adapters[0]) if len(self.adapters) == 1 else "workload"} "{self.name}"'


EVERYTHING = Target(ADAPTERS, "")


def full_plural(adapter: Adapter) -> str:
    """The plural and the group, as kubectl writes a type in full."""
    return f"{adapter.resource.plural}.{adapter.resource.group}"


def parse(arguments: Sequence[str]) -> list[Target]:
    """The targets of `NAME`, `TYPE/NAME` (any number of both), `TYPE` or `TYPE NAME...`; everything where there is no
    argument. UsageError for a type that AlterShield does not look after."""
    if not arguments:
        return [EVERYTHING]
    kind, *names = arguments
    adapter = _adapter(kind)
    if adapter is None or any("/" in name for name in names):
        return [_one(argument) for argument in arguments]
    return [Target((adapter,), name) for name in names or ("",)]


def types(incomplete: str) -> list[str]:
    """The types that a shell completes a word to."""
    kinds = (adapter.resource.kind.lower() for adapter in ADAPTERS)
    return [kind for kind in kinds if kind.startswith(incomplete)]


def _one(argument: str) -> Target:
    kind, slash, name = argument.rpartition("/")
    if not slash:
        return Target(ADAPTERS, name)
    adapter = _adapter(kind)
    if adapter is None or not name:
        kinds = ", ".join(f"{each.resource.kind.lower()} ({', '.join(each.short_names)})" for each in ADAPTERS)
        raise UsageError(f'"{argument}" names no workload; write NAME or TYPE/NAME, where TYPE is one of: {kinds}')
    return Target((adapter,), name)


def _adapter(kind: str) -> Adapter | None:
    """The kind of this name: singular, plural or short, each also with `.GROUP` or `.VERSION.GROUP`."""
    name, _, qualifier = kind.lower().partition(".")
    for adapter in ADAPTERS:
        resource = adapter.resource
        if name in (resource.kind.lower(), resource.plural, *adapter.short_names) and qualifier in (
            "",
            resource.group,
            f"{resource.version}.{resource.group}",
        ):
            return adapter
    return None
