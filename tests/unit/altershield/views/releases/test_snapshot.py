"""The releases that are shown, and their outcomes."""

from typing import Any

import pytest
from msgspec.structs import replace

from altershield.api import labels
from altershield.releases import Outcome
from altershield.views.releases.model import Snapshot, StatusError, demand, outcomes, shown, under_way
from altershield.views.selection import parse
from altershield.workloads import ADAPTERS
from command.status.exit_codes import exit_code
from command.status.table import Layout, row
from tests.unit.altershield.views.builders import DONE, RUNNING, SUSPENDED, V1, V2, release, stored, workload

UNPROCESSED = {labels.DEFENSE_STATUS: ""}


def test_changeworkloads_are_shown_with_the_workload_of_their_kind_and_uid() -> None:
    stored_releases = [stored(release(DONE, each.resource.kind)) for each in ADAPTERS]
    of_deleted = stored(release(DONE, "DaemonSet", uid="another", version=V2))
    found = shown(Snapshot([workload(each.resource.kind) for each in ADAPTERS], [of_deleted, *stored_releases]))
    kinds = {each.resource.kind for each in ADAPTERS}
    found_kinds = {(each.stored.release.spec.workload_ref.kind, each.workload.kind) for each in found if each.stored}
    assert found_kinds == {(kind, kind) for kind in kinds}
    assert of_deleted not in [release.stored for release in found]


def test_release_without_changeworkload_is_shown_as_under_way() -> None:
    old = stored(release(DONE))
    snapshot = Snapshot([workload(version=V2, **UNPROCESSED)], [old])
    before, present = shown(snapshot)
    assert (before.stored, before.present, under_way(before)) == (old, False, False)
    assert (present.stored, present.pending, under_way(present)) == (None, True, True)
    assert outcomes(snapshot) == [Outcome.UNDER_WAY], "the success of the previous version must not count"


def test_version_that_is_released_again_is_pending_until_it_is_processed() -> None:
    snapshot = Snapshot([workload(**UNPROCESSED)], [stored(release(DONE))])
    (shown_release,) = shown(snapshot)
    assert (shown_release.pending, shown_release.present) == (True, True)
    assert outcomes(snapshot) == [Outcome.UNDER_WAY]


def test_versions_of_a_workload_are_sorted_by_age() -> None:
    stored_releases = [stored(release(RUNNING, version=V2, created=20)), stored(release(DONE, created=10))]
    found = shown(Snapshot([workload(version=V2)], stored_releases))
    assert [release.stored for release in found] == stored_releases[::-1]


def test_named_workload_that_does_not_exist_is_an_error() -> None:
    snapshot = Snapshot([workload()], [stored(release())])
    demand(snapshot, parse(["deploy/web"]), "shop")
    with pytest.raises(StatusError, match=r"deployments.apps .db. not found in namespace .shop.; check the") as seen:
        demand(snapshot, parse(["deploy/web", "deploy/db"]), "shop")
    assert seen.value.exit_code == 1
    with pytest.raises(StatusError, match='workload "db" not found'):
        demand(snapshot, parse(["db"]), "shop")
    with pytest.raises(StatusError, match=r'statefulsets\.apps "web" not found'):
        demand(snapshot, parse(["sts/web"]), "shop")


def test_named_workload_without_a_release_is_an_error_with_the_command_to_govern_it() -> None:
    with pytest.raises(StatusError, match=f"has no release; .* `kubectl label namespace shop {labels.GOVERNED}="):
        demand(Snapshot([workload(version="")], []), parse(["web"]), "shop")
    demand(Snapshot([workload(version=""), workload("StatefulSet")], []), parse(["web"]), "shop")


def test_no_error_if_no_workload_is_named() -> None:
    demand(Snapshot([], []), parse([]), "shop")
    demand(Snapshot([], []), parse(["deployments"]), "shop")


def test_exit_code_is_that_of_the_most_severe_outcome() -> None:
    assert exit_code([]) == 0
    assert exit_code([Outcome.SUCCEEDED]) == 0
    assert exit_code([Outcome.SUCCEEDED, Outcome.ROLLED_BACK]) == 5
    assert exit_code([Outcome.ROLLED_BACK, Outcome.UNDER_WAY]) == 4
    assert exit_code([Outcome.UNDER_WAY, Outcome.SUSPENDED, Outcome.ROLLED_BACK]) == 3


def test_outcomes_has_one_outcome_per_workload_with_a_release() -> None:
    workloads = [workload(), workload("StatefulSet", **{labels.SUSPEND: "1"}), workload("DaemonSet", version="")]
    stored_releases = [
        stored(release(DONE)),
        stored(release(SUSPENDED, "StatefulSet")),
        stored(release(version=V1, name="gone")),
    ]
    assert outcomes(Snapshot(workloads, stored_releases)) == [Outcome.SUCCEEDED, Outcome.SUSPENDED]


@pytest.mark.parametrize("changes", [{"fingerprint": "f" * 32}, {"version": "", "processed": False}])
def test_template_that_no_gatekeeper_reviewed_is_shown_as_not_verified(changes: dict[str, Any]) -> None:
    changed = replace(workload(), **changes)
    before, present = shown(Snapshot([changed], [stored(release(DONE))]))
    assert (before.version, before.present, before.pending) == (V1, False, False)
    assert (present.stored, present.present, under_way(present)) == (None, True, True)
    assert present.version == changed.fingerprint
    cells = row(present, Layout(), 0).cells
    assert (cells[3], cells[-1]) == ("Init", "the present pod template is not verified yet")


def test_template_that_changed_twice_is_not_shown_as_the_version_of_the_label() -> None:
    changed = replace(workload(), fingerprint="f" * 32, processed=False)
    before, present = shown(Snapshot([changed], [stored(release(DONE))]))
    assert (before.present, present.present, present.version) == (False, True, "f" * 32)
