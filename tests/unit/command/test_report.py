"""The report: how releases ended, and what the mode `enforce` would have done."""

import pytest

from altershield.api.change_workload import ChangeWorkloadStatus, WorkloadState
from altershield.api.meta import Condition
from altershield.api.policy import AppliedPolicy, Mode
from altershield.releases.enforcement import Would, would
from altershield.releases.history import Entry, Record
from command.report import Ended, Line, _of_record, count, table
from kube_base.meta import ObjectMeta

NOW = 1_700_000_000.0


def policy(mode: Mode) -> AppliedPolicy:
    return AppliedPolicy(namespace="shop", name="web", mode=mode)


def ended(
    namespace: str, state: str = "Success", *, mode: str = "enforce", would: str = "", back: bool = False
) -> Ended:
    return Ended(namespace, NOW, state, back, mode == "enforce", would)


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.WARN])
def test_failed_release_would_be_suspended_or_rolled_back(mode: Mode) -> None:
    only = f"the DefensePolicy shop/web only {'observes' if mode is Mode.OBSERVE else 'warns'}"
    failed = ChangeWorkloadStatus(status=WorkloadState.SUSPEND)
    assert would(policy(mode), failed) is Would.SUSPEND
    undone = Condition("RolledBack", "False", "NotUndone", f"a pod failed; not rolled back: {only}")
    back = ChangeWorkloadStatus(status=WorkloadState.SUSPEND, conditions=(undone,))
    assert would(policy(mode), back) is Would.ROLLBACK
    missing = "a pod failed; not rolled back: no older version has passed verification"
    first = ChangeWorkloadStatus(
        status=WorkloadState.SUSPEND, conditions=(Condition("RolledBack", "False", "NotUndone", missing),)
    )
    assert would(policy(mode), first) is Would.SUSPEND
    other = Condition("RolledBack", "False", "NotUndone", "not rolled back: the policy has onStartFailure: suspend")
    start = ChangeWorkloadStatus(status=WorkloadState.SUSPEND, conditions=(other,))
    assert would(policy(mode), start) is Would.SUSPEND
    assert would(policy(mode), ChangeWorkloadStatus(status=WorkloadState.SUCCESS)) is Would.NOTHING


def test_enforcing_policy_and_no_policy_would_do_nothing_more() -> None:
    failed = ChangeWorkloadStatus(status=WorkloadState.SUSPEND)
    assert would(policy(Mode.ENFORCE), failed) is Would.NOTHING
    assert would(AppliedPolicy(), failed) is Would.NOTHING


def test_releases_are_counted_by_namespace() -> None:
    found = count(
        [
            ended("shop", mode="observe"),
            ended("shop", "Suspend", mode="observe", would="suspend"),
            ended("shop", "Suspend", mode="warn", would="rollback"),
            ended("api", "Suspend"),
            ended("api", "Failed", back=True),
        ]
    )
    assert found == [Line("api", 2, 0, 0, 0, 1, 1), Line("shop", 3, 3, 1, 1, 0, 0)]


def test_release_that_the_history_has_counts_as_rolled_back_only_if_it_was() -> None:
    entry = Entry(ObjectMeta(name="web", namespace="shop"), "", {}, 1)
    refused = _of_record(entry, Record(state="Failed", reason="OrderRefused"))
    undone = _of_record(entry, Record(state="Failed", reason="PodNotUp", rolled_back=True))
    assert count([refused]) == [Line("shop", 1, 0, 0, 0, 0, 0)]
    assert count([undone]) == [Line("shop", 1, 0, 0, 0, 0, 1)]


def test_table_has_a_total_and_says_what_it_covers() -> None:
    lines = table([Line("api", 2, 0, 0, 0, 1, 1), Line("shop", 3, 3, 1, 1, 0, 0)], NOW, 7)
    assert lines[0].split() == [
        "NAMESPACE", "RELEASES", "OBSERVED", "WOULD-SUSPEND", "WOULD-ROLL-BACK", "SUSPENDED", "ROLLED-BACK",
    ]  # fmt: skip
    assert lines[3].split() == ["TOTAL", "5", "3", "1", "1", "1", "1"]
    assert "since 2023-11-14T22:13:20Z (7 days)" in lines[5]
    assert "--history-limit" in lines[5]
    assert table([], NOW, 1)[0] == "No releases found."
