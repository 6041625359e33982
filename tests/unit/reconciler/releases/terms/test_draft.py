"""Which changes of a status are written at once."""

from typing import Any

import msgspec
import pytest

from altershield.api.change_workload import ChangeWorkloadStatus, DownPod
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition
from altershield.api.pod_verdicts import PodInfo
from reconciler.releases.terms.draft import urgent

BEFORE = ChangeWorkloadStatus(status="Running", conditions=(Condition(ConditionType.VERIFIED, "True", "x", "1 of 3"),))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, False),
        ({"defense_preparing_pods": (PodInfo("a"),)}, False),
        ({"defense_checking_pods": (PodInfo("a"),)}, False),
        ({"defense_check_pass_pods": (PodInfo("a"),)}, False),
        ({"down_pods": (DownPod("a"),)}, False),
        ({"update_time": "now", "update_time_unix": 1}, False),
        ({"conditions": (Condition(ConditionType.VERIFIED, "True", "x", "2 of 3"),)}, False),
        ({"conditions": (Condition(ConditionType.VERIFIED, "True", "y", "1 of 3"),)}, True),
        ({"conditions": (Condition(ConditionType.ROLLED_BACK, "False", "x", "1"), *BEFORE.conditions)}, True),
        ({"conditions": (Condition(ConditionType.PODS_NOT_UP, "True", "x", "1"), *BEFORE.conditions)}, False),
        ({"defense_check_fail_pods": (PodInfo("a"),)}, True),
        ({"status": "Suspend"}, True),
    ],
)
def test_status_is_written_at_once_if_more_than_lists_counts_and_times_change(
    changes: dict[str, Any], expected: bool
) -> None:
    assert urgent(BEFORE, msgspec.structs.replace(BEFORE, **changes)) == expected
