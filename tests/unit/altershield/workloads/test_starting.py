"""How far the start of a pod has come, and how long its containers may take."""

from typing import Any

import msgspec
import pytest

from altershield.workloads.pods import Starting
from altershield.workloads.start_budget import StartBudget, start_budget
from kube_base.times import rfc3339, unix

from .objects import CREATED, Object, condition, pod, workload

ACCEPTED = unix(CREATED) + 7
PROBE = {"initialDelaySeconds": 20, "periodSeconds": 4, "failureThreshold": 20}


def at(seconds: float) -> str:
    return rfc3339(ACCEPTED + seconds)


def status(name: str, state: Object, *, ready: bool = False, started: bool = False, restarts: int = 0) -> Object:
    return {"name": name, "state": state, "ready": ready, "started": started, "restartCount": restarts}


def waits(name: str = "main", reason: str = "PodInitializing") -> Object:
    return status(name, {"waiting": {"reason": reason}})


def runs(name: str = "main", since: float = 3, **more: Any) -> Object:
    return status(name, {"running": {"startedAt": at(since)}}, started=True, **more)


def ended(name: str = "init", finished: float = 40, code: int = 0, **more: Any) -> Object:
    return status(name, {"terminated": {"exitCode": code, "finishedAt": at(finished)}}, ready=not code, **more)


def initialized(since: float) -> list[Object]:
    return [{**condition("Initialized", True), "lastTransitionTime": at(since)}]


def starting(
    *containers: Object, init: list[Object] | None = None, sidecars: tuple[str, ...] = (), **more: Any
) -> Starting | None:
    spec = {"initContainers": [{"name": name, "restartPolicy": "Always"} for name in sidecars]}
    of_pod = {"startTime": at(0), "initContainerStatuses": init, "containerStatuses": list(containers), **more}
    return pod(spec=spec, status={"phase": "Pending", **of_pod}).starting


@pytest.mark.parametrize(
    ("containers", "found"),
    [
        ([], None),
        ([waits(reason="ContainerCreating")], None),
        ([waits(reason="ImagePullBackOff")], None),
        ([waits(reason="CreateContainerConfigError")], None),
        ([runs()], Starting(0, 3)),
        ([runs(restarts=1)], Starting(0, 3, restarted=True)),
        ([ended("main", code=1)], None),
        ([runs("a", 3), runs("b", 8)], Starting(0, 8)),
        ([runs("a", 3), waits("b", "ContainerCreating")], Starting(0, 3)),
        ([runs("a", 3), waits("b", "ImagePullBackOff")], None),
        ([runs("a", 3), waits("b", "CrashLoopBackOff")], None),
        ([runs("a", 3), runs("b", 8, ready=True, restarts=1)], Starting(0, 3)),
        ([runs("a", 3, ready=True), runs("b", 8, ready=True)], Starting(0, 8)),
    ],
    ids=range(13),
)
def test_start_of_containers(containers: list[Object], found: Starting | None) -> None:
    assert starting(*containers) == found


@pytest.mark.parametrize(
    ("init", "containers", "more", "found"),
    [
        ([waits("init")], [waits()], {}, None),
        ([runs("init", 4)], [waits()], {}, Starting(0, 4, "init")),
        ([runs("init", 4, restarts=1)], [waits()], {}, Starting(0, 4, "init", restarted=True)),
        ([waits("init", "CrashLoopBackOff")], [waits()], {}, None),
        ([ended("a", 40), waits("b")], [waits()], {}, Starting(40, None, "b")),
        ([ended("a", 40), waits("b", "ImagePullBackOff")], [waits()], {}, Starting(40, None, "b")),
        ([ended("a", 40), runs("b", 44)], [waits()], {}, Starting(40, 44, "b")),
        ([ended("a", 40), ended("b", 99)], [waits()], {}, Starting(99, None)),
        ([ended("a", 40)], [waits(reason="ErrImagePull")], {}, Starting(40, None)),
        ([ended("a", 40)], [runs(since=60)], {}, Starting(40, 60)),
        ([ended("a", 40, restarts=2)], [runs(since=60)], {}, Starting(0, 60)),
        ([ended("a", 40, code=1)], [waits()], {}, None),
        # sidecars
        ([{**runs("proxy", 4), "started": False}], [waits()], {"sidecars": ("proxy",)}, Starting(0, 4, "proxy")),
        ([runs("proxy", 4), runs("b", 90)], [waits()], {"sidecars": ("proxy",)}, Starting(0, 90, "b")),
        (
            [runs("proxy", 4, restarts=1), ended("b", 40)],
            [runs(since=60)],
            {"sidecars": ("proxy",), "conditions": initialized(40)},
            Starting(40, 60),
        ),
        ([runs("proxy", 4)], [waits()], {"sidecars": ("proxy",), "conditions": initialized(150)}, Starting(150, None)),
        ([runs("init", 4)], [waits()], {"conditions": initialized(150)}, Starting(0, 4, "init")),
    ],
    ids=range(17),
)
def test_start_of_init_containers(
    init: list[Object], containers: list[Object], more: Any, found: Starting | None
) -> None:
    assert starting(*containers, init=init, **more) == found


def test_ready_pod_and_pod_that_no_kubelet_accepted_have_no_start() -> None:
    assert starting(runs(ready=True), phase="Running", conditions=[condition("Ready", True)]) is None
    assert starting(runs(), startTime=None) is None


def test_pod_without_init_containers_was_initialized_from_the_begin() -> None:
    assert starting(waits(reason="ErrImagePull"), conditions=initialized(5)) is None
    assert starting(runs(), conditions=initialized(5)) == Starting(0, 3)


def test_time_before_the_kubelet_accepted_the_pod_counts_as_that_time() -> None:
    assert starting(runs(since=-5)) == Starting(0, 0)


def budget(*containers: Object, init: list[Object] | None = None, deadline: int | None = None) -> StartBudget:
    spec = {"containers": list(containers), "initContainers": init}
    return start_budget(msgspec.Raw(msgspec.json.encode(spec)), deadline)


def test_budget_is_that_of_the_slowest_container() -> None:
    assert (
        budget({"name": "a"}, {"name": "b", "startupProbe": PROBE}, {"name": "c", "startupProbe": {}}).containers == 100
    )


def test_sidecar_has_its_own_budget_until_the_next_container_may_start() -> None:
    proxy = {"name": "proxy", "restartPolicy": "Always", "startupProbe": PROBE}
    found = budget({"name": "main"}, init=[proxy, {"name": "migrate", "startupProbe": PROBE}])
    assert (found.containers, found.of_init("proxy"), found.of_init("migrate")) == (0, 100, 600)
    asked = budget({"name": "main"}, init=[{**proxy, "readinessProbe": {"initialDelaySeconds": 50}}])
    assert (asked.containers, asked.of_init("proxy")) == (60, 100)


@pytest.mark.parametrize(
    "spec", [b"", b"null", b"{}", b'{"containers": 1}', b'{"containers": [{"startupProbe": "x"}]}']
)
def test_spec_that_cannot_be_read_has_no_budget(spec: bytes) -> None:
    assert start_budget(msgspec.Raw(spec), None) == StartBudget()


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "CloneSet"])
def test_only_deployments_have_a_progress_deadline(kind: str) -> None:
    assert workload(kind, progressDeadlineSeconds=50).start.init == (50 if kind == "Deployment" else 600)
    assert workload(kind).start is workload(kind).start, "equal budgets are one object"
