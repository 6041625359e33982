"""The judgement about a release. Pure functions."""

from collections.abc import Callable, Sequence
from typing import Any

from altershield.gates.field_guards import GUARDS
from altershield.gates.freezes import FREEZES
from altershield.gates.gate import Gate
from altershield.gates.limits import LIMITS
from altershield.gates.release import Closed, Placed, Release, by_name, selects_namespace
from altershield.gates.windows import WINDOWS
from kube_base.times import unix

GATES: tuple[Gate[Any, Any], ...] = (WINDOWS, FREEZES, LIMITS, GUARDS)
"""All kinds of gates. To add one, add a file with a `Gate`, and its name here."""

Objects = Callable[[Gate[Any, Any], str], Sequence[Placed]]
"""Gives the objects of a kind of gates that are in force in a namespace."""

_MOST = 50  # edges of gates, one after the other


def judge(release: Release, objects: Objects, system_namespace: str, now: float) -> tuple[Closed, ...]:
    """The gates that are closed for the release at `now`, Unix seconds; empty: it may begin."""
    closed: list[Closed] = []
    for gate in GATES:
        for namespace in {system_namespace: None, release.namespace: None}:
            placed = objects(gate, namespace)
            found = [each for each in placed if selects_namespace(each, release, system_namespace)]
            if found:
                closed += gate.closed(found, release, now)
    return by_name(closed)


def opens_at(release: Release, objects: Objects, system_namespace: str, now: float) -> float:
    """When the release may begin: `now` if it may, else the first time at which no gate is closed that is enforced; 0
    if that is not known, or a person decides."""
    for _ in range(_MOST):
        closed = [each for each in judge(release, objects, system_namespace, now) if each.enforced]
        if not closed:
            return now
        edges = [unix(each.opens_at) for each in closed]
        if not all(edges) or max(edges) <= now:
            return 0.0
        now = max(edges)
    return 0.0


def first_opening(closed: Sequence[Closed]) -> float | None:
    """The first time at which one of these gates opens, Unix seconds; None: it is not known."""
    return min((unix(each.opens_at) for each in closed if each.opens_at), default=None)
