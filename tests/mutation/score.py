"""Which mutants are a sample, and which share of mutants is noticed."""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

_NOTICED = {"killed", "timeout", "segfault"}
_TYPES = "caught by type check"


def sample(mutants: Iterable[str], count: int, seed: str) -> list[str]:
    """So many of the mutants, or all if `count` is 0. A mutant stays in the sample when functions elsewhere change."""
    ranked = sorted(mutants, key=lambda name: hashlib.sha256(f"{seed} {name}".encode()).digest())
    return ranked[: count or None]


def is_missed(status: str) -> bool:
    """Whether no check notices a mutant with this status of mutmut."""
    return status not in _NOTICED and status != _TYPES


@dataclass(frozen=True)
class Score:
    """Numbers of mutants."""

    noticed: int
    missed: int
    types: int
    """Mutants with which the type checker finds an error. They could not be merged, and say nothing about tests."""

    @classmethod
    def of(cls, statuses: Iterable[str]) -> "Score":
        """The numbers of mutants with each status."""
        counts = Counter(statuses)
        noticed, types = sum(counts[each] for each in _NOTICED), counts[_TYPES]
        return cls(noticed=noticed, missed=counts.total() - noticed - types, types=types)

    def __str__(self) -> str:
        return (
            f"{self.noticed} of {self.noticed + self.missed} noticed ({self.percent:.1f} %), {self.types} wrong types"
        )

    @property
    def percent(self) -> float:
        """The share of the mutants with correct types that tests notice; 100 without such mutants."""
        tested = self.noticed + self.missed
        return 100 * self.noticed / tested if tested else 100.0
