"""The workloads that the arguments name, in the syntax of kubectl."""

from collections.abc import Sequence
from typing import NamedTuple

from altershield.api.names import is_name
from altershield.views.named import Named, named
from altershield.workloads import ADAPTERS, Adapter
from kube_base.errors import UsageError


class Selection(NamedTuple):
    """Workloads of these kinds with this name. An empty name means all names."""

    adapters: Sequence[Adapter]
    name: str

    @property
    def described(self) -> str:
        """The workload in an error, as `deployments.apps "web"`, or as `workload "web"` if no type was named."""
        return f'{full_plural(self.adapters[0]) if len(self.adapters) == 1 else "workload"} "{self.name}"'

    @property
    def argument(self) -> str:
        """The workload as an argument of a command: `deployment/web`, or `web` if no type was named."""
        return f"{self.adapters[0].resource.kind.lower()}/{self.name}" if len(self.adapters) == 1 else self.name


EVERYTHING = Selection(ADAPTERS, "")


def full_plural(adapter: Adapter) -> str:
    """The full name of the type: `deployments.apps`."""
    return adapter.resource.full_name


def parse(arguments: Sequence[str]) -> list[Selection]:
    """The selections of `NAME` and `TYPE/NAME` (any number of both), `TYPE`, or `TYPE NAME...`. No argument means all
    workloads. UsageError: AlterShield does not support the type, or no workload can have the name."""
    if not arguments:
        return [EVERYTHING]
    return [_selection(each) for each in named(arguments, is_type)]


def is_type(word: str) -> bool:
    """Whether kubectl understands the word as a type of workloads."""
    return _adapter(word) is not None


def types(incomplete: str) -> list[str]:
    """The types that begin with `incomplete`, for shell completion."""
    kinds = (adapter.resource.kind.lower() for adapter in ADAPTERS)
    return [kind for kind in kinds if kind.startswith(incomplete)]


def _selection(found: Named) -> Selection:
    if found.type is None and found.name and is_name(found.name):
        return Selection(ADAPTERS, found.name)
    adapter = _adapter(found.type or "")
    if adapter is None or found.name == "":
        raise _not_a_workload(found.argument)
    if found.name is not None and not is_name(found.name):
        raise UsageError(f'no workload can have the name "{found.name}"')
    return Selection((adapter,), found.name or "")


def _not_a_workload(argument: str) -> UsageError:
    kinds = ", ".join(f"{each.resource.kind.lower()} ({', '.join(each.short_names)})" for each in ADAPTERS)
    return UsageError(f'"{argument}" is not a workload; write NAME or TYPE/NAME, where TYPE is one of: {kinds}')


def _adapter(kind: str) -> Adapter | None:
    """The adapter of the type that kubectl calls so."""
    return next((adapter for adapter in ADAPTERS if adapter.resource.is_called(kind, adapter.short_names)), None)
