"""Whether budgets overlap, in namespaces with very many of them."""

import pytest

from altershield.budgets import overlap as module
from altershield.budgets.index import Group
from altershield.budgets.overlap import overlap, overlapping
from tests.unit.budgets.builders import budget, groups, pod, web

OTHERS = [
    budget(name=f"other-{number}", selector={"matchLabels": {"app": "no"}}, maxUnavailable=1) for number in range(300)
]
PODS = [pod(f"web-{number}", labels={"app": "web", "number": str(number)}) for number in range(300)]


def test_comparisons_of_very_many_budgets_and_pods_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    protects = module._protects

    def counting(*args: object) -> bool:
        nonlocal compared
        compared += 1
        return protects(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_protects", counting)
    assert overlap(budget(maxUnavailable=1).spec, OTHERS, groups(PODS), web(300)) == ""
    assert overlapping(budget(maxUnavailable=1), OTHERS, groups(PODS), web(300)) == set()
    assert compared < 2 * (10_000 + 300)


def test_overlap_is_found_among_many_budgets() -> None:
    found: list[Group] = groups(PODS[:10])
    assert overlapping(budget(maxUnavailable=1), [*OTHERS, budget(name="twin", maxUnavailable=1)], found, web(10)) == {
        "twin"
    }
