"""Lets time pass: kubelets, the workload's controller and the reconciler do what is due."""

import math
from typing import Any

from altershield.api.policy import OnFailure
from altershield.workloads.held import with_values
from tests.unit.reconciler.releases.world import Conflicted, Killed, SimPod

from .checks import Checks

START = 3.0
"""Seconds until a container is ready."""
CRASH = 40.0
"""Seconds after which a ready container of a bad image crashes."""
TERMINATION = 2.0


def spec_of(kind: str, surge: int | str, unavailable: int | str, min_ready: int, parallel: bool) -> dict[str, Any]:
    """The user's own spec."""
    more = {"minReadySeconds": min_ready} if min_ready else {}
    match kind:
        case "Deployment":
            rolling = {"maxSurge": surge, "maxUnavailable": unavailable if surge or unavailable else 1}
            return {
                "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
                "progressDeadlineSeconds": 600,
                **more,
            }
        case "StatefulSet":
            strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
            policy = "Parallel" if parallel else "OrderedReady"
            return {"podManagementPolicy": policy, "updateStrategy": strategy, **more}
        case "DaemonSet":
            rolling = {"maxUnavailable": unavailable or 1, "maxSurge": 0}
            return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}, **more}
    type_ = "ReCreate" if parallel else "InPlaceIfPossible"
    return {"updateStrategy": {"type": type_, "maxUnavailable": unavailable or 1, "partition": 0}, **more}


class Cluster(Checks):
    """Pods of `good` images come up and stay up. Pods of `bad` images crash some time after they were ready. Pods of
    `dud` images are never ready."""

    def __init__(self, kind: str, spec: dict[str, Any], **options: Any) -> None:
        super().__init__(kind, spec, **options)
        self.next: dict[str, tuple[float, str]] = {}
        """By pod uid: when the kubelet acts next, and how."""
        self.kept: set[str] = set()
        """The uids of the pods that do not end, as with a finalizer."""
        self.budget: int | None = None
        """After so many writes, the reconciler is killed; None: it is not."""
        self.conflict: int | None = None
        """After so many writes, one has a conflict; None: none has."""
        self.write_hook = self.on_write

    def on_write(self, what: str) -> None:
        if self.budget is not None:
            if self.budget == 0:
                raise Killed
            self.budget -= 1
        if self.conflict is not None:
            if self.conflict == 0:
                raise Conflicted
            self.conflict -= 1

    def settle(self) -> None:
        """Reconcile until nothing is written."""
        try:
            for _ in range(60):
                wrote = self.reconcile()
                self.look()
                wrote |= self.roll()
                if not wrote and self.decision.requeue_after not in (0, 0.0):
                    return
            raise AssertionError(f"the reconciler writes again and again: {self.steps_status} {self.hold}")
        except Killed:
            self.die()
        except Conflicted:
            pass
        finally:
            self.look()
            self.budget = self.conflict = None

    def roll(self) -> bool:
        """The workload's controller acts. Returns whether it did anything."""
        for turn in range(100):
            self.scaling = self.controller.is_scaling(self._seen())
            if not self.observed or not self.controller.step(self._seen()):
                self.scaling = False
                return turn > 0
        raise AssertionError("the controller of the workload never comes to rest")

    def on_create(self, pod: SimPod) -> None:
        self.begin_pod(pod)
        super().on_create(pod)

    def terminate(self, pod: SimPod) -> None:
        super().terminate(pod)
        self.next.pop(pod.uid, None)
        if pod.uid not in self.kept:
            self.next[pod.uid] = (self.t + TERMINATION, "gone")

    def begin_pod(self, pod: SimPod) -> None:
        if pod.image.startswith("dud"):
            pod.wait_for_image()
            self.touch(pod)
            self.next.pop(pod.uid, None)
        else:
            self.next[pod.uid] = (self.t + START, "up")

    def _act(self, uid: str, what: str) -> None:
        pod = self.pods[uid]
        del self.next[uid]
        if what == "gone":
            self.remove(pod)
        elif pod.node in self.lost_nodes:
            return
        elif what == "up":
            self.up(pod)
            if pod.image.startswith("bad"):
                self.next[uid] = (self.t + CRASH, "crash")
        else:
            self.touch(pod.crash(self.t))
            self.next[uid] = (self.t + min(10.0 * 2.0 ** min(pod.restarts - 1, 10), 300.0), "up")

    def _dues(self) -> list[float]:
        due = [at for at, _ in self.next.values()]
        if self.decision.requeue_after is not None:
            due.append(self.t + max(self.decision.requeue_after, 0.001))
        own = self.spec if self.hold is None else with_values(self.spec, self.hold.fields)
        for wait in {self.spec.get("minReadySeconds", 0), own.get("minReadySeconds", 0)}:
            ready = (math.ceil(pod.ready_at) + wait for pod in self.pods.values() if pod.ready)
            due += [at for at in ready if at > self.t]
        return due

    def go_on(self, seconds: float) -> None:
        """Let time pass."""
        end = self.t + seconds
        for _ in range(3000):
            self.roll()
            self.note()
            self.settle()
            self.next = {uid: each for uid, each in self.next.items() if uid in self.pods}
            at = max(min([*self._dues(), end]), self.t)
            self.pass_time(at - self.t)
            for uid, (when, what) in list(self.next.items()):
                if when <= self.t and uid in self.pods:
                    self._act(uid, what)
            if at >= end:
                break
        else:
            raise AssertionError("the reconciler and the cluster never come to rest")
        self.roll()
        self.note()
        self.settle()
        self.check_rest()


def with_second_version(kind: str, spec: dict[str, Any], *, seconds: float, **options: Any) -> Cluster:
    """A workload of which `good-1` and then `good-2` was released, each followed by so many seconds. A failure suspends
    it. `options`: those of a Cluster."""
    world = Cluster(kind, spec, on_failure=OnFailure.SUSPEND, **options)
    for image in ("good-1", "good-2"):
        world.release(image)
        world.on_release(image)
        world.go_on(seconds)
    return world
