"""The words of pods that `altershield status` and `altershield why` read themselves."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from altershield.api import labels
from altershield.api.change_workload import ChangeWorkloadStatus, SourceRef, WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition
from altershield.views.releases.model import Release
from altershield.views.releases.words import QUIET, with_words
from command.status.table import Layout, row
from kube_base.access.errors import ForbiddenError
from kube_base.resources import EVENTS, PODS, Resource
from kube_base.times import rfc3339
from tests.unit.altershield.views.builders import V1, release, stored, workload
from tests.unit.altershield.views.why.explained import explain

NOW = 1_700_000_000.0
PROGRESS = Condition(ConditionType.VERIFIED, "Unknown", "InProgress", "0 of 1 pods passed, 1 coming up")
KNOWN = Condition(ConditionType.PODS_NOT_UP, "True", "ImageNotPulled", "1 of 1 pods does not come up: web-1: words")
SOURCE = SourceRef("ReplicaSet", "web-1", "rs", V1)
NO_SECRET = 'MountVolume.SetUp failed for volume "keys" : secret "absent" not found'
CREATING = {"waiting": {"reason": "ContainerCreating"}}
PULLING = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "busybo"'}}
Object = dict[str, Any]


def shown(*conditions: Condition, state: WorkloadState = WorkloadState.RUNNING) -> Release:
    status = ChangeWorkloadStatus(status=state, conditions=conditions, source=SOURCE)
    return Release(workload(), stored(release(status, created=int(NOW) - 60)))


def pod(name: str, state: Object, *, age: float = 60, owner: str = "rs") -> Object:
    metadata = {
        "name": name,
        "namespace": "shop",
        "uid": f"uid-{name}",
        "creationTimestamp": rfc3339(NOW - age),
        "labels": {labels.VERSION: V1},
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": owner, "controller": True}
        ],
    }
    unready = {"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "unready: [app]"}
    statuses = [{"name": "app", "ready": False, "restartCount": 0, "state": state}]
    status = {"phase": "Pending", "conditions": [unready], "containerStatuses": statuses}
    return {"metadata": metadata, "spec": {"nodeName": "node-1"}, "status": status}


class Client:
    """Answers with these pods, and with the same Events for each pod. None: the user may not list Events."""

    def __init__(self, *pods: Object, events: list[Object] | None = None) -> None:
        self.pods, self.events = pods, events
        self.asked: list[str] = []

    async def list(self, resource: Resource, namespace: str, *, as_: Any, **fields: Any) -> Any:
        self.asked.append(resource.plural)
        if resource == EVENTS and self.events is None:
            raise ForbiddenError("events is forbidden", code=403)
        items = self.pods if resource == PODS else self.events
        return SimpleNamespace(items=msgspec.json.decode(msgspec.json.encode(items), type=list[as_]))


async def words(client: Client, of: Release) -> str:
    (found,) = await with_words(client, [of], NOW)  # type: ignore[arg-type]
    return found.words


async def test_status_of_a_pod_gives_the_words_without_its_events() -> None:
    client = Client(pod("web-1", PULLING), pod("other", PULLING, owner="another"))
    text = '1 of 1 pods does not come up: web-1: container app: ImagePullBackOff: Back-off pulling image "busybo"'
    assert await words(client, shown(PROGRESS)) == text
    assert client.asked == ["pods"]


async def test_events_of_a_silent_pod_give_the_words() -> None:
    client = Client(pod("web-1", CREATING), events=[{"reason": "FailedMount", "message": NO_SECRET}])
    (found,) = await with_words(client, [shown(PROGRESS)], NOW)  # type: ignore[arg-type]
    text = f"0 of 1 pods passed, 1 coming up; 1 of 1 pods does not come up: web-1: FailedMount: {NO_SECRET}"
    assert row(found, Layout(), NOW).cells[-1] == text
    assert f"Reason:    {text}" in explain([found], [], NOW)


async def test_events_of_new_pods_are_not_read_and_of_others_only_two() -> None:
    client = Client(pod("web-1", CREATING, age=QUIET - 1), events=[])
    assert await words(client, shown(PROGRESS)) == ""
    assert client.asked == ["pods"]
    client = Client(*(pod(f"web-{number}", CREATING) for number in range(9)), events=[])
    assert await words(client, shown(PROGRESS)) == ""
    assert client.asked == ["pods", "events", "events"]


async def test_user_without_the_permission_gets_no_words() -> None:
    assert await words(Client(pod("web-1", CREATING)), shown(PROGRESS)) == ""


@pytest.mark.parametrize(
    "of",
    [
        shown(PROGRESS, KNOWN),
        shown(PROGRESS, Condition(ConditionType.STALLED, "True", "Paused", "the rollout is paused")),
        shown(PROGRESS, state=WorkloadState.SUCCESS),
        shown(PROGRESS, state=WorkloadState.SUSPEND),
        Release(workload(), None),
    ],
)
async def test_pods_are_read_only_if_the_release_is_under_way_and_does_not_say_why(of: Release) -> None:
    client = Client(pod("web-1", PULLING))
    assert (await words(client, of), client.asked) == ("", [])


async def test_pods_of_few_releases_are_read() -> None:
    client = Client()
    await with_words(client, [shown(PROGRESS)] * 50, NOW)  # type: ignore[arg-type]
    assert len(client.asked) == 10
