"""The pods of older versions for which the controller of a workload waits."""

from typing import Any

import pytest

from altershield.api import labels
from altershield.workloads.blocking import blocking_pods
from altershield.workloads.pods import Pod
from altershield.workloads.workload import Workload

from .objects import CREATED, condition, pod, workload

OLD, NEW, KEPT = "web-old", "web-new", "web-kept"


def stateful_set(partition: int = 0, *, observed: int = 3, update: str = NEW, **spec: Any) -> Workload:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    status = {"updateRevision": update, "currentRevision": KEPT, "observedGeneration": observed}
    return workload("StatefulSet", status=status, **{"replicas": 3, "updateStrategy": rolling, **spec})


def member(number: int | str = 1, revision: str = OLD, *, ready: bool = False, **metadata: Any) -> Pod:
    own = {"name": f"web-{number}", "labels": {labels.CONTROLLER_REVISION_HASH: revision}, **metadata}
    return pod(status={"conditions": [condition("Ready", ready)]}, **own)


def test_pod_of_an_older_revision_that_is_not_ready_blocks() -> None:
    found = member()
    assert blocking_pods(stateful_set(), [found, member(2, NEW), member(0, ready=True)]) == [found]


@pytest.mark.parametrize(
    "other",
    [
        member(ready=True),
        member(revision=NEW),
        member(revision=""),
        member(3),
        member("x"),
        member(deletionTimestamp=CREATED),
    ],
)
def test_other_pods_do_not_block(other: Pod) -> None:
    assert blocking_pods(stateful_set(), [other]) == []


@pytest.mark.parametrize(
    "spec",
    [{"podManagementPolicy": "Parallel"}, {"observed": 2}, {"update": ""}],
    ids=["parallel", "behind", "unknown"],
)
def test_no_pod_blocks_a_controller_that_does_not_wait_or_whose_status_is_old(spec: Any) -> None:
    assert blocking_pods(stateful_set(**spec), [member()]) == []


@pytest.mark.parametrize(("revision", "blocks"), [(KEPT, False), (OLD, True)])
def test_pod_that_is_created_again_with_the_same_template_does_not_block(revision: str, blocks: bool) -> None:
    assert bool(blocking_pods(stateful_set(partition=2), [member(revision=revision)])) is blocks
    assert blocking_pods(stateful_set(partition=1), [member(revision=revision)]), "the partition does not hold it back"
