"""The versions whose success is what a request asked for."""

import pytest

from altershield.api.change_workload import ChangeWorkloadStatus, SourceRef, WorkloadState
from altershield.api.workload_requests import Action, Result, Verb
from altershield.views.asking import Answer, asked_for
from tests.unit.altershield.views.builders import DONE, V1, V2, release, stored

BACK = ChangeWorkloadStatus(status=WorkloadState.ROLLBACK, rollback_target=SourceRef(uid="1", version=V2))
BEFORE_ALTERSHIELD = ChangeWorkloadStatus(
    status=WorkloadState.ROLLBACK, rollback_target=SourceRef(uid="1", fingerprint=V2)
)


@pytest.mark.parametrize(
    ("verb", "status", "expected"),
    [
        (Verb.ROLLBACK, BACK, V2),
        (Verb.ROLLBACK, BEFORE_ALTERSHIELD, V2),
        (Verb.ROLLBACK, DONE, V1),  # it is the current version already
        (Verb.APPROVE, DONE, V1),
        (Verb.RETRY, BACK, V1),
    ],
)
def test_rollback_asks_for_its_target_and_other_requests_for_their_version(
    verb: Verb, status: ChangeWorkloadStatus, expected: str
) -> None:
    answer = Answer(Action(verb, result=Result.DONE), stored(release(status)))
    assert asked_for(answer) == {expected}
