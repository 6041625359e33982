"""Which old pods of a DaemonSet are evicted."""

from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st

from altershield.api import labels
from altershield.workloads.pods import Pod
from kube_base.times import rfc3339, unix
from reconciler.rollout.evictions import Fleet, evictions
from tests.unit.altershield.workloads import objects

BASE, FAILED = "0" * 32, "1" * 32


NOW = unix("2026-08-21T07:29:49Z")


def old(name: str, *, ready: bool = True, version: str = BASE, ready_for: float = 3600) -> Pod:
    status = {"conditions": [{**objects.condition("Ready", ready), "lastTransitionTime": rfc3339(NOW - ready_for)}]}
    return objects.pod(
        name=name, uid=name, labels={labels.VERSION: version}, spec={"nodeName": f"node-{name}"}, status=status
    )


def fleet(
    *staying: Pod, replicas: int = 6, pods: int = 0, up: int = 0, ending: int = 0, min_ready: int = 0, now: float = NOW
) -> Fleet:
    return Fleet(
        replicas=replicas, pods=pods, up=up, staying=staying, ending=ending, min_ready=min_ready, now=now
    )  # fmt: skip


def evicted(
    found: Fleet,
    *,
    allowed: int = 6,
    most: int = 1,
    lost: Collection[str] = (),
    selected: Collection[str] | None = None,
    at_least: int = 0,
) -> list[str]:
    chosen = evictions(
        found, allowed=allowed, most=most, base=BASE, on_ready_node=lambda pod: pod.node not in lost,
        selected=None if selected is None else lambda pod: pod.metadata.name in selected, at_least=at_least,
    )  # fmt: skip
    return [each.metadata.name for each in chosen]


def test_as_many_as_may_be_unavailable() -> None:
    assert evicted(fleet(*map(old, "abcdef"))) == ["a"]
    assert evicted(fleet(*map(old, "abcdef")), most=3) == ["a", "b", "c"]


def test_no_more_than_the_step_has() -> None:
    assert evicted(fleet(*map(old, "abcdef")), allowed=2, most=3) == ["a", "b"]
    assert evicted(fleet(*map(old, "bcdef"), pods=1, up=1), allowed=1, most=3) == []


def test_pod_that_is_not_up_or_missing_counts_as_unavailable() -> None:
    assert evicted(fleet(*map(old, "bcdef"), pods=1)) == []
    assert evicted(fleet(*map(old, "bcdef"))) == []
    assert evicted(fleet(*map(old, "bcdef"), pods=1), most=2) == ["b"]


def test_pod_that_is_not_ready_is_first_and_needs_no_room() -> None:
    pods = (*map(old, "abcd"), old("e", ready=False), old("f", ready=False))
    assert evicted(fleet(*pods)) == ["e", "f"]
    assert evicted(fleet(*pods), allowed=1) == ["e"]
    assert evicted(fleet(*pods), most=3) == ["e", "f", "a"]


def test_pod_that_is_ready_for_less_than_the_own_min_ready_seconds_is_first_and_counts_as_unavailable() -> None:
    """A pod of a version that another one replaces in the middle, or an old pod that restarted."""
    for version in (BASE, FAILED):
        pods = (old("a"), old("b", version=FAILED), old("c", version=version, ready_for=10))
        assert evicted(fleet(*pods, replicas=3, min_ready=30)) == ["c"]
        assert evicted(fleet(*pods, replicas=3, min_ready=30), most=2) == ["c", "b"]
        assert fleet(*pods, min_ready=30).changes_at == NOW + 20
        assert evicted(fleet(*pods, replicas=3, min_ready=30, now=NOW + 20)) == ["b"]
        assert fleet(*pods, min_ready=30, now=NOW + 20).changes_at is None
    assert evicted(fleet(old("a"), old("b", ready_for=0), replicas=2, min_ready=1)) == ["b"]
    assert evicted(fleet(old("a"), old("b", ready_for=-10), replicas=2)) == ["a"], "the clock of the node is ahead"


def test_pod_on_a_node_that_is_not_ready_stays() -> None:
    pods = (old("a"), old("b"), old("c", ready=False))
    assert evicted(fleet(*pods, replicas=3), most=2, lost=["node-c"]) == ["a"]
    assert evicted(fleet(*pods, replicas=3), most=1, lost=["node-c"]) == []
    assert evicted(fleet(*pods, replicas=3), most=2, lost=["node-c", "node-a"]) == ["b"]


def test_pod_of_a_version_that_failed_is_replaced_before_those_of_the_base() -> None:
    pods = (old("a"), old("b"), old("c", version=FAILED))
    assert evicted(fleet(*pods, replicas=3), allowed=1) == ["c"]


def test_old_pod_that_was_terminating_before_the_reconciler_started_counts_as_replaced() -> None:
    """Its node gets a pod of the version. A further one would exceed the step."""
    assert evicted(fleet(*map(old, "bcdef")), allowed=1, most=3) == []
    assert evicted(fleet(*map(old, "bcde"), old("f", ready=False)), allowed=1, most=3) == []


def test_old_pod_of_a_node_that_leaves_does_not_count_twice() -> None:
    assert evicted(fleet(*map(old, "bcdef"), replicas=5, ending=1), allowed=1, most=3) == []


def test_pods_on_selected_nodes_are_evicted_whatever_their_number_and_no_others() -> None:
    pods = (*map(old, "abcde"), old("f", ready=False))
    assert evicted(fleet(*pods), allowed=0, most=6, selected="ce") == ["c", "e"]
    assert evicted(fleet(*pods), allowed=0, most=2, selected="ce") == ["c"]
    assert evicted(fleet(*map(old, "abcdef")), allowed=0, most=1, selected="ce") == ["c"]
    assert evicted(fleet(*pods), allowed=0, most=1, selected="ce") == []
    assert evicted(fleet(*pods), allowed=0, most=3, selected="ce", lost=["node-c"]) == ["e"]
    assert evicted(fleet(*pods), allowed=0, most=6, selected="") == []


def test_pods_on_selected_nodes_are_first_in_a_step_with_a_number() -> None:
    pods = tuple(map(old, "abcdef"))
    assert evicted(fleet(*pods), allowed=3, most=6, selected="ef") == ["e", "f", "a"]
    assert evicted(fleet(*pods), allowed=1, most=6, selected="ef") == ["e", "f"]
    assert evicted(fleet(*pods), allowed=3, most=6, selected="ef", lost=["node-e"]) == ["f", "a", "b"]


def test_selected_pod_that_has_to_wait_keeps_its_place_in_the_step() -> None:
    pods = (*map(old, "abcd"), old("e"), old("f", ready=False))
    assert evicted(fleet(*pods), allowed=1, most=1, selected="e") == []


def test_pods_of_a_version_that_failed_are_replaced_together_with_the_selected_ones() -> None:
    pods = (old("a"), old("b"), old("c", version=FAILED), old("d", version=FAILED))
    assert evicted(fleet(*pods, replicas=4), allowed=0, most=4, selected="a", at_least=2) == ["c", "d", "a"]
    unlabelled = tuple(old(name, version="") for name in "abcd")
    assert evicted(fleet(*unlabelled, replicas=4), allowed=0, most=4, selected="a", at_least=2) == ["a"]


@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.sampled_from((BASE, FAILED))), max_size=12),
    st.integers(0, 5), st.integers(0, 5), st.integers(0, 5), st.integers(0, 12), st.integers(1, 6),
)  # fmt: skip
def test_neither_the_step_nor_the_own_strategy_is_exceeded(
    pods: list[tuple[bool, bool, str]], new: int, up: int, missing: int, allowed: int, most: int
) -> None:
    staying = [old(f"pod-{number}", ready=ready, version=of) for number, (ready, _, of) in enumerate(pods)]
    lost = [pod.node for pod, (_, on_ready, _) in zip(staying, pods, strict=True) if not on_ready]
    found = fleet(*staying, replicas=len(pods) + new + missing, pods=new, up=min(up, new))
    chosen = evicted(found, allowed=allowed, most=most, lost=lost)
    by_name = {pod.metadata.name: pod for pod in staying}
    ready = sum(by_name[name].ready for name in chosen)
    assert not ready or found.unavailable + ready <= most
    assert not chosen or new + missing + len(chosen) <= allowed
    assert not {by_name[name].node for name in chosen} & set(lost)
    assert len(set(chosen)) == len(chosen)
    named = [pod.metadata.name for pod in staying[::2]]
    only = evicted(found, allowed=0, most=most, lost=lost, selected=named)
    assert set(only) <= set(named)
    assert not {by_name[name].node for name in only} & set(lost)
    ready = sum(by_name[name].ready for name in only)
    assert not ready or found.unavailable + ready <= most
    both = evicted(found, allowed=allowed, most=most, lost=lost, selected=named)
    assert set(both) <= set(named) or new + missing + len(both) <= allowed
