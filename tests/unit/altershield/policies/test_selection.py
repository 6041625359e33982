"""Which policy applies to a workload, and which policies can never apply."""

import pytest

from altershield.api.policy import DefensePolicySpec
from altershield.api.selectors import Operator, Requirement, Selector
from altershield.policies.selection import InForce, applying, matches, ranked, shadowed_by


def expressions(*requirements: tuple[str, Operator, tuple[str, ...]]) -> Selector:
    return Selector(match_expressions=tuple(Requirement(*each) for each in requirements))


def policy(name: str, selector: Selector = Selector(), priority: int = 0) -> InForce[DefensePolicySpec]:  # noqa: B008
    return InForce("shop", name, 1, DefensePolicySpec(selector=selector, priority=priority))


WEB = Selector(match_labels={"app": "web"})
WEB_EU = Selector(match_labels={"app": "web", "region": "eu"})


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        (Selector(), {}, True),
        (WEB, {"app": "web", "other": "x"}, True),
        (WEB, {"app": "api"}, False),
        (WEB, {}, False),
        (Selector(match_labels={"app": ""}), {}, False),
        (Selector(match_labels={"app": ""}), {"app": ""}, True),
        (expressions(("app", Operator.IN, ("web", "api"))), {"app": "api"}, True),
        (expressions(("app", Operator.IN, ("web", "api"))), {"app": "db"}, False),
        (expressions(("app", Operator.IN, ("web",))), {}, False),
        (expressions(("app", Operator.NOT_IN, ("web",))), {"app": "web"}, False),
        (expressions(("app", Operator.NOT_IN, ("web",))), {"app": "db"}, True),
        (expressions(("app", Operator.NOT_IN, ("web",))), {}, True),
        (expressions(("app", Operator.EXISTS, ())), {"app": ""}, True),
        (expressions(("app", Operator.EXISTS, ())), {}, False),
        (expressions(("app", Operator.DOES_NOT_EXIST, ())), {}, True),
        (expressions(("app", Operator.DOES_NOT_EXIST, ())), {"app": ""}, False),
        (expressions(("app", Operator.EXISTS, ()), ("b", Operator.EXISTS, ())), {"app": ""}, False),
    ],
)
def test_selector_matches_labels_as_in_kubernetes(selector: Selector, labels: dict[str, str], expected: bool) -> None:
    assert matches(selector, labels) is expected


def test_highest_priority_applies_then_the_first_name() -> None:
    low, b, a = policy("low"), policy("b", priority=5), policy("a", priority=5)

    def select(*policies: InForce[DefensePolicySpec]) -> InForce[DefensePolicySpec] | None:
        return applying([ranked(policies)], {"app": "api"})

    assert select(low, b, a) is a
    assert select(low, b) is b
    assert select(policy("web", WEB, priority=9), low) is low
    assert select(policy("web", WEB)) is None
    assert select() is None


def test_policy_of_the_namespace_has_precedence_over_one_of_the_system_namespace() -> None:
    own, of_system = policy("own", WEB), policy("system", priority=9)
    assert applying([[own], [of_system]], {"app": "web"}) is own
    assert applying([[own], [of_system]], {}) is of_system


def test_policy_is_shadowed_by_one_with_precedence_and_no_further_requirement() -> None:
    everything, web, europe = policy("z", priority=1), policy("web", WEB), policy("a", WEB_EU)
    assert shadowed_by(web, [everything, web, europe]) is everything
    assert shadowed_by(everything, [everything, web, europe]) is None
    assert shadowed_by(europe, [web, europe]) is None  # the same priority, and `a` comes first
    assert shadowed_by(policy("x", WEB_EU), [web]) is web
    assert shadowed_by(web, [policy("a", WEB_EU, priority=9)]) is None  # it does not select all workloads of `web`


def test_match_labels_and_in_with_one_value_are_the_same_requirement() -> None:
    other = policy("a", expressions(("app", Operator.IN, ("web",))))
    assert shadowed_by(policy("b", WEB), [other]) is other
