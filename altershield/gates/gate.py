"""A kind of gates."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from altershield.gates.release import Closed, Placed, Release
from kube_base.resources import Resource

O = TypeVar("O")  # noqa: E741
"""The type of the objects, as the API server has them."""
G = TypeVar("G", bound=Placed)
"""The type of the objects that are in force."""


@dataclass(frozen=True, eq=False)
class Gate(Generic[O, G]):
    """A kind of gates."""

    resource: Resource
    type: type[O]
    in_force: Callable[[O], G | None]
    """What of an object is in force; None: it judges no release."""
    closed: Callable[[Sequence[G], Release, float], Iterator[Closed]]
    """Those of the objects of one namespace that are closed for a release at a time, Unix seconds."""
    may_be_closed: Callable[[Sequence[G], float], tuple[Sequence[G], float]] = lambda found, _: (found, math.inf)
    """Those of the objects of one namespace in which `closed` finds the same as in all of them at a time, and until
    when, Unix seconds."""
