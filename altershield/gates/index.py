"""Finds the gates that may be closed for a release, without a look at all of them. Pure functions."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from altershield.api.selectors import Selector
from altershield.gates.release import Placed, Release

P = TypeVar("P", bound=Placed)

_Key = tuple[str, str, str]
"""Of a label that a selector requires: whose label it is, its key and its value."""

_WORKLOAD, _NAMESPACE = "workload", "namespace"


class Index(Generic[P]):
    """Gates of one kind and namespace, by a label that each requires. Only those of AlterShield's namespace select
    namespaces."""

    def __init__(self, placed: Iterable[P], system_namespace: str) -> None:
        self.all = tuple(placed)
        """All of them."""
        self._system_namespace = system_namespace
        self._any: list[P] = []
        self._by_label: dict[_Key, list[P]] = {}
        self.holds = False
        """Whether one of them holds releases rather than denies them."""
        self._from, self._until = math.inf, -math.inf
        for each in self.all:
            self.holds |= each.rules.holds
            key = _key(_WORKLOAD, each.rules.selector)
            if key is None and each.namespace == system_namespace:
                key = _key(_NAMESPACE, each.rules.namespace_selector)
            if key is None:
                self._any.append(each)
            else:
                self._by_label.setdefault(key, []).append(each)

    def at(self, now: float, may_be_closed: Callable[[Sequence[P], float], tuple[Iterable[P], float]]) -> "Index[P]":
        """Those that may be closed at `now`, Unix seconds: few, as most windows and freezes are open most of the time.
        They are looked for again when the next one closes or opens. `may_be_closed`: that of their kind (`Gate`)."""
        if not self._from <= now < self._until:
            found, self._until = may_be_closed(self.all, now)
            self._from, self._at = now, Index(found, self._system_namespace)
        return self._at

    def candidates(self, release: Release) -> list[P]:
        """Those that may select the workload or its namespace. All others do not."""
        found = self._any
        if self._by_label:
            found = list(found)
            for key in _keys(release):
                found += self._by_label.get(key, ())
        return found


def _key(whose: str, selector: Selector | None) -> _Key | None:
    """A label that the selector requires; None: it requires none."""
    required = next(iter(selector.match_labels.items()), None) if selector is not None else None
    return (whose, *required) if required is not None else None


def _keys(release: Release) -> Iterator[_Key]:
    labels = {pair: None for each in release.labels for pair in each.items()}
    yield from ((_WORKLOAD, *pair) for pair in labels)
    yield from ((_NAMESPACE, *pair) for pair in release.namespace_labels.items())
