"""Which closed gates a ReleaseOverride passes, for whom, how often and how long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api.gates.overrides import TARGETS, GateName, ReleaseOverride, ReleaseOverrideSpec, Target
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.gates.judge import judge
from altershield.gates.overrides import Asked, passing, used
from altershield.gates.release import Closed
from altershield.workloads import ADAPTERS
from kube_base.meta import ObjectMeta
from kube_base.times import rfc3339
from tests.unit.altershield.gates.placed import Objects, freeze, release, window

NOW = 1_000_000.0
V1 = Asked("shop", "Deployment", "web", "uid", "v1", "ann")


def override(namespace: str = "shop", name: str = "o", **spec: object) -> ReleaseOverride:
    found = ReleaseOverrideSpec(
        reason="an emergency",
        **{"target": Target("Deployment", "web"), "gates": (GateName.WINDOW, GateName.FREEZE), **spec},  # type: ignore[arg-type]
    )
    return ReleaseOverride(ObjectMeta(name, namespace, creation_timestamp=rfc3339(NOW - 60)), found)


def closed(*placed: object) -> tuple[Closed, ...]:
    return judge(release(), Objects(*placed), SYSTEM_NAMESPACE, NOW)  # type: ignore[arg-type]


OWN = closed(freeze(namespace="shop"))
SYSTEM = closed(freeze())


def names(
    gates: tuple[Closed, ...], *overrides: ReleaseOverride, asked: Asked = V1, now: float = NOW
) -> list[str] | None:
    found = passing(gates, overrides, asked, SYSTEM_NAMESPACE, now)
    return None if found is None else sorted(found)


@pytest.mark.parametrize(
    ("made", "passes"),
    [
        (override(), True),
        (override(gates=(GateName.WINDOW,)), False),
        (override(target=Target("Deployment", "other")), False),
        (override(target=Target("StatefulSet", "web")), False),
        (override("other"), False),
        (override("other", target=Target("Deployment", "web", "shop")), False),
        (override(SYSTEM_NAMESPACE, target=Target("Deployment", "web", "shop")), True),
        (override(SYSTEM_NAMESPACE), False),
        (override(ttl_seconds=60), False),
    ],
)
def test_an_override_is_for_one_workload_its_gates_and_its_time(made: ReleaseOverride, passes: bool) -> None:
    assert (names(OWN, made) is not None) is passes


def test_an_override_of_a_tenant_passes_no_gate_of_the_administrator() -> None:
    of_system = override(SYSTEM_NAMESPACE, "admin", target=Target("Deployment", "web", "shop"))
    assert names(SYSTEM, override()) is None
    assert names(SYSTEM, of_system) == [f"{SYSTEM_NAMESPACE}/admin"]
    both = closed(freeze(), freeze(namespace="shop"))
    assert names(both, override()) is None
    assert names(both, override(), of_system) == [f"{SYSTEM_NAMESPACE}/admin", "shop/o"]


def test_a_version_counts_once_and_a_further_one_does_not_pass() -> None:
    made = used(override(), V1, ["ReleaseFreeze shop/f"], NOW)
    assert made is not None
    assert [(each.uid, each.version, each.by) for each in made.status.uses] == [("uid", "v1", "ann")]
    assert [each.reason for each in made.status.announcements] == ["OverrideUsed"]
    assert used(made, V1, [], NOW + 10**6) is made, "good for all its steps, also later"
    assert names(OWN, made, now=NOW + 10**6) == ["shop/o"]
    v2 = Asked("shop", "Deployment", "web", "uid", "v2")
    assert names(OWN, made, asked=v2) is None
    assert used(made, v2, [], NOW) is None
    made_again = Asked("shop", "Deployment", "web", "another uid", "v1")
    assert names(OWN, made, asked=made_again) is None


@given(st.lists(st.sampled_from("abcde"), max_size=12), st.integers(1, 4))
def test_no_more_versions_pass_than_it_has_uses(versions: list[str], uses: int) -> None:
    made, passed = override(uses=uses), set()
    for version in versions:
        after = used(made, Asked("shop", "Deployment", "web", "uid", version), [], NOW)
        if after is not None:
            made = after
            passed.add(version)
    assert len(passed) == min(uses, len(set(versions))) == made.status.used


def test_an_override_may_name_each_kind_of_workloads() -> None:
    assert set(TARGETS) == {each.resource.kind for each in ADAPTERS}


def test_each_closed_gate_needs_an_override() -> None:
    gates = closed(freeze(namespace="shop"), window("Deny", (0, NOW), namespace="shop"))
    assert names(gates, override(gates=(GateName.FREEZE,))) is None
    assert names(gates, override(gates=(GateName.FREEZE,)), override(name="p", gates=(GateName.WINDOW,))) == [
        "shop/o",
        "shop/p",
    ]
