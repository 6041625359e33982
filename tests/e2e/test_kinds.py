"""A release of every kind of workload: verified, suspended, repaired, undone by itself and on request.

The stories run at the same time, each in a namespace of its own.
"""

import json
import uuid
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from altershield.api import labels
from tests.e2e.conftest import START_TIMEOUT, Json, Kubectl, eventually, govern
from tests.e2e.history import History, Record, watching
from tests.e2e.kinds import KINDS, Kind

pytestmark = pytest.mark.xdist_group("kinds")

NAME = "app"


class Story:
    """One workload and what is done to it."""

    def __init__(self, kubectl: Kubectl, history: History, kind: Kind) -> None:
        self.kubectl = kubectl
        self.kind = kind
        self._history = history

    def release(self, image: str, **spec: object) -> str:
        """Apply it with this image; the version."""
        self.kubectl("apply", "-f", "-", stdin=json.dumps(self.kind.manifest(NAME, image, **spec)))
        return self.version()

    def get(self) -> Json:
        return self.kubectl.json(self.kind.resource, NAME)

    def labels(self) -> dict[str, str]:
        return self.kubectl.labels(self.kind.resource, NAME)

    def version(self) -> str:
        return self.labels()[labels.VERSION]

    def until(self, version: str, state: str, seconds: float = 90) -> Record:
        """The record of this version, once it is in this state."""
        name = self.kind.record(NAME, version)
        return self._history.until(
            self.kubectl.namespace, name, lambda record: record.state == state, f"{name} to be {state}", seconds
        )

    def released(self, image: str, **spec: object) -> str:
        """Release it and see it succeed; the version."""
        version = self.release(image, **spec)
        self.until(version, "Success")
        return version

    def fail(self, version: str) -> str:
        """Fail one of its pods, as a person does; the pod."""
        name = f"{self.kind.record(NAME, version)}--x--1"
        pod = self.kubectl.json("changepod", name)["spec"]["podInfos"][0]["pod"]
        patch = {"status": {"podResults": [{"pod": pod, "verdict": "unpass", "message": "find error"}]}}
        self.kubectl("patch", "changepod", name, "--subresource=status", "--type=merge", "-p", json.dumps(patch))
        self.until(version, "Suspend")
        eventually(lambda: labels.SUSPEND in self.labels(), "the label suspend")
        return str(pod)

    def pods(self) -> list[Json]:
        found = self.kubectl.json("pods", "-l", f"app={NAME}")["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def until_all_ready(self, image: str) -> list[Json]:
        """Its pods, once all of them are ready and of this image."""

        def met() -> list[Json]:
            pods = self.pods()
            good = [pod for pod in pods if is_ready(pod) and pod["spec"]["containers"][0]["image"] == image]
            return pods if len(good) == len(pods) >= 3 else []

        return eventually(met, f"all pods to be ready, of {image}")


def is_ready(pod: Json) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


def verified_suspended_repaired(story: Story) -> None:
    kind = story.kind
    first = story.released("busybox:1")
    workload = story.get()
    record = story.until(first, "Success")
    assert workload["metadata"]["labels"][labels.DEFENSE_STATUS] == labels.PROCESSED
    assert workload["spec"]["template"]["metadata"]["labels"][labels.VERSION] == first
    assert record.obj["spec"]["reversion"] == first == record.obj["metadata"]["labels"][labels.VERSION]
    assert record.obj["spec"]["workloadRef"] == {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": NAME,
        "uid": workload["metadata"]["uid"],
    }
    assert len(record.status["defenseCheckPassPods"]) == len(story.pods())

    second = story.released("busybox:2")
    assert second != first
    eventually(lambda: len(story.kubectl.json("changeworkloads")["items"]) == 1, "the older record to go")

    failed = story.fail(second)
    (shown,) = story.until(second, "Suspend").failed
    assert (shown["pod"], shown["message"]) == (failed, "find error")
    newer = kind.manifest(NAME, "busybox:3")
    denied = story.kubectl.run("apply", "-f", "-", stdin=json.dumps(newer))
    text = f"{kind.resource} {NAME} is suspended"
    assert f"Error from server ({text}): " in denied.stderr
    assert f'admission webhook "v{kind.resource}.kb.io" denied the request: {text}' in denied.stderr

    newer["metadata"]["labels"][labels.IGNORED_SUSPEND] = "true"
    story.kubectl("apply", "-f", "-", stdin=json.dumps(newer))
    repaired = story.version()
    story.until(repaired, "Success")
    eventually(lambda: not {labels.SUSPEND, labels.IGNORED_SUSPEND} & set(story.labels()), "the all-clear")
    eventually(lambda: len(story.kubectl.json("changeworkloads")["items"]) == 1, "the suspended record to go")
    story.released("busybox:4")


def undone_by_itself(story: Story) -> None:
    good = story.released("busybox:1")
    before = {pod["metadata"]["uid"] for pod in story.pods()}
    bad = story.release("nosuch:1")
    assert bad != good
    record = story.until(bad, "Failed", START_TIMEOUT + 60)
    assert "Success" not in record.states
    undone = record.condition("RolledBack")
    assert (undone["status"], undone["reason"]) == ("True", "PodNotUp")
    assert "ImagePullBackOff" in undone["message"] or "ErrImagePull" in undone["message"]
    assert story.version() == good
    pods = story.until_all_ready("busybox:1")
    assert len(before & {pod["metadata"]["uid"] for pod in pods}) >= len(pods) - 1, "the others went on"
    story.until(good, "Success")
    denied = story.kubectl.run("apply", "-f", "-", stdin=json.dumps(story.kind.manifest(NAME, "nosuch:1")))
    assert "was rolled back" in denied.stderr
    story.released("busybox:2")


def undone_on_request(story: Story) -> None:
    good = story.released("busybox:1")
    bad = story.released("busybox:2")
    story.fail(bad)
    patch = ("patch", "changeworkload", story.kind.record(NAME, bad), "--subresource=status", "--type=merge")
    story.kubectl(*patch, "-p", '{"status":{"status":"Rollback"}}')
    record = story.until(bad, "Failed")
    assert record.condition("RolledBack")["reason"] == "Requested"
    assert story.version() == good
    story.until_all_ready("busybox:1")
    story.until(good, "Success")
    eventually(lambda: labels.SUSPEND not in story.labels(), "the suspension to be lifted")


STORIES = {
    f"{story.__name__}-{kind.id}": (story, kind)
    for story in (verified_suspended_repaired, undone_by_itself, undone_on_request)
    for kind in KINDS
}
Told = dict[str, "Future[None]"]


def asked_for(request: pytest.FixtureRequest) -> list[str]:
    """Of this module's cases those that are not deselected."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function) and item.path == request.path]
    return list(dict.fromkeys(str(item.callspec.params["name"]) for item in items if hasattr(item, "callspec")))


@pytest.fixture(scope="module")
def told(request: pytest.FixtureRequest, gate: Path, has_kubectl: None) -> Iterator[Told]:
    """Every story that is asked for, being told."""
    asked = asked_for(request)
    run = uuid.uuid4().hex[:6]
    namespaces = {name: f"kinds-{run}-{number}" for number, name in enumerate(STORIES)}
    govern(gate, [namespaces[name] for name in asked])
    has_clone_sets = Kubectl(gate).run("get", "crd", "clonesets.apps.kruise.io").returncode == 0

    def tell(name: str, history: History) -> None:
        story, kind = STORIES[name]
        story(Story(Kubectl(gate, namespaces[name]), history, kind))

    with watching(gate) as history, ThreadPoolExecutor(6) as pool:
        yield {
            name: pool.submit(tell, name, history)
            for name in STORIES
            if name in asked and (has_clone_sets or STORIES[name][1].kind != "CloneSet")
        }
    Kubectl(gate).run("delete", "namespace", *(namespaces[name] for name in asked), "--wait=false")


@pytest.mark.parametrize("name", STORIES)
def test_story(told: Told, name: str) -> None:
    if name not in told:
        pytest.skip("the cluster has no CloneSets")
    told[name].result(timeout=280)
