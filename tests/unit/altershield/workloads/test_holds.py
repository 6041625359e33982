"""The values of the fields that hold a release at so many pods, by kind."""

from typing import Any

import msgspec
import pytest

from altershield.api.annotations import ROLLOUT
from altershield.api.rollout import Rollout
from altershield.workloads import ADAPTERS
from altershield.workloads.held import ALL, NEVER_AVAILABLE, NO_DEADLINE
from altershield.workloads.hold import STEPS, Cause, Hold
from gatekeeper.handlers.releases.workload import HELD
from tests.support.workloads import BY_NAME
from tests.unit.altershield.workloads import objects

STRATEGY = "/spec/strategy/rollingUpdate/"
PARTITION = "/spec/updateStrategy/rollingUpdate/partition"


def deployment(surge: Any = "25%", unavailable: Any = "25%", **own: Any) -> dict[str, Any]:
    fields = dict.fromkeys(BY_NAME["Deployment"].held_fields)
    fields |= {"/spec/strategy/type": "RollingUpdate", "/spec/progressDeadlineSeconds": 600}
    return {**fields, f"{STRATEGY}maxSurge": surge, f"{STRATEGY}maxUnavailable": unavailable, **own}


@pytest.mark.parametrize(
    ("replicas", "pods", "surge", "unavailable", "above"),
    [
        (10, 1, "25%", 0, 1),
        (10, 3, "25%", 0, 3),
        (10, 4, "25%", "10%", 3),
        (10, 10, "25%", "70%", 3),
        (10, 1, 0, "10%", 0),
        (10, 3, 0, "30%", 0),
        (500, 1, 0, 1, 0),
        (500, 5, 0, "1%", 0),
        (500, 1, "25%", 0, 1),
        (7, 1, 0, "15%", 0),
        (7, 5, 0, "72%", 0),
        (3, 1, 0, "34%", 0),
        (3, 2, 0, "67%", 0),
        (2, 1, 0, "50%", 0),
        (1, 1, 0, 1, 0),
        (1, 1, "25%", 0, 1),
    ],
)
def test_deployment_is_held_at_so_many_new_pods(
    replicas: int, pods: int, surge: Any, unavailable: Any, above: int
) -> None:
    found = BY_NAME["Deployment"].hold(deployment(surge), replicas, pods, surge=True)
    assert found == deployment(
        above, unavailable, **{"/spec/minReadySeconds": NEVER_AVAILABLE, "/spec/progressDeadlineSeconds": NO_DEADLINE}
    )
    reached = replicas * int(unavailable[:-1]) // 100 if isinstance(unavailable, str) else unavailable
    assert reached + above == pods


def test_deployment_has_no_surge_that_a_quota_refuses() -> None:
    found = BY_NAME["Deployment"].hold(deployment(), 10, 3, surge=False)
    assert (found[f"{STRATEGY}maxUnavailable"], found[f"{STRATEGY}maxSurge"]) == ("30%", 0)


def test_deployment_without_pods_is_paused_and_keeps_the_rest() -> None:
    own = deployment(1, 0, **{"/spec/minReadySeconds": 7})
    assert BY_NAME["Deployment"].hold(own, 10, 0, surge=True) == {**own, "/spec/paused": True}


@pytest.mark.parametrize(
    ("surge", "unavailable", "with_surge", "without"),
    [(0, 1, 1, 1), (1, 0, 1, 0), ("25%", "25%", 5, 2), (0, 0, 1, 1), (None, None, 5, 2), ("5%", "5%", 1, 0)],
)
def test_deployment_begins_with_no_more_pods_than_the_own_strategy_allows(
    surge: Any, unavailable: Any, with_surge: int, without: int
) -> None:
    at_once, own = BY_NAME["Deployment"].at_once, deployment(surge, unavailable)
    assert (at_once(own, 10, surge=True), at_once(own, 10, surge=False)) == (with_surge, without)


def test_other_controllers_go_by_the_own_strategy_while_they_are_held() -> None:
    for kind in ("StatefulSet", "DaemonSet", "CloneSet"):
        assert BY_NAME[kind].at_once({}, 10, surge=True) is None


@pytest.mark.parametrize(("replicas", "pods", "own", "partition"), [
    (10, 1, None, 9), (10, 3, 0, 7), (10, 0, 0, ALL), (10, 10, 0, 0), (10, 3, 8, 8), (2, 3, 0, 0),
])  # fmt: skip
def test_partition_keeps_pods_at_the_old_version(replicas: int, pods: int, own: Any, partition: int) -> None:
    held = {"/spec/updateStrategy/type": "RollingUpdate", PARTITION: partition}
    assert BY_NAME["StatefulSet"].hold({PARTITION: own}, replicas, pods, surge=True) == held
    own_values = {"/spec/updateStrategy/type": "InPlaceIfPossible", "/spec/updateStrategy/partition": own}
    found = BY_NAME["CloneSet"].hold(own_values, replicas, pods, surge=True)
    assert found == {**own_values, "/spec/updateStrategy/partition": partition}


def test_daemon_set_replaces_no_pod_by_itself() -> None:
    for pods in (0, 1, 6):
        assert BY_NAME["DaemonSet"].hold({}, 6, pods, surge=True) == {"/spec/updateStrategy/type": "OnDelete"}


@pytest.mark.parametrize(
    ("kind", "spec", "reason"),
    [
        ("Deployment", {}, ""),
        ("Deployment", {"strategy": {"type": "Recreate"}}, "its strategy is Recreate"),
        ("StatefulSet", {"updateStrategy": {"type": "OnDelete"}}, "its update strategy is OnDelete"),
        ("DaemonSet", {"updateStrategy": {"type": "OnDelete"}}, "its update strategy is OnDelete"),
        ("DaemonSet", {"updateStrategy": {"rollingUpdate": {"maxSurge": "0%"}}}, ""),
        (
            "DaemonSet",
            {"updateStrategy": {"rollingUpdate": {"maxSurge": 1}}},
            "it has a maxSurge, beside which no pod may be unavailable",
        ),
        ("CloneSet", {}, ""),
        ("CloneSet", {"updateStrategy": {"type": "OnDelete"}}, "its update strategy is OnDelete"),
    ],
)
def test_spec_that_cannot_be_held(kind: str, spec: dict[str, Any], reason: str) -> None:
    assert BY_NAME[kind].obstacle(spec) == reason
    assert objects.workload(kind, **spec).obstacle == reason
    assert objects.workload(kind, **spec).releaser == ""


@pytest.mark.parametrize("kind", sorted(BY_NAME))
def test_workload_that_another_controller_releases_says_so(kind: str) -> None:
    owner = {"apiVersion": "flagger.app/v1beta1", "kind": "Canary", "name": "web", "uid": "u"}
    marked = objects.workload(kind, metadata={"annotations": {"rollouts.kruise.io/hash": "1"}})
    assert marked.releaser == "Kruise Rollouts releases it"
    owned = objects.workload(kind, metadata={"ownerReferences": [{**owner, "controller": True}]})
    assert owned.releaser == "Canary web controls it"
    assert objects.workload(kind, metadata={"ownerReferences": [owner]}).releaser == ""


def test_held_workload_has_the_obstacle_of_its_own_spec() -> None:
    hold = Hold(
        "new", (Cause(STEPS, pods=1),), {"/spec/updateStrategy/type": "RollingUpdate"}, rollout=Rollout((), (1,))
    )
    found = objects.workload(
        "DaemonSet",
        metadata={"annotations": {ROLLOUT: msgspec.json.encode(hold).decode()}},
        updateStrategy={"type": "OnDelete"},
    )
    assert found.obstacle == ""


def test_gatekeeper_reads_the_held_fields_of_all_kinds() -> None:
    fields = {path.split("/")[2] for adapter in ADAPTERS for path in adapter.held_fields}
    assert fields == set(HELD.values())
