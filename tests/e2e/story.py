"""Stories of one workload each. They run at the same time, each in a namespace of its own."""

import contextlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from altershield.api import labels
from tests.e2e.conftest import govern
from tests.e2e.history import History, ReleaseHistory, watching
from tests.e2e.kinds import Kind
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually

NAME = "app"
_AT_ONCE = 6


class Story:
    """One workload of a kind, in its own namespace."""

    def __init__(self, kubectl: Kubectl, history: History, kind: Kind) -> None:
        self.kubectl = kubectl
        self.kind = kind
        self._history = history

    def release(self, image: str, **spec: Any) -> str:
        """Apply the workload with this image, and return the version."""
        self.kubectl.apply(json.dumps(self.kind.manifest(NAME, image, **spec)))
        return self.version()

    def get(self) -> Json:
        return self.kubectl.json(self.kind.resource, NAME)

    def labels(self) -> dict[str, str]:
        return self.kubectl.labels(self.kind.resource, NAME)

    def version(self) -> str:
        return self.labels()[labels.VERSION]

    def until(self, version: str, state: str = "") -> ReleaseHistory:
        """Wait until the release of this version is in this state (by default any), and return the release."""
        name = self.kind.change_workload_name(NAME, version)

        def met(release: ReleaseHistory) -> bool:
            return bool(release.state) and state in ("", release.state)

        return self._history.until(self.kubectl.namespace, name, met, f"{name} to be {state or 'there'}")

    def released(self, image: str, **spec: Any) -> str:
        """Release this image, wait for Success, and return the version."""
        version = self.release(image, **spec)
        self.until(version, "Success")
        return version

    def fail(self, version: str) -> str:
        """Fail one of the pods of a version, as a person does, and return the name of the pod."""
        name = f"{self.kind.change_workload_name(NAME, version)}--x--1"
        pod = self.kubectl.json("changepod", name)["spec"]["podInfos"][0]["pod"]
        patch = {"status": {"podResults": [{"pod": pod, "verdict": "unpass", "message": "find error"}]}}
        answer = self.kubectl.merge("changepod", name, patch, "status")
        assert answer[0] == 200, answer
        self.until(version, "Suspend")
        eventually(lambda: labels.SUSPEND in self.labels(), "the label suspend")
        return str(pod)

    def pods(self) -> list[Json]:
        found = self.kubectl.json("pods", "-l", f"app={NAME}")["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def until_all_ready(self, image: str) -> list[Json]:
        """Wait until all pods are ready and have this image, and return the pods."""

        def met() -> list[Json]:
            pods = self.pods()
            good = [pod for pod in pods if is_ready(pod) and pod["spec"]["containers"][0]["image"] == image]
            return pods if len(good) == len(pods) >= 3 else []

        return eventually(met, f"all pods to be ready, of {image}")


def is_ready(pod: Json) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


Stories = Mapping[str, tuple[Callable[[Story], None], Kind]]
StoryResults = dict[str, "Future[None]"]


@contextlib.contextmanager
def running_stories(request: pytest.FixtureRequest, installed: Path, stories: Stories) -> Iterator[StoryResults]:
    """Run the stories of a module whose tests are selected, and return their results by name.

    A test selects its story by the parameter `name`. Stories of CloneSets do not run on a cluster without CloneSets."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function) and item.path == request.path]
    asked = {item.callspec.params.get("name") for item in items if hasattr(item, "callspec")}
    has_clone_sets = Kubectl(installed).run("get", "crd", "clonesets.apps.kruise.io").returncode == 0
    names = [name for name in stories if name in asked and (has_clone_sets or stories[name][1].kind != "CloneSet")]
    run = uuid.uuid4().hex[:6]
    namespaces = {name: f"story-{run}-{number}" for number, name in enumerate(names)}
    govern(installed, list(namespaces.values()))

    def run_story(name: str, history: History) -> None:
        story, kind = stories[name]
        story(Story(Kubectl(installed, namespaces[name]), history, kind))

    with watching(installed) as history, ThreadPoolExecutor(_AT_ONCE) as pool:
        yield {name: pool.submit(run_story, name, history) for name in names}
    Kubectl(installed).delete_namespaces(*namespaces.values())
