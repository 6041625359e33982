"""The projection of a ChangeWorkload, and what it says about its workload."""

import pytest

from altershield.api.change_workload import ChangeWorkloadStatus, SourceRef
from reconciler.cluster.release import went_back_to
from tests.unit.altershield.releases.builders import workload
from tests.unit.reconciler.filled import release

V0, V9 = "0" * 32, "9" * 32
CURRENT = workload(V0)


@pytest.mark.parametrize(
    ("status", "went_back"),
    [
        (ChangeWorkloadStatus(rollback_to=V0), True),
        (ChangeWorkloadStatus(rollback_target=SourceRef(version=V0)), True),
        (ChangeWorkloadStatus(rollback_target=SourceRef(version=V9, fingerprint=CURRENT.fingerprint)), True),
        (ChangeWorkloadStatus(rollback_to=V9, rollback_target=SourceRef(version=V9, fingerprint="other")), False),
        (ChangeWorkloadStatus(), False),
    ],
)
def test_workload_went_back_if_its_version_or_its_template_is_the_one_of_the_rollback(
    status: ChangeWorkloadStatus, went_back: bool
) -> None:
    assert went_back_to(release(status=status), CURRENT) == went_back
