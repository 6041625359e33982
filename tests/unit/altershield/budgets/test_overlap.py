"""Whether budgets overlap, in namespaces with very many of them."""

import msgspec
import pytest

from altershield.api import labels
from altershield.budgets import overlap as module
from altershield.budgets.index import Group
from altershield.budgets.overlap import overlap, overlapping
from tests.unit.altershield.budgets.builders import budget, groups, pod, web

OTHERS = [
    budget(name=f"other-{number}", selector={"matchLabels": {"app": "no"}}, maxUnavailable=1) for number in range(300)
]
PODS = [pod(f"web-{number}", labels={"app": "web", "number": str(number)}) for number in range(300)]


def test_comparisons_of_very_many_budgets_and_pods_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    protects = module.protects

    def counting(*args: object) -> bool:
        nonlocal compared
        compared += 1
        return protects(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "protects", counting)
    assert overlap(budget(maxUnavailable=1).spec, OTHERS, groups(PODS), web(300)) == ""
    assert overlapping(budget(maxUnavailable=1), OTHERS, groups(PODS), web(300)) == set()
    assert compared < 2 * (10_000 + 300)


def test_overlap_is_found_among_many_budgets() -> None:
    found: list[Group] = groups(PODS[:10])
    assert overlapping(budget(maxUnavailable=1), [*OTHERS, budget(name="twin", maxUnavailable=1)], found, web(10)) == {
        "twin"
    }


def target(name: str) -> dict[str, str]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}


def test_budgets_with_targets_overlap_if_the_targets_are_the_same() -> None:
    one, other = budget(name="one", targetRef=target("web"), maxUnavailable=1), target("other")
    assert overlap(one.spec, [one], (), web(1)) == "one has the same target"
    assert overlap(budget(targetRef=other, maxUnavailable=1).spec, [one], (), web(1)) == ""


def test_pods_that_are_ending_make_no_overlap() -> None:
    one, new = budget(name="one", maxUnavailable=1), budget(maxUnavailable=1).spec
    ending = pod("web-1", deleting=True)
    assert overlap(new, [one], groups([ending]), web(1)) == ""
    assert overlap(new, [one], groups([ending, pod("web-2")]), web(1)) == "one covers pod web-2 too"


def test_budget_does_not_overlap_itself() -> None:
    own = budget(maxUnavailable=1)
    assert overlapping(own, [own, *OTHERS], groups(PODS[:2]), web(2)) == set()


def test_only_budgets_of_users_that_cover_pods_of_the_new_one_overlap_it() -> None:
    made, new = budget(name="made", maxUnavailable=1), budget(maxUnavailable=1).spec
    assert overlap(new, [made], groups(PODS[:1]), web(1)) == "made covers pod web-0 too"
    generated = {labels.MANAGED_BY: labels.MANAGED_BY_VALUE}
    made = msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, labels=generated))
    assert overlap(new, [made], groups(PODS[:1]), web(1)) == ""
    other = budget(name="other", selector={"matchLabels": {"app": "other"}}, maxUnavailable=1)
    assert overlap(new, [other], groups([*PODS[:1], pod("x", labels={"app": "other"})]), web(1)) == ""
