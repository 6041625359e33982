"""The words of a pod's Events, as kubelets write them."""

from typing import Any

import msgspec
import pytest

from altershield.workloads.pod_events import PodEvent, telling
from altershield.workloads.pods import Trouble

Event = dict[str, Any]

SCHEDULED = "Successfully assigned shop/web-1 to node-1"
NO_SECRET = 'MountVolume.SetUp failed for volume "keys" : secret "absent" not found'
NO_PATH = 'MountVolume.SetUp failed for volume "host" : hostPath type check failed: /data is not a directory'
NO_NETWORK = (
    'Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "5a": '
    'plugin type="calico" failed (add): stat /var/lib/calico/nodename: no such file or directory'
)
UNREADY = "Readiness probe failed: HTTP probe failed with statuscode: 503"
APP, INIT = "spec.containers{app}", "spec.initContainers{migrate}"


def event(second: int, reason: str, message: str = "", path: str = "", **fields: Any) -> Event:
    at = f"2026-11-27T02:00:{second:02}Z"
    return {"reason": reason, "message": message, "lastTimestamp": at, "involvedObject": {"fieldPath": path}, **fields}


def words(*events: Event) -> str:
    found = telling(msgspec.convert(list(events), list[PodEvent]))
    return "" if found is None else str(found)


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([], ""),
        ([event(1, "Scheduled", SCHEDULED), event(9, "FailedMount", NO_SECRET)], f"FailedMount: {NO_SECRET}"),
        ([event(9, "FailedMount", NO_PATH)], f"FailedMount: {NO_PATH}"),
        ([event(9, "FailedCreatePodSandBox", NO_NETWORK)], f"FailedCreatePodSandBox: {NO_NETWORK}"),
        ([event(9, "NetworkNotReady", "network is not ready")], "NetworkNotReady: network is not ready"),
        (
            [event(1, "Pulled"), event(1, "Started", path=APP), event(9, "Unhealthy", UNREADY, APP)],
            f"container app: Unhealthy: {UNREADY}",
        ),
        (
            [event(5, "Failed", 'Error: secret "absent" not found', APP)],
            'container app: Failed: Error: secret "absent" not found',
        ),
        (
            [event(5, "BackOff", "Back-off restarting failed container migrate in pod web-1_shop(u)", INIT)],
            "init container migrate: BackOff: Back-off restarting failed container migrate in pod web-1_shop(u)",
        ),
        # volumes and network were available when the container was started or its image pulled
        ([event(3, "FailedMount", NO_SECRET), event(4, "Pulling")], ""),
        ([event(4, "FailedMount", NO_SECRET), event(4, "Pulled")], ""),
        (
            [event(3, "FailedMount", NO_SECRET), event(4, "Pulled"), event(5, "FailedMount", "again")],
            "FailedMount: again",
        ),
        # a container that was started had its image and its configuration
        ([event(3, "Failed", "Error: ErrImagePull", APP), event(9, "Started", path=APP)], ""),
        # the newest one counts, in any order
        ([event(9, "Unhealthy", "new", APP), event(3, "Unhealthy", "old", APP)], "container app: Unhealthy: new"),
        # warnings that are no reason
        ([event(3, "FailedToRetrieveImagePullSecret", "Unable to retrieve some image pull secrets")], ""),
        ([event(3, "DNSConfigForming", "Nameserver limits were exceeded")], ""),
        ([event(3, "Killing", "Stopping container app", APP)], ""),
    ],
)
def test_newest_event_that_says_why_a_pod_is_not_up_counts(events: list[Event], text: str) -> None:
    assert words(*events) == text


@pytest.mark.parametrize(
    "newer",
    [
        {"lastTimestamp": None, "eventTime": "2026-11-27T03:00:00.123456Z"},
        {"lastTimestamp": None, "series": {"lastObservedTime": "2026-11-27T03:00:00.123456Z", "count": 2}},
        {"lastTimestamp": None, "metadata": {"creationTimestamp": "2026-11-27T03:00:00Z"}},
    ],
)
def test_times_of_both_apis_of_events_are_read(newer: Event) -> None:
    assert words(event(9, "Unhealthy", "new", **newer), event(30, "Unhealthy", "old")) == "Unhealthy: new"


def test_long_message_is_one_short_line() -> None:
    found = telling([PodEvent("FailedMount", "a\n b " + "x" * 5000)])
    assert isinstance(found, Trouble)
    assert (len(found.message), found.message[:4]) == (300, "a b ")
