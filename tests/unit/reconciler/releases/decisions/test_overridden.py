"""Which uses of ReleaseOverrides belong to a release, and the record of them."""

import msgspec
import pytest

from altershield.api.change_workload import ChangeWorkloadStatus, WorkloadState
from altershield.api.gates.overrides import (
    GateName,
    ReleaseOverride,
    ReleaseOverrideSpec,
    ReleaseOverrideStatus,
    Target,
    Use,
)
from altershield.api.workload_requests import MAX_ACTIONS, Action, Result
from kube_base.meta import ObjectMeta
from kube_base.times import rfc3339
from reconciler.cluster.release import Release, read
from reconciler.releases.decisions.history import record, with_history
from reconciler.releases.decisions.overridden import overridden, overridden_before
from reconciler.releases.terms.effects import KeepHistory
from tests.unit.altershield.releases.builders import NOW, V1, V2, release

GATES = ("ReleaseFreeze default/incident", "ReleaseWindow default/weekend")


def override(*uses: Use, name: str = "fix") -> ReleaseOverride:
    spec = ReleaseOverrideSpec(
        reason="the fix of incident 7",
        requested_by="ann",
        target=Target("Deployment", "sleep"),
        gates=(GateName.FREEZE,),
    )
    return ReleaseOverride(ObjectMeta(name, "default"), spec, ReleaseOverrideStatus(uses))


def use(uid: str = "sleep", version: str = V1, at: float = NOW, gates: tuple[str, ...] = GATES) -> Use:
    return Use(uid, version, rfc3339(at), "bob", gates)


def of(*actions: Action, released: int = NOW) -> Release:
    made = release(V1, ChangeWorkloadStatus(WorkloadState.INIT, actions=actions))
    spec = msgspec.structs.replace(made.spec, release_time=rfc3339(released), create_time_unix=released + 2)
    return read(msgspec.json.encode(msgspec.structs.replace(made, spec=spec)))


def recorded(found: Release, *overrides: ReleaseOverride) -> list[Action]:
    """The actions after the decision that records the uses; empty if there is none."""
    decision = overridden(found, overrides, NOW + 9)
    return list(decision.status.actions) if decision is not None and decision.status is not None else []


def test_use_is_an_action_of_the_person_who_asked_for_the_override() -> None:
    (action,) = recorded(of(), override(use()))
    assert action == Action(
        verb="Override",
        by="ann",
        reason="the fix of incident 7",
        time=rfc3339(NOW),
        result=Result.DONE,
        outcome=f"ReleaseOverride default/fix let it pass {', '.join(GATES)}",
    )


def test_use_is_recorded_once() -> None:
    actions = recorded(of(), override(use()))
    assert recorded(of(*actions), override(use())) == []
    assert recorded(of(*actions), override(use()), override(use(), name="other"))[:1] == actions


@pytest.mark.parametrize(
    "other",
    [use("another"), use(version=V2), use(at=NOW - 3600)],
    ids=["another workload of the name", "another version", "an earlier release of the version"],
)
def test_use_of_another_release_is_not_recorded(other: Use) -> None:
    assert recorded(of(), override(other)) == []


def test_use_by_the_release_that_created_the_workload_has_no_uid() -> None:
    assert recorded(of(), override(use(uid="")))


def test_clocks_of_gatekeepers_may_differ() -> None:
    assert recorded(of(), override(use(at=NOW - 30)))


def test_use_that_was_recorded_before_many_other_decisions_is_not_recorded_again() -> None:
    later = [Action("Retry", "eve", time=rfc3339(NOW + each), result=Result.DONE) for each in range(MAX_ACTIONS)]
    assert recorded(of(*later), override(use())) == []
    assert len(recorded(of(*later[1:]), override(use()))) == MAX_ACTIONS
    assert len(recorded(of(*later), override(use(at=NOW + 99)))) == MAX_ACTIONS


def test_longest_names_fit_into_the_schema() -> None:
    longest = tuple(f"ReleaseWindow {'n' * 63}/{str(each).zfill(253)}" for each in range(16))
    (action,) = recorded(of(), override(use(gates=longest)))
    assert len(action.outcome) <= 1024


def test_history_keeps_the_use_at_once_because_somebody_may_delete_the_override() -> None:
    found = of()
    decision = overridden(found, [override(use())], NOW)
    assert decision is not None
    kept = with_history(found, decision)
    assert kept.before == (KeepHistory(decision.status),)


def recorded_before(found: Release, *overrides: ReleaseOverride, history: tuple[Action, ...] = ()) -> list[Action]:
    """The actions after the decision that records the uses from before the release; empty if there is none."""
    decision = overridden_before(found, overrides, history, NOW + 9)
    return list(decision.status.actions) if decision is not None and decision.status is not None else []


def test_use_by_a_request_that_failed_elsewhere_belongs_to_the_release_that_passes_by_it_later() -> None:
    (action,) = recorded_before(of(released=NOW + 300), override(use()))
    assert (action.verb, action.time) == ("Override", rfc3339(NOW))


def test_use_from_before_a_release_whose_time_is_not_known_is_recorded() -> None:
    found = of(released=NOW + 300)
    unknown = msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, release_time=""))
    assert recorded(unknown, override(use())) == []
    assert len(recorded_before(unknown, override(use()))) == 1


def test_use_from_before_the_release_is_recorded_once() -> None:
    found = of(released=NOW + 300)
    actions = recorded_before(found, override(use()))
    assert recorded_before(of(*actions, released=NOW + 300), override(use())) == []


@pytest.mark.parametrize("gates", [GATES, tuple(f"ReleaseWindow default/{'n' * 253}" for _ in range(16))])
def test_use_that_the_history_has_of_an_earlier_release_is_not_recorded_again(gates: tuple[str, ...]) -> None:
    found = of(*recorded(of(), override(use(gates=gates))))
    history = record(found, found.status, ()).actions
    later = of(released=NOW + 86_400)
    assert recorded_before(later, override(use(gates=gates)), history=history) == []
    assert len(recorded_before(later, override(use(gates=gates)), override(use(), name="other"), history=history)) == 1


def test_use_that_later_decisions_in_the_history_have_replaced_is_not_recorded_again() -> None:
    later = tuple(Action("Retry", "eve", time=rfc3339(NOW + each), result=Result.DONE) for each in range(MAX_ACTIONS))
    assert recorded_before(of(released=NOW + 86_400), override(use()), history=later) == []


@pytest.mark.parametrize("other", [use("another"), use(version=V2), use(uid="")])
def test_earlier_use_by_another_workload_or_version_is_not_recorded(other: Use) -> None:
    """A use without a uid may belong to a workload of the name that was deleted."""
    assert recorded_before(of(released=NOW + 300), override(other)) == []


def test_use_by_this_release_is_none_from_before_it() -> None:
    assert recorded_before(of(), override(use())) == []


@pytest.mark.parametrize("state", [each for each in WorkloadState if each is not WorkloadState.INIT])
def test_earlier_use_is_recorded_when_the_release_begins(state: WorkloadState) -> None:
    found = of(released=NOW + 300)
    running = msgspec.structs.replace(found, status=msgspec.structs.replace(found.status, status=state))
    assert recorded_before(running, override(use())) == []
