"""What has to hold of a release in steps, whatever happens. Nothing here calls the functions that decide."""

import math
from typing import Any

from altershield.api.change_workload import WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition
from altershield.api.rollout import ENDED, Phase, RolloutStatus
from altershield.workloads.held import follows, values
from altershield.workloads.hold import Hold
from tests.unit.reconciler.releases.world import SimPod, fingerprint

from .world import SteppedWorld

Object = dict[str, Any]

SURGE, UNAVAILABLE = "/spec/strategy/rollingUpdate/maxSurge", "/spec/strategy/rollingUpdate/maxUnavailable"


def share(amount: int | str | None, replicas: int, *, up: bool) -> int:
    """How many pods an amount means; None: 0."""
    if amount is None:
        return 0
    if isinstance(amount, int):
        return amount
    exact = replicas * int(amount[:-1]) / 100
    return math.ceil(exact) if up else math.floor(exact)


class Checks(SteppedWorld):
    """The world, with checks of what its controller, its gatekeeper and its reconciler do."""

    def __init__(self, kind: str, spec: Object, **options: Any) -> None:
        super().__init__(kind, spec, **options)
        self.scaling = False
        """Whether the workload was scaled in this moment: its controller may then delete any pod."""
        self.base = ""
        self.judged: set[str] = set()
        """The images of which a person gave a verdict, or asked to go back."""
        self.unheld = False
        """Whether the controller created pods while somebody's fields were in force, changed without a gatekeeper."""
        self._start()
        self._failed, self._pods = "", 0
        self._seen_release = ("", 0)
        self._before = RolloutStatus()
        self._was_overdue = False
        self._clock: tuple[int, int] = (0, 0)

    def _start(self) -> None:
        """A version begins to be released in steps."""
        staying = sum(not pod.deleting for pod in self.pods.values())
        self.extra = max(0, self.replicas - staying) if self.kind != "Deployment" else 0
        """The pods that scaling, a node, or the replacement of a pod by somebody else may have added to its step."""
        self.escaped = False
        """Whether the workload was scaled to 0: the version then gets all pods."""
        self.most_replicas = self.replicas
        self.ready_at: dict[int, float] = {}
        """When so many pods of the version were up for the first time."""
        self.most_reach = self.reach
        self.began = values(self.adapter, self.user)
        """The user's own values when the release began: those of its strategy count until its end."""
        self.running = 0.0
        """Seconds of the step in which its clock has to run."""

    # time

    def pass_time(self, seconds: float) -> None:
        """The clock of a step has to stop while a person holds the release, the user paused the workload, or a quota
        refuses the pods that the user's own strategy cannot do without."""
        status, hold = self.steps_status, self.hold
        fields = hold.fields if hold is not None else {}
        refused = self.controller.refused and not share(fields.get(UNAVAILABLE, 1), self.replicas, up=False)
        if not (status.held_by or fields.get("/spec/paused") or refused):
            self.running += seconds
        self.t += seconds

    def note(self) -> None:
        """Note what is so at this moment."""
        hold = self.hold
        self.most_replicas = max(self.most_replicas, self.replicas)
        if hold is None:
            return
        if not self.replicas:
            self.escaped = True
        self.most_reach = max(self.most_reach, self.reach)
        wait = self.user.get("minReadySeconds", 0) + self.timing.observe
        pods = (pod for pod in self.pods.values() if pod.ready and not pod.deleting and pod.image == self.image)
        for number in range(1, sum(int(pod.ready_at) + wait <= self.t for pod in pods) + 1):
            self.ready_at.setdefault(number, self.t)

    # releases

    def on_release(self, image: str) -> None:
        """Called after a release was admitted."""
        hold = self.hold
        if hold is None:
            self.base, self.unheld = "", False
            return
        self.base = self.base or hold.base
        self._start()

    def look(self) -> None:
        """Called after the reconciler has written."""
        before, after, hold = self._before, self.steps_status, self.hold
        self._before = after
        if hold is None:
            self.base = ""
        else:
            self.base = self.base or hold.base
            assert hold.base == self.base, "the base changes while releases are held"
        if self._clock != (after.step, after.step_time_unix):
            self._clock, self.running = (after.step, after.step_time_unix), 0.0
        release = self.releases.get(self.version)
        known = (self.version, release.spec.create_time_unix if release is not None else 0)
        if known == self._seen_release:
            self._steps_passed(before, after)
        self._seen_release = known
        failed = hold is not None and self.version in self.releases and self.state() == WorkloadState.SUSPEND
        if failed and hold is not None and self._failed == self.version:
            assert hold.pods <= self._pods, "a failed release gets further pods"
        self._failed = self.version if failed else ""
        self._pods = hold.pods if hold is not None else 0
        overdue = self._is_overdue()
        if overdue and not self._was_overdue:
            deadline = self.rollout.step_deadline_seconds
            assert self.running >= deadline - 2, f"a step is overdue after {self.running} of {deadline} s"
        self._was_overdue = overdue

    def _is_overdue(self) -> bool:
        found = self.releases.get(self.version)
        condition = find_condition(found.status.conditions, ConditionType.VERIFIED) if found is not None else None
        return condition is not None and condition.reason == "StepDeadlineExceeded"

    def _steps_passed(self, before: RolloutStatus, after: RolloutStatus) -> None:
        known = {each.step for each in before.passed_steps}
        for each in after.passed_steps:
            if each.step in known or each.step > len(self.rollout.steps):
                continue
            if not self.late and not self.escaped:
                own = [pod for pod in self.pods.values() if pod.image == self.image and not pod.deleting]
                assert all(pod.ready for pod in own), f"step {each.step} passes although a pod is not ready"
            if each.promoted_by or after.full or before.full:
                continue
            step = self.rollout.steps[each.step - 1]
            assert not step.approval, "a step with approval passes without a person"
            target = min(self.reach, share(step.pods, self.replicas, up=True))
            if self.extra or self.escaped or self.replicas != self.most_replicas:
                continue
            assert target in self.ready_at, f"step {each.step} passes before {target} pods were ready"
            assert self.t - self.ready_at[target] >= step.soak_seconds - 1, "a step passes before its soak is over"

    @property
    def reach(self) -> int:
        """How many pods the user's own partition lets the release reach."""
        own = self.user.get("updateStrategy", {})
        if self.kind != "CloneSet":
            return max(0, self.replicas - int(own.get("rollingUpdate", {}).get("partition", 0)))
        partition = own.get("partition", 0)
        at_least = 1 if isinstance(partition, str) and self.replicas > 1 else 0  # no share that is tried here is 100 %
        return max(at_least, self.replicas - share(partition, self.replicas, up=True))

    # pods

    def on_create(self, pod: SimPod) -> None:
        """The controller has created a pod, or updated it in place."""
        hold = self.hold
        if hold is None or pod.image != self.image or fingerprint(pod.image) != hold.version or self.escaped:
            return
        status = self.steps_status
        if status.phase in (Phase.FINISHING, *ENDED):
            return
        self.most_replicas = max(self.most_replicas, self.replicas)
        first = self.rollout.steps[: max(status.step, 1)]
        self.most_reach = max(self.most_reach, self.reach)
        own = min(self.most_reach, max(share(each.pods, self.most_replicas, up=True) for each in first))
        most = max(own, hold.at_least) + self.extra
        present = sum(each.image == pod.image and not each.deleting for each in self.pods.values())
        if self._is_unheld(hold):
            self.extra += 1
            self.unheld = True
            return
        assert present <= most, f"{present} pods have the version, and its step has {most}"

    def on_delete(self, pod: SimPod) -> None:
        """The controller is about to delete a pod, or to update it in place."""
        if self.hold is not None and self._is_unheld(self.hold):
            self.extra += pod.image != self.image  # a pod takes its place, maybe when the fields are held again
        self._is_missed(pod)

    def on_evict(self, pod: SimPod) -> None:
        self._is_missed(pod)

    def _is_missed(self, pod: SimPod) -> None:
        hold = self.hold
        if hold is None or self.late or self.scaling or self._is_unheld(hold) or not self._is_available(pod):
            return
        if self.kind == "Deployment":
            if self.spec.get("paused") and self.unheld:
                return  # its controller takes those above the replicas and the surge from all versions
            if hold.replicas < self.replicas:
                return  # a share of the replicas before the scaling counts until the hold is written again
            fields = self.began
            surge = share(fields[SURGE], self.replicas, up=True)
            below = share(fields[UNAVAILABLE], self.replicas, up=False)
            below = below if below or surge else 1
        elif self.kind == "DaemonSet":
            below = max(
                1, share(self.spec["updateStrategy"]["rollingUpdate"]["maxUnavailable"], self.replicas, up=True)
            )
        else:
            return  # its controller sees to it while it is held
        left = sum(map(self._is_available, self.pods.values())) - 1
        least = self.replicas - below
        others = [each for each in self.pods.values() if each.image not in (self.image, pod.image)]
        if self.kind == "Deployment" and self._is_superseded(pod) and not all(map(self._is_available, others)):
            # its controller takes the pods of versions that were held for unavailable, the oldest first
            base = [each for each in self.pods.values() if fingerprint(each.image) == self.base]
            least = min(least, sum(map(self._is_available, base)))
        assert left >= least, f"{left} pods are left available, and {least} have to be"

    def _is_unheld(self, hold: Hold) -> bool:
        """Whether fields that somebody changed while no gatekeeper answered are in force."""
        return not follows(self.adapter, hold, self.spec)

    def _is_superseded(self, pod: SimPod) -> bool:
        """Whether the version of the pod was held before the present one."""
        return pod.image != self.image and fingerprint(pod.image) != self.base

    def _is_available(self, pod: SimPod) -> bool:
        """Whether the pod is available by the user's own `minReadySeconds`."""
        wait = self.user.get("minReadySeconds", 0)
        return pod.ready and not pod.deleting and int(pod.ready_at) + wait <= self.t and self.node_ready(pod.node)

    # the end

    def check_spec(self) -> None:
        if self.hold is None:
            assert self.spec == self.user, "the workload has other fields than the user gave it"

    def check_rest(self) -> None:
        """At rest, the fields of a held workload follow its hold, and the hold its replicas."""
        hold, phase = self.hold, self.steps_status.phase
        if hold is None or not self.gatekeeper or self.refuses_holds or self.late or not self.replicas:
            return
        held = (Phase.ROLLING, Phase.VERIFYING, Phase.SOAKING, Phase.WAITING_FOR_APPROVAL)
        if phase in (*held, Phase.STOPPED):
            assert not self._is_unheld(hold), "the held fields do not follow the hold"
        if phase in held:
            assert hold.replicas == self.replicas, "the hold is of other replicas"

    def check_end(self) -> None:
        """Whether a release that nothing stands against has ended."""
        status, state = self.steps_status, self.state()
        if not self.reach:
            return  # the user's own partition keeps all pods at the old version
        if self.kind == "StatefulSet" and any(not pod.image.startswith("good") for pod in self.pods.values()):
            return  # its controller waits for pods of an older version that crash now and then
        assert not status.phase or status.phase in (*ENDED, Phase.STOPPED), f"{status} {self.hold}"
        if status.phase in ENDED:
            assert self.hold is None, "the release is over, and the workload is held still"
        if status.phase == Phase.STOPPED:
            assert state in (WorkloadState.SUSPEND, WorkloadState.ROLLBACK), state
        if status.phase == Phase.DONE:
            assert state != WorkloadState.RUNNING, f"{state} {self.status()}"
        if not self.image.startswith("good") and self.replicas:
            assert state != WorkloadState.SUCCESS or self.image in self.judged, (
                f"a bad release succeeds: {self.status()}"
            )
        if self.image.startswith("good") and self.image not in self.judged and not self._is_overdue():
            assert state != WorkloadState.SUSPEND, f"a good release is stopped: {self.status()}"
