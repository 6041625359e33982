"""The sizes of a Deployment's ReplicaSets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kube_sandbox.cluster.deployments import rollout
from kube_sandbox.cluster.deployments.rollout import Bounds, Scale
from kube_sandbox.cluster.kinds import Deployment, ReplicaSet
from support.objects import deployment, replica_set


def sizes(scales: list[Scale]) -> dict[str, int]:
    return {scale.replica_set.metadata.name: scale.replicas for scale in scales}


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (10, "25%", "25%", Bounds(3, 2)),
        (5, "25%", "25%", Bounds(2, 1)),
        (1, "25%", "25%", Bounds(1, 0)),
        (10, 0, "1%", Bounds(0, 1)),
        (10, 0, "100%", Bounds(0, 10)),
        (3, 2, 7, Bounds(2, 3)),
        (0, "25%", "25%", Bounds(0, 0)),
    ],
)
def test_bounds_convert_percentages_to_pods(
    replicas: int, surge: int | str, unavailable: int | str, expected: Bounds
) -> None:
    assert rollout.bounds(deployment(replicas, surge=surge, unavailable=unavailable)) == expected


def test_bounds_of_recreate_are_zero() -> None:
    assert rollout.bounds(deployment(10, recreate=True)) == Bounds(0, 0)


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ((0, 0), [(10, 10)], {"new": 3}),
        ((3, 0), [(10, 10)], {"old0": 8}),
        ((5, 0), [(8, 8)], {}),
        ((5, 5), [(8, 8)], {"old0": 3}),
        ((10, 8), [(3, 3)], {"old0": 0}),
        ((10, 5), [(3, 3)], {}),
        ((10, 10), [(0, 0)], {}),
        ((12, 12), [], {"new": 10}),
        ((3, 0), [(10, 6)], {"old0": 8}),  # unavailable pods are deleted although too few are available
        ((5, 0), [(4, 0), (8, 8)], {"old0": 0}),  # a second release before the first one became available
        ((4, 4), [(9, 10)], {}),  # the deletion of an old pod is refused
    ],
)
def test_step_of_a_rolling_update_gives_the_expected_sizes(
    new: tuple[int, int], old: list[tuple[int, int]], expected: dict[str, int]
) -> None:
    olds = [replica_set(f"old{i}", size, available=up) for i, (size, up) in enumerate(old)]
    assert sizes(rollout.rolling(deployment(10), replica_set("new", new[0], available=new[1]), olds)) == expected


def test_recreate_scales_old_replica_sets_to_zero_first() -> None:
    present = deployment(5, recreate=True)
    assert sizes(rollout.recreate(present, None, [replica_set("old", 5)])) == {"old": 0}
    assert sizes(rollout.recreate(present, replica_set("new", 0), [replica_set("old", 0)])) == {"new": 5}


@pytest.mark.parametrize(
    ("before", "after", "new", "old", "expected"),
    [
        (10, 12, 10, [], {"new": 12}),
        (10, 0, 10, [], {"new": 0}),
        (10, 14, 5, [8], {"new": 7, "old0": 11}),
        (10, 5, 5, [8], {"new": 3, "old0": 4}),
        (10, 0, 5, [8], {"new": 0, "old0": 0}),
        (10, 20, 0, [5, 8], {"old0": 10, "old1": 15}),
    ],
)
def test_scaling_during_a_release_keeps_the_proportions(
    before: int, after: int, new: int, old: list[int], expected: dict[str, int]
) -> None:
    was, present = deployment(before), deployment(after)
    newest = replica_set("new", new, of=was, created="2026-01-09T00:00:00Z")
    olds = [replica_set(f"old{i}", size, of=was) for i, size in enumerate(old)]
    assert rollout.is_scaling(present, [newest, *olds])
    assert not rollout.is_scaling(was, [newest, *olds])
    assert sizes(rollout.scaled(present, newest, olds)) == expected


def test_scaling_leaves_empty_replica_sets_empty() -> None:
    was = deployment(10)
    olds = [replica_set("old", 10, of=was)]
    assert sizes(rollout.scaled(deployment(20), replica_set("new", 0, of=was), olds)) == {"old": 20}


def test_complete_new_replica_set_scales_the_old_ones_to_zero() -> None:
    present = deployment(10)
    olds = [replica_set("old", 2)]
    assert sizes(rollout.scaled(present, replica_set("new", 10, of=present), olds)) == {"old": 0}


@st.composite
def releases(draw: st.DrawFn) -> tuple[Deployment, ReplicaSet, list[ReplicaSet]]:
    """Any Deployment, with ReplicaSets of any sizes."""
    surge = draw(st.integers(0, 5) | st.integers(0, 100).map("{}%".format))
    unavailable = draw(st.integers(0 if surge not in (0, "0%") else 1, 5) | st.integers(1, 100).map("{}%".format))
    present = deployment(draw(st.integers(0, 30)), surge=surge, unavailable=unavailable)
    family = []
    for number in range(draw(st.integers(1, 4))):
        size = draw(st.integers(0, 30))
        was = deployment(draw(st.integers(0, 30)), surge=surge)
        family.append(replica_set(f"rs{number}", size, available=draw(st.integers(0, size)), of=was))
    return present, family[-1], family[:-1]


def applied(scales: list[Scale], family: list[ReplicaSet]) -> list[ReplicaSet]:
    """The ReplicaSets after these scales; a shrinking one loses unavailable pods first."""
    wanted = sizes(scales)
    result = []
    for rs in family:
        size = wanted.get(rs.metadata.name, rs.spec.replicas)
        up = min(rs.status.available_replicas, size)
        result.append(
            replace(rs, spec=replace(rs.spec, replicas=size), status=replace(rs.status, available_replicas=up))
        )
    return result


def all_up(rs: ReplicaSet) -> ReplicaSet:
    return replace(rs, status=replace(rs.status, available_replicas=rs.spec.replicas))


@given(releases())
def test_step_of_any_release_keeps_max_surge_and_max_unavailable(
    release: tuple[Deployment, ReplicaSet, list[ReplicaSet]],
) -> None:
    present, new, old = release
    desired, (surge, unavailable) = present.spec.replicas, rollout.bounds(present)
    family = [*old, new]
    after = applied(rollout.rolling(present, new, old), family)
    assert rollout.total(after) <= max(rollout.total(family), desired + surge)
    assert rollout.available(after) >= min(rollout.available(family), desired - unavailable)
    assert all(rs.spec.replicas >= 0 for rs in after)


@given(releases())
def test_release_whose_pods_become_available_completes(
    release: tuple[Deployment, ReplicaSet, list[ReplicaSet]],
) -> None:
    present, new, old = release
    for _ in range(300):
        scales = rollout.rolling(present, new, old)
        *old, new = applied(scales, [*old, new])
        if not scales:
            if new == all_up(new):
                break
            new = all_up(new)
    assert new.spec.replicas == present.spec.replicas
    assert [rs.spec.replicas for rs in old] == [0] * len(old)


@given(releases())
def test_scaling_of_any_release_gives_the_new_total(release: tuple[Deployment, ReplicaSet, list[ReplicaSet]]) -> None:
    present, new, old = release
    before = rollout.total([*old, new])
    family = [sized_for(rs, before) for rs in [*old, new]]
    scales = rollout.scaled(present, family[-1], family[:-1])
    after = applied(scales, family)
    assert all(rs.spec.replicas >= 0 for rs in after)
    if len(scales) > 1 and present.spec.replicas > 0:
        assert rollout.total(after) == present.spec.replicas + rollout.bounds(present).surge
    for scale in scales:  # no ReplicaSet grows while the total shrinks, or shrinks while it grows
        grew = scale.replicas - scale.replica_set.spec.replicas
        assert grew * (rollout.total(after) - before) >= 0


def sized_for(rs: ReplicaSet, most: int) -> ReplicaSet:
    annotations = {rollout.DESIRED_REPLICAS: "-1", rollout.MAX_REPLICAS: str(most)}
    return replace(rs, metadata=replace(rs.metadata, annotations=annotations))
