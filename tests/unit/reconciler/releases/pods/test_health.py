"""The health of a single pod, and which Events show a fault of the cluster."""

import msgspec
import pytest

from altershield.workloads.pods import Fault
from reconciler.releases.pods.health import CLOCK_SKEW, TrackedPod, events_fault, start_tracking
from tests.unit.altershield.workloads.objects import condition, pod

READY = pod(status={"conditions": [condition("Ready", True)]})
DOWN = msgspec.structs.replace(READY, ready=False)
BORN = READY.metadata.created


def first(began: float, now: float, *, scheduled: int = 0, up: bool = False, since: float | None = None) -> TrackedPod:
    there = msgspec.structs.replace(DOWN, scheduled_at=scheduled)
    return start_tracking(there, began, now, was_up=up, down_since=since, in_place=False)


@pytest.mark.parametrize(
    ("began", "scheduled", "since"),
    [
        (BORN - 50, 0, BORN),
        (BORN + 50, 0, BORN + 50),
        (BORN - 50, BORN + 30, BORN + 30),
        (BORN + 50, BORN + 30, BORN + 50),
    ],
    ids=["created", "older than the release", "waited for a node", "older and waited for a node"],
)
def test_start_timeout_begins_when_the_pod_could_have_come_up(began: int, scheduled: int, since: int) -> None:
    assert first(began, BORN + 100, scheduled=scheduled).down_since == since


def test_start_timeout_of_a_pod_that_was_up_begins_when_it_was_last_up() -> None:
    assert first(BORN, BORN + 100, up=True).down_since == BORN + 100
    assert first(BORN, BORN + 100, up=True, since=BORN + 7).down_since == BORN + 7
    assert first(BORN, BORN + 100, since=BORN + 7).broken
    assert not first(BORN, BORN + 100).broken


def test_start_timeout_begins_now_if_the_pod_was_created_in_the_future() -> None:
    assert first(BORN - 500, BORN - 200).down_since == BORN - 200
    assert first(BORN - 500, BORN - 200, since=BORN).down_since == BORN - 200


def test_ready_time_of_the_kubelet_is_reduced_by_the_clock_skew() -> None:
    for age, seconds in ((0, 0), (CLOCK_SKEW, 0), (CLOCK_SKEW + 7, 7)):
        now = READY.ready_at + age
        tracked = start_tracking(READY, BORN, now, was_up=False, down_since=None, in_place=False)
        assert tracked.ready_since == now - seconds
    silent = msgspec.structs.replace(READY, ready_at=0)
    tracked = start_tracking(silent, BORN, BORN + 9999, was_up=False, down_since=None, in_place=False)
    assert tracked.ready_since == BORN + 9999
    assert first(BORN, BORN + 9999).ready_since is None


@pytest.mark.parametrize(
    ("reason", "message", "fault"),
    [
        ("FailedAttachVolume", "Multi-Attach error for volume", Fault.VOLUME),
        ("FailedMapVolume", "cannot map", Fault.VOLUME),
        ("FailedMount", "Unable to attach or mount volumes: timed out", Fault.VOLUME),
        ("FailedMount", 'MountVolume.SetUp failed for volume "c": configmap "c" not found', None),
        ("FailedMount", 'MountVolume.SetUp failed for volume "c": secret "c" not found', None),
        ("FailedMount", "secret is locked by another node", Fault.VOLUME),
        ("FailedMount", "references non-existent config key: a", None),
        ("FailedMount", 'SetUp failed for volume "a": hostPath type check failed: /a is not a directory', None),
        ("FailedMount", "device not found", Fault.VOLUME),
        ("FailedCreatePodSandBox", "failed to set up sandbox", Fault.SANDBOX),
        ("NetworkNotReady", "network is not ready", Fault.SANDBOX),
        ("BackOff", "Back-off restarting failed container", None),
        ("", "", None),
    ],
)
def test_event_shows_a_fault_of_the_cluster_or_none(reason: str, message: str, fault: Fault | None) -> None:
    assert events_fault([("Scheduled", "", 1), (reason, message, 1)]) is fault


def test_fault_of_the_release_takes_precedence_over_a_fault_of_the_cluster() -> None:
    own = ("FailedMount", 'configmap "c" not found', 1.0)
    for other in (("FailedAttachVolume", "", 1.0), ("FailedCreatePodSandBox", "", 1.0)):
        assert events_fault([other, own]) is events_fault([own, other]) is None
    assert events_fault([("NetworkNotReady", "", 1), ("FailedMapVolume", "", 1)]) is Fault.VOLUME


@pytest.mark.parametrize("reason", ["FailedAttachVolume", "FailedMount", "FailedCreatePodSandBox"])
def test_event_of_a_container_shows_that_a_fault_of_the_cluster_is_over(reason: str) -> None:
    """The hook postStart hangs: as long as it runs, the container shows as being created."""
    started = [("Pulled", "", 20.0), ("Created", "", 20.0), ("Started", "", 21.0)]
    assert events_fault([(reason, "", 7.0), *started]) is None
    assert events_fault([*started, (reason, "", 90.0)]) is not None, "the sandbox was changed"


def test_pod_updated_in_place_is_ready_from_when_the_update_was_seen() -> None:
    """The container that is ready at that time may still be the old one."""
    tracked = start_tracking(READY, BORN, BORN + 9999, was_up=False, down_since=None, in_place=True)
    assert (tracked.ready_since, tracked.baseline) == (BORN + 9999, READY.restarts)


@pytest.mark.parametrize(("lost_after", "since"), [(3, BORN), (10, BORN), (11, BORN + 11 + CLOCK_SKEW)])
def test_condition_that_the_kubelet_writes_at_the_start_of_a_pod_does_not_show_that_the_pod_was_ready(
    lost_after: int, since: float
) -> None:
    there = msgspec.structs.replace(DOWN, ready_at=BORN + lost_after)
    tracked = start_tracking(there, BORN, BORN + 9999, was_up=False, down_since=None, in_place=False)
    assert tracked.down_since == since
