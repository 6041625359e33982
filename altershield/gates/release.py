"""What is judged, and what a closed gate says about it."""

import datetime
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from altershield.api.change_workload import Written
from altershield.api.gates.named_workload import NamedWorkload
from altershield.api.gates.rules import GateMode, GateRules, GateScope, Judged, Running
from altershield.api.label_selectors import selects
from altershield.api.selectors import Selector
from altershield.gates.fields.changes import Fields

Labels = Mapping[str, str]
Place = tuple[str, str]
"""Namespace and name of an object."""

NO_WORKLOAD = NamedWorkload()


@dataclass(frozen=True, slots=True)
class Admitted:
    """A release that this process admitted a short time ago. The status of a limit may not count it yet."""

    workload: NamedWorkload
    version: str
    time: float
    """Unix seconds."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release that would begin, or go on. One that goes back to the version before is not judged."""

    namespace: str
    namespace_labels: Labels
    labels: tuple[Labels, ...]
    """The labels of the workload: before the release, after it, and at the release before it, as far as they exist. So
    no gate can be evaded by another label in the same request, or in one before."""
    judged: Judged = Judged.UPDATE
    workload: NamedWorkload = NO_WORKLOAD
    version: str = ""
    """The version that would be released."""
    repairs: bool = False
    """Whether it repairs a failure: the label `ignored-suspend` admits it."""
    succeeded: float = 0.0
    """When the present release of the workload succeeded, Unix seconds; 0: it did not, or there is none."""
    admitted: Mapping[Place, Collection[Admitted]] = field(default_factory=dict)
    """Releases that this process admitted a short time ago, by the ReleaseLimit that counts them."""
    fields: Callable[[], Fields] | None = None
    """The fields that the release changes, read when they are needed; None: only times are asked, because the release
    was admitted before."""
    written: Callable[[], Written | None] = lambda: None
    """What the field manager or user who releases wrote last to guarded fields; None: that is not known."""


@dataclass(frozen=True, slots=True)
class Closed:
    """An object whose gate is closed for a release."""

    kind: str
    namespace: str
    name: str
    rules: GateScope
    reason: str
    """Why no release may begin, by the person who wrote the object; may be empty."""
    what: str
    """What is closed, as the beginning of a sentence for people: `no release may begin`."""
    since: str = ""
    """Since when, in the format of Kubernetes; empty: it is not known."""
    opens_at: str = ""
    """When it opens, in the format of Kubernetes; empty: it is not known, or a person decides."""
    zone: datetime.tzinfo = datetime.UTC
    """The time zone in which people think about the gate."""
    rule: str = ""
    """The rule of the object that the release meets; empty: the object is closed for each release that it selects."""
    judges_back: bool = False
    """Whether it also judges a release that goes back from a version that succeeded."""
    only_warns: bool = False
    """Whether releases pass with a warning, although the mode of the object is `enforce`."""

    @property
    def enforced(self) -> bool:
        return self.rules.mode is GateMode.ENFORCE and not self.only_warns

    @property
    def holds(self) -> bool:
        """Whether a release is held rather than denied, if it can be."""
        return self.rules.holds

    @property
    def stops_running(self) -> bool:
        """Whether a release in steps waits before its next step."""
        return self.enforced and isinstance(self.rules, GateRules) and self.rules.running is Running.HOLD


class Placed(Protocol):
    """An object with rules, in its namespace."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def rules(self) -> GateScope: ...


class Timed(Placed, Protocol):
    """An object that is closed at some times. Times are Unix seconds; 0: it is not known."""

    def is_open(self, now: float) -> bool: ...
    def closes_at(self, now: float) -> float: ...
    def opens_at(self, now: float) -> float: ...


def changes_at(gate: Timed, now: float) -> float:
    """When an open gate closes, or a closed one opens, Unix seconds; 0: it is not known."""
    return gate.closes_at(now) if gate.is_open(now) else gate.opens_at(now)


def unchanged_until(gates: Iterable[Timed], now: float) -> float:
    """When the first of them closes or opens, Unix seconds; infinity: it is not known."""
    return min((changes_at(each, now) or math.inf for each in gates), default=math.inf)


def selects_namespace(gate: Placed, release: Release, system_namespace: str) -> bool:
    """Whether the object judges releases of this namespace: its own one, or, from AlterShield's namespace, those
    namespaces that it selects."""
    if gate.namespace != system_namespace:
        return gate.namespace == release.namespace
    return gate.rules.namespace_selector is None or _meets(gate.rules.namespace_selector, release.namespace_labels)


def selects_any(gate: Placed, release: Release) -> bool:
    """Whether the object judges the release: it selects the workload by any of its labels."""
    rules = gate.rules
    return release.judged in rules.judges and any(_meets(rules.selector, each) for each in release.labels)


def selects_all(gate: Placed, release: Release) -> bool:
    """Whether the object judges the release: it selects the workload by all of its labels. So nobody opens a gate for a
    workload by another label."""
    rules = gate.rules
    return release.judged in rules.judges and all(_meets(rules.selector, each) for each in release.labels)


def _meets(selector: Selector, labels: Labels) -> bool:
    return selects(selector.match_labels, selector.match_expressions, labels)


def by_name(closed: Sequence[Closed]) -> tuple[Closed, ...]:
    """In a stable order: those that are enforced first."""
    return tuple(sorted(closed, key=lambda each: (not each.enforced, each.kind, each.namespace, each.name)))
