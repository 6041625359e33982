"""A gatekeeper counts its own admissions until the status of the limits does."""

from collections.abc import Iterator
from typing import Any

from altershield.api.gates.limits import Rate
from altershield.api.gates.rules import Judged
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.gates.admissions import KEPT_SECONDS, MAX_KEPT, RecentAdmissions
from altershield.gates.cached import Stored
from altershield.gates.gate import Gate
from altershield.gates.limits import LIMITS, Limit
from altershield.gates.release import Release, selects_any, selects_namespace
from kube_base.meta import PartialObjectMeta
from tests.unit.altershield.gates.placed import HOUR, counted, limit, recent_admissions, release, workload

RATE = Rate(1, 3600)


class Limits:
    def __init__(self, *found: Limit) -> None:
        self._found = found

    def judging(self, gate: Gate[Any, Any], release: Release) -> Iterator[Any]:
        assert gate is LIMITS
        for each in self._found:
            if selects_namespace(each, release, SYSTEM_NAMESPACE) and selects_any(each, release):
                yield each


def of(name: str, **fields: Any) -> Release:
    return release(workload=workload(name), version="v1", **fields)


def names(admissions: RecentAdmissions, now: float, limit: str = "l") -> list[str]:
    return [each.workload.name for each in admissions.recent(now).get((SYSTEM_NAMESPACE, limit), ())]


def stored(found: Limit) -> Stored:
    return Stored(PartialObjectMeta(found.name, found.namespace), found)


def test_admissions_are_kept_for_a_time_and_up_to_a_number() -> None:
    admissions = recent_admissions(Limits(limit(rate=RATE)))
    for number in range(MAX_KEPT + 1):
        admissions.add(of(f"w{number}"), 0.0, held=False)
    assert len(names(admissions, 1.0)) == MAX_KEPT
    assert "w0" not in names(admissions, 1.0)
    admissions.add(of("w1"), 60.0, held=False)
    assert len(names(admissions, KEPT_SECONDS - 1)) == MAX_KEPT
    assert names(admissions, KEPT_SECONDS) == ["w1"], "the request was repeated"
    assert admissions.recent(KEPT_SECONDS + 60) == {}


def test_a_release_that_no_limit_judges_is_not_kept() -> None:
    creations = limit(rate=RATE, judges=(Judged.CREATE,))
    admissions = recent_admissions(Limits(limit(rate=RATE, namespace="other"), creations))
    admissions.add(of("a"), 0.0, held=False)
    assert names(admissions, 0.0) == []
    admissions.add(of("a", judged=Judged.CREATE), 0.0, held=False)
    assert names(admissions, 0.0) == ["a"]


def test_a_restart_counts_as_an_update() -> None:
    admissions = recent_admissions(Limits(limit(rate=RATE)))
    admissions.add(of("a", judged=Judged.RESTART), 0.0, held=False)
    assert names(admissions, 0.0) == ["a"]


def test_each_limit_forgets_an_admission_when_its_status_counts_it() -> None:
    first, second = limit(rate=RATE, name="first"), limit(concurrent=1, name="second")
    admissions = recent_admissions(Limits(first, second))
    admissions.add(of("a"), 10 * HOUR, held=False)
    admissions.observe(stored(first))
    admissions.observe(None)
    assert names(admissions, 10 * HOUR, "first") == names(admissions, 10 * HOUR, "second") == ["a"]
    admissions.observe(stored(limit(rate=RATE, name="first", releases=[counted("a", 10)])))
    assert names(admissions, 10 * HOUR, "first") == []
    assert names(admissions, 10 * HOUR, "second") == ["a"]
    admissions.observe(stored(limit(concurrent=1, name="second", under_way=[counted("a", 10)])))
    assert admissions.recent(10 * HOUR) == {}
