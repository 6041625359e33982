"""The gates of releases, as handlers see them."""

from collections.abc import Callable, Mapping
from typing import Protocol

from altershield.gates.cached import CachedGates
from altershield.gates.release import Closed, Release


class Gates(Protocol):
    """The gates that are in force."""

    @property
    def filled(self) -> bool:
        """Whether the caches are filled."""

    @property
    def exist(self) -> bool:
        """Whether there is any gate."""

    def labels_of(self, namespace: str) -> Mapping[str, str]:
        """The labels of a namespace."""

    def closed(self, release: Release, now: float) -> tuple[Closed, ...]:
        """The gates that are closed for the release."""

    def opens_at(self, release: Release, now: float) -> float:
        """When the release may begin, Unix seconds; 0: it is not known."""


class GatesOfNamespaces:
    """The gates in caches, with the labels of namespaces. `filled`: whether the cache of namespaces is filled."""

    def __init__(
        self, gates: CachedGates, labels_of: Callable[[str], Mapping[str, str]], filled: Callable[[], bool]
    ) -> None:
        self._filled = filled
        self._gates = gates
        self.labels_of = labels_of
        self.closed = gates.closed
        self.opens_at = gates.opens_at

    @property
    def filled(self) -> bool:
        return self._gates.filled and self._filled()

    @property
    def exist(self) -> bool:
        return self._gates.exist
