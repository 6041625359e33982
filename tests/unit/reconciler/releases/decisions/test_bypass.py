"""Which release uses up the label `ignored-suspend`."""

from typing import Any

import jsonpatch
import msgspec
import pytest

from altershield.api import labels
from altershield.api.change_workload import ChangeWorkloadStatus, SourceRef, WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition
from reconciler.cluster.release import Release, read
from reconciler.releases.decisions.bypass import is_rollback
from reconciler.releases.writes.creation import processed
from tests.unit.altershield.releases.builders import V1, V2, V3, release, workload

ROLLED_BACK = Condition(ConditionType.ROLLED_BACK, "True", "PodNotUp")


def ended(version: str, generation: int, to: str = "", state: str = WorkloadState.FAILED, **more: Any) -> Release:
    """The ChangeWorkload of a version that was released with this generation, and rolled back to the version `to`."""
    conditions = (ROLLED_BACK,) if to and state != WorkloadState.ROLLBACK else ()
    target = SourceRef(version=to)
    status = ChangeWorkloadStatus(status=state, conditions=conditions, rollback_to=to, rollback_target=target)
    found = release(version, status)
    spec = msgspec.structs.replace(found.spec, workload_generation=generation)
    return read(msgspec.json.encode(msgspec.structs.replace(found, spec=spec, **more)))


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([], False),
        ([ended(V2, 2, to=V1)], True),
        ([ended(V2, 2, to=V1, state=WorkloadState.ROLLBACK)], True),
        ([ended(V2, 2)], False),
        ([ended(V2, 2, to=V3)], False),
        ([ended(V2, 2, to=V1), ended(V3, 4, state=WorkloadState.SUSPEND)], False),
        ([ended(V3, 4, to=V1), ended(V2, 2, state=WorkloadState.SUSPEND)], True),
    ],
    ids=["first", "rolled-back", "under-way", "failed", "to-another", "user-after-a-rollback", "rollback-after-a-user"],
)
def test_current_version_was_released_by_a_rollback_if_the_last_other_version_was_rolled_back_to_it(
    others: list[Release], expected: bool
) -> None:
    assert is_rollback(workload(V1, generation=5), others) is expected


@pytest.mark.parametrize("own", [{}, {labels.IGNORED_SUSPEND: "true"}], ids=["none", "added-since-the-cache"])
def test_pass_is_used_up_by_the_release_that_it_admitted_and_by_no_other(own: dict[str, str]) -> None:
    stored = {"metadata": {"labels": own}}
    state = {labels.DEFENSE_STATUS: labels.PROCESSED}
    assert jsonpatch.apply_patch(stored, processed())["metadata"]["labels"] == state
    assert jsonpatch.apply_patch(stored, processed(keep_pass=True))["metadata"]["labels"] == {**own, **state}
