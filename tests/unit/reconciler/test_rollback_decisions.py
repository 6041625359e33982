"""When a release is undone, to what, and what is said about it."""

from collections.abc import Sequence

import msgspec
import pytest

from altershield.api.kinds import ChangeWorkload, ChangeWorkloadStatus
from altershield.api.meta import Condition, find_condition
from altershield.api.views import Deployment, Pod, ReplicaSet
from reconciler.decisions.effects import Announce, Effect, ReleaseAgain, Requeue
from reconciler.decisions.rollback import Observed, Target, decide
from tests.unit.reconciler.builders import NOW, V1, V2, V3, change_workload, deployment, pod, replica_set

LATE = NOW + 120
PULL = ("ImagePullBackOff", 'Back-off pulling image "busybo"')
OLD = Target(replica_set(V1), successful=True, rolled_back=False)


def observe(
    record: ChangeWorkload | None = None,
    target: Deployment | None = None,
    pods: Sequence[Pod] | None = None,
    targets: Sequence[Target] = (OLD,),
    replica_sets: Sequence[ReplicaSet] = (),
) -> Observed:
    return Observed(
        change_workload=record or change_workload(V2),
        deployment=target or deployment(V2),
        pods=[pod("a", version=V2, phase="Pending", waiting=PULL)] if pods is None else pods,
        replica_sets=replica_sets,
        targets=targets,
        start_timeout=120,
    )


def run(observed: Observed, now: float = LATE) -> tuple[ChangeWorkloadStatus, tuple[Effect, ...]]:
    return decide(observed.change_workload.status, observed, now)


def rolled_back(status: ChangeWorkloadStatus) -> Condition:
    condition = find_condition(status.conditions, "RolledBack")
    assert condition is not None
    return condition


def intent(version: str = V1) -> ChangeWorkloadStatus:
    condition = Condition("RolledBack", "False", "PodNotUp", "pod a is not up; releasing version 1 again")
    return ChangeWorkloadStatus(status="Rollback", rollback_to=version, conditions=(condition,))


def test_a_pod_that_does_not_come_up_in_time_is_intent_enough() -> None:
    status, effects = run(observe())

    assert (status.status, status.rollback_to, status.entry_time_unix) == ("Rollback", V1, LATE)
    assert rolled_back(status).message == (
        'pod a is not up after 120 s: ImagePullBackOff: Back-off pulling image "busybo"; '
        f"releasing version {V1} of ReplicaSet sleep-111111 again"
    )
    assert (rolled_back(status).status, rolled_back(status).reason) == ("False", "PodNotUp")
    announced, again = effects
    assert isinstance(announced, Announce)
    assert (announced.reason, again) == ("RollbackStarted", Requeue(0))


def test_before_the_deadline_it_only_waits_until_then() -> None:
    observed = observe()

    assert run(observed, NOW + 100) == (observed.change_workload.status, (Requeue(20),))


def test_pods_that_cannot_even_be_created_are_as_late_as_those_that_do_not_come_up() -> None:
    barren = replica_set(V2, ready=0, refused=(NOW, "exceeded quota: pods"))
    observed = observe(pods=[], replica_sets=[barren])

    assert run(observed, NOW + 100) == (observed.change_workload.status, (Requeue(20),))
    status, _ = run(observed)
    assert (status.status, status.rollback_to) == ("Rollback", V1)
    assert rolled_back(status).message.startswith("its pods cannot be created for 120 s now: exceeded quota: pods; ")


def test_a_full_quota_that_lets_pods_in_one_after_the_other_is_no_reason() -> None:
    slow = replica_set(V2, pods=4, ready=4, refused=(NOW, "exceeded quota: pods"))
    observed = observe(pods=[pod("a", version=V2, ready=True)], replica_sets=[slow])

    assert run(observed) == (observed.change_workload.status, ())


@pytest.mark.parametrize("state", ["", "Init", "Running", "TimeOutPreThreshold", "Suspend"])
def test_every_unfinished_state_can_be_rolled_back(state: str) -> None:
    assert run(observe(change_workload(V2, state)))[0].status == "Rollback"


@pytest.mark.parametrize("state", ["Success", "Failed"])
def test_what_is_finished_is_not(state: str) -> None:
    observed = observe(change_workload(V2, state))

    assert run(observed) == (observed.change_workload.status, ())


def test_waiting_in_a_crash_loop_is_not_up_even_if_it_once_was() -> None:
    crashing = pod("a", version=V2, finished=NOW + 3, waiting=("CrashLoopBackOff", "back-off 40s"))

    assert run(observe(pods=[crashing]))[0].status == "Rollback"


@pytest.mark.parametrize(
    "fine",
    [
        pod("a", version=V2, ready=True),
        pod("a", version=V2, finished=NOW),
        pod("a", version=V2, phase="Failed"),
        pod("a", version=V2, terminating=True),
    ],
    ids=["ready", "came up once", "evicted", "terminating"],
)
def test_other_pods_are_no_reason(fine: Pod) -> None:
    observed = observe(pods=[fine])

    assert run(observed) == (observed.change_workload.status, ())


@pytest.mark.parametrize(
    ("target", "targets", "reason"),
    [
        (deployment(V2, strategy="Recreate"), [OLD], "StrategyRecreate"),
        (deployment(V2, paused=True), [OLD], "Paused"),
        (deployment(V2), [], "NoHealthyVersion"),
        (deployment(V2), [Target(replica_set(V1, ready=2), True, False)], "NoHealthyVersion"),
        (deployment(V2), [Target(replica_set(V1, replicas=0, ready=0), True, False)], "NoHealthyVersion"),
        (deployment(V2), [Target(replica_set(V1, observed=0), True, False)], "NoHealthyVersion"),
        (deployment(V2), [Target(replica_set(V1), False, True)], "NoHealthyVersion"),
    ],
    ids=["Recreate", "paused", "first version", "old one unhealthy", "old one gone", "stale status", "rolled back too"],
)
def test_where_it_cannot_be_undone_this_is_said_once(target: Deployment, targets: list[Target], reason: str) -> None:
    status, effects = run(observe(target=target, targets=targets))

    assert status.status == "Running"
    assert (rolled_back(status).status, rolled_back(status).reason) == ("False", reason)
    assert [effect.reason for effect in effects if isinstance(effect, Announce)] == ["RollbackImpossible"]

    again = observe(change_workload(V2, status), target, targets=targets)
    assert run(again, LATE + 30) == (status, ())


def test_an_old_version_that_recovers_is_gone_back_to_after_all() -> None:
    status, _ = run(observe(targets=[Target(replica_set(V1, ready=2), True, False)]))

    assert run(observe(change_workload(V2, status)))[0].status == "Rollback"


@pytest.mark.parametrize(("older_succeeded", "expected"), [(False, V3), (True, V1)], ids=["newest", "successful"])
def test_of_several_healthy_versions_the_last_successful_is_released_again_else_the_newest(
    older_succeeded: bool, expected: str
) -> None:
    targets = [
        Target(replica_set(V1, revision=9), older_succeeded, False),
        Target(replica_set(V3, revision=10), False, False),
    ]

    assert run(observe(targets=targets))[0].rollback_to == expected


@pytest.mark.parametrize("mark", [NOW - 86_400, 0])
def test_a_mark_from_before_the_pod_is_no_sign_that_it_came_up(mark: int) -> None:
    """Somebody copied a pod's labels into the template."""
    copied = pod("a", version=V2, finished=mark, phase="Pending", waiting=PULL)

    assert run(observe(pods=[copied]))[0].status == "Rollback"


@pytest.mark.parametrize("reason", ["ReleasedAgain", "AlreadyRolledBack"])
def test_a_version_is_rolled_back_only_once(reason: str) -> None:
    condition = Condition("RolledBack", "False", reason)

    status, _ = run(observe(change_workload(V2, ChangeWorkloadStatus(status="Running", conditions=(condition,)))))

    assert (status.status, rolled_back(status).reason) == ("Running", "AlreadyRolledBack")


def test_an_intent_is_carried_out_also_when_the_pod_has_come_up_meanwhile() -> None:
    observed = observe(change_workload(V2, intent()), pods=[])

    assert run(observed) == (observed.change_workload.status, (ReleaseAgain(OLD.replica_set),))


def test_the_record_is_closed_once_the_old_version_is_back() -> None:
    status, effects = run(observe(change_workload(V2, intent()), deployment(V1)))

    assert (status.status, status.rollback_to) == ("Failed", V1)
    assert (rolled_back(status).status, rolled_back(status).reason) == ("True", "PodNotUp")
    assert rolled_back(status).message == f"pod a is not up; version {V1} was released again at 2023-11-14 22:15:20"
    assert [effect.reason for effect in effects if isinstance(effect, Announce)] == ["RolledBack"]


def test_a_release_in_between_wins() -> None:
    status, effects = run(observe(change_workload(V2, intent()), deployment(V3)))

    assert (status.status, rolled_back(status).status, rolled_back(status).reason) == ("Failed", "False", "Superseded")
    assert effects == ()


def test_a_version_from_before_altershield_can_be_gone_back_to() -> None:
    unstamped = Target(replica_set(""), successful=False, rolled_back=False)
    status, _ = run(observe(targets=[unstamped]))
    assert (status.status, status.rollback_to) == ("Rollback", "")

    carried = observe(change_workload(V2, status), targets=[unstamped])
    assert run(carried)[1] == (ReleaseAgain(unstamped.replica_set),)

    closed, _ = run(observe(change_workload(V2, status), deployment(V1)))
    assert (closed.status, closed.rollback_to, rolled_back(closed).status) == ("Failed", V1, "True")


# asked for by a person

ASKED = ChangeWorkloadStatus(status="Rollback")


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ([Target(replica_set(V1, replicas=0, ready=0, revision=1), True, False)], V1),
        (
            [
                Target(replica_set(V1, replicas=0, ready=0, revision=1), True, False),
                Target(replica_set(V3, revision=2), False, False),
            ],
            V1,
        ),
        (
            [
                Target(replica_set(V1, revision=2), False, False),
                Target(replica_set(V3, revision=3), False, True),
            ],
            V1,
        ),
    ],
    ids=["scaled to zero", "successful before newer", "never one that was rolled back"],
)
def test_a_rollback_that_is_asked_for_goes_to_the_last_good_version(targets: list[Target], expected: str) -> None:
    status, _ = run(observe(change_workload(V2, ASKED), pods=[], targets=targets))

    assert (status.status, status.rollback_to, rolled_back(status).reason) == ("Rollback", expected, "Requested")


def test_it_works_for_every_strategy() -> None:
    observed = observe(change_workload(V2, ASKED), deployment(V2, strategy="Recreate"), pods=[])

    assert run(observed)[0].rollback_to == V1


def test_without_anything_to_go_back_to_the_state_is_derived_anew() -> None:
    status, effects = run(observe(change_workload(V2, ASKED), targets=[]))

    assert (status.status, status.rollback_to) == ("Init", "")
    assert (rolled_back(status).status, rolled_back(status).reason) == ("False", "NoTarget")
    assert [effect.reason for effect in effects if isinstance(effect, Announce)] == ["RollbackImpossible"]


def test_a_target_that_vanished_ends_the_attempt() -> None:
    assert run(observe(change_workload(V2, intent()), targets=[]))[0].status == "Init"


def test_a_version_that_a_person_names_is_taken() -> None:
    named = msgspec.structs.replace(ASKED, rollback_to=V3)
    targets = [OLD, Target(replica_set(V3, replicas=0, ready=0), False, False)]

    assert run(observe(change_workload(V2, named), targets=targets))[0].rollback_to == V3
