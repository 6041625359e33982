"""Both state machines together, driven at random: whatever happens in whatever order, and wherever the reconciler
is killed, the release ends as its pods and their verdicts say."""

import msgspec
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule

from altershield.api.kinds import (
    ChangePod,
    ChangePodSpec,
    ChangePodStatus,
    ChangeWorkload,
    PodInfo,
    PodState,
    WorkloadState,
)
from altershield.api.meta import plain_time
from altershield.api.ops_config import Settings
from altershield.api.views import Pod
from reconciler.decisions import change_pods, change_workloads
from reconciler.decisions import pods as facts
from reconciler.decisions.change_pods import Accepted, Answer, Checked, NotYet, Refused
from reconciler.decisions.effects import Ask, CreateChangePod, Effect, Remove, Requeue, Resume, SetThreshold, Suspend
from tests.unit.reconciler import builders
from tests.unit.reconciler.builders import NOW

ANSWERS = st.sampled_from(
    [Accepted("node"), Refused("no"), Checked(True, "fine"), Checked(False, "broken"), NotYet()],
)
AFTER = (Remove, Suspend)
VERDICTS = st.sampled_from(["pass", "unpass", "maybe", ""])


class Release(RuleBasedStateMachine):
    """One version of one workload. The fields are what the API server would hold."""

    pods_known = Bundle("pods")

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.pods: dict[str, Pod] = {}
        self.born = 0
        self.records: dict[int, ChangePod] = {}
        self.release: ChangeWorkload = builders.change_workload(status="")
        self.replicas = 3
        self.suspended = False
        self.settings = Settings()
        self.server = False

    # what the cluster does

    @rule(target=pods_known, up=st.booleans())
    def a_pod_is_created(self, up: bool) -> str:
        self.born += 1
        name = f"pod-{self.born}"
        self.pods[name] = builders.pod(name, created=self.now, finished=self.now if up else None, ready=up)
        return name

    @rule(name=pods_known)
    def a_pod_comes_up(self, name: str) -> None:
        if name in self.pods and not facts.finished(self.pods[name]):
            self.pods[name] = builders.pod(name, finished=self.now, ready=True)

    @rule(name=pods_known)
    def a_pod_begins_to_crash(self, name: str) -> None:
        if name in self.pods and facts.finished(self.pods[name]):
            waiting = ("CrashLoopBackOff", "back-off")
            self.pods[name] = builders.pod(name, finished=facts.finished_at(self.pods[name]), waiting=waiting)

    @rule(name=consumes(pods_known))
    def a_pod_goes(self, name: str) -> None:
        del self.pods[name]

    @rule(seconds=st.integers(1, 200))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds

    # what people do

    @rule(replicas=st.integers(0, 5))
    def somebody_scales(self, replicas: int) -> None:
        self.replicas = replicas

    @rule(blocking=st.booleans(), branch=st.booleans(), content=st.sampled_from(["1", "2", "50%"]))
    def somebody_changes_the_settings(self, blocking: bool, branch: bool, content: str) -> None:
        self.settings = Settings(blocking, branch, content)

    @precondition(lambda self: self.records)
    @rule(pick=st.integers(0, 9), verdict=VERDICTS, stranger=st.booleans())
    def somebody_judges(self, pick: int, verdict: str, stranger: bool) -> None:
        number = sorted(self.records)[pick % len(self.records)]
        record = self.records[number]
        pod = "stranger" if stranger else record.spec.pod_infos[0].pod
        results = (PodInfo(pod=pod, verdict=verdict, message="I looked"),)
        self._store(number, msgspec.structs.replace(record.status, pod_results=results, message="PostFinish"))

    @rule()
    def the_server_comes_or_goes(self) -> None:
        self.server = not self.server

    # what the reconciler does, killed after some of its writes

    @rule(writes=st.just(1000) | st.integers(0, 5))
    def the_release_is_reconciled(self, writes: int) -> None:
        self._reconcile_release(writes)

    @precondition(lambda self: self.records)
    @rule(pick=st.integers(0, 9), answers=st.lists(ANSWERS, max_size=3))
    def a_batch_is_reconciled(self, pick: int, answers: list[Answer]) -> None:
        self._reconcile_batch(sorted(self.records)[pick % len(self.records)], answers)

    def _reconcile_release(self, writes: int = 1000) -> bool:
        """Carry out the decision as the executor does; whether there is, or will be, more to do."""
        observed = change_workloads.Observed(
            change_workload=self.release,
            deployment=builders.deployment(replicas=self.replicas, suspended=self.suspended),
            pods=list(self.pods.values()),
            change_pods=list(self.records.values()),
            highest_number=max(self.records, default=0),
            others=[],
            settings=self.settings,
        )
        status, effects = change_workloads.decide(self.release.status, observed, self.now)
        steps: list[Effect | None] = [effect for effect in effects if not isinstance(effect, AFTER)]
        steps += [None, *(effect for effect in effects if isinstance(effect, AFTER))]  # None: store the status
        more = any(isinstance(effect, Requeue) for effect in effects)
        for step in steps[:writes]:
            match step:
                case CreateChangePod(number, pods):
                    assert number not in self.records
                    batch = ChangePodSpec("release", plain_time(self.now), self.now, pods)
                    self.records[number] = msgspec.structs.replace(builders.change_pod(number), spec=batch)
                case SetThreshold(count):
                    spec = msgspec.structs.replace(self.release.spec, count_threshold=count)
                    self.release = msgspec.structs.replace(self.release, spec=spec)
                case Suspend():
                    assert self.settings.blocking
                    assert not self.suspended
                    self.suspended = True
                case Resume():
                    assert self.suspended
                    self.suspended = False
                case Remove(ChangePod() as record):
                    self.records = {number: kept for number, kept in self.records.items() if kept is not record}
                case None if status != self.release.status:
                    self.release = msgspec.structs.replace(self.release, status=status)
                case _:
                    continue
            more = True
        return more

    def _reconcile_batch(self, number: int, answers: list[Answer]) -> bool:
        """Carry out the decision as the controller does; whether there is, or will be, more to do."""
        answer: Answer | None = None
        more = False
        while True:
            record = self.records[number]
            observed = change_pods.Observed(record, self.server, answer, 120, 120)
            status, effects = change_pods.decide(record.status, observed, self.now)
            if status != record.status:
                self._store(number, status)
                more = True
            if not (effects and isinstance(effects[0], Ask) and answers):
                return more or bool(effects)
            answer, *answers = answers

    def _store(self, number: int, status: ChangePodStatus) -> None:
        self.records[number] = msgspec.structs.replace(self.records[number], status=status)

    # what has to be true

    @invariant()
    def no_pod_is_verified_twice(self) -> None:
        verified = [pod.pod for record in self.records.values() for pod in record.spec.pod_infos]

        assert len(verified) == len(set(verified))

    @rule()
    def left_alone_it_ends_as_the_verdicts_say(self) -> None:
        for _ in range(60):
            self.now += 30
            batches = [self._reconcile_batch(number, [NotYet()] * 3) for number in list(self.records)]
            if not (self._reconcile_release() or any(batches)):
                break
        else:
            raise AssertionError("it never comes to rest")

        pods = list(self.pods.values())
        failed = {
            pod.pod
            for record in self.records.values()
            for pod in record.spec.pod_infos
            for result in record.status.pod_results
            if result.pod == pod.pod and result.verdict not in ("", "pass")
        } & self.pods.keys()
        complete = all(facts.finished(pod) and not facts.crash_looping(pod) for pod in pods)
        status = self.release.status
        assert all(record.status.status == PodState.EXECUTE_DONE for record in self.records.values())
        assert {pod.pod for pod in status.defense_check_fail_pods} == failed
        assert not status.defense_preparing_pods
        if failed:
            assert status.status == WorkloadState.SUSPEND
            assert self.suspended or not self.settings.blocking
        elif self.replicas == 0 or (complete and len(pods) >= self.replicas):
            assert status.status == WorkloadState.SUCCESS
            assert not self.suspended
        else:
            assert status.status in (WorkloadState.RUNNING, WorkloadState.SUCCESS)
            assert not self.suspended


Release.TestCase.settings = hypothesis_settings(max_examples=400, stateful_step_count=40, deadline=None)
TestRelease = Release.TestCase
