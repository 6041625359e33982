"""A random test of releases. Pods come up, crash late, lose readiness, disappear and lose their nodes. Leaders die
between any two writes, writes conflict or are refused, and people write any value. In every order of events: no bad
release settles, no good release is rolled back or suspended, a suspension ends by the rules only, and every run ends.
"""

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from altershield.api import labels
from altershield.api.change_workload import WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.ops_config import Settings
from reconciler.releases.pods.group import Group
from tests.support.random_runs import random_runs

from .world import KINDS, Conflicted, Killed, SimPod, World, fingerprint

BACK_OFF = 10.0
LONGEST_BACK_OFF = 300.0
START = 5.0  # seconds until a container is ready
TIMEOUT = 120.0
FINAL = (WorkloadState.SUCCESS, WorkloadState.SUSPEND)


class Releases(RuleBasedStateMachine):
    """Pods of `good` images come up and stay up. Pods of `bad` images crash some time after they were ready. Pods of
    `dud` images are never ready. Pods of `end` images fail by themselves."""

    @initialize(
        kind=st.sampled_from(KINDS),
        replicas=st.integers(1, 6),
        observe=st.sampled_from([0, 1, 10]),
        passed=st.sampled_from([True, True, False]),
        in_place=st.booleans(),
    )
    def begin(self, kind: str, replicas: int, observe: int, passed: bool, in_place: bool) -> None:
        self.world = World(kind, replicas=replicas, observe=observe, start_timeout=TIMEOUT)
        self.in_place = in_place and kind == "CloneSet"
        self.next: dict[str, tuple[float, str]] = {}
        """By pod uid: when the kubelet acts next, and how."""
        self.life: dict[str, float] = {}
        """By bad image: seconds after which a ready container crashes."""
        self.asked: set[str] = set()
        """Images for which a person requested a rollback."""
        self.failed: set[tuple[str, str]] = set()
        """Pods that a person failed, with their image. A pod that is updated in place counts as another one."""
        self.judged_images: set[str] = set()
        """Images with a pod that a person failed at any time."""
        self.count = 0
        self.node = "node-1"
        self.world.write_hook = self.on_write
        self.budget: int | None = None
        self.conflict: int | None = None
        self.release("good" if passed else "bad", 30.0, False)
        if passed or in_place:
            self.go_on(TIMEOUT * 3)

    # writes of the reconciler

    def on_write(self, what: str) -> None:
        world = self.world
        if self.budget is not None:
            if self.budget == 0:
                raise Killed
            self.budget -= 1
        if self.conflict is not None:
            if self.conflict == 0:
                raise Conflicted
            self.conflict -= 1
        if what == "resume":
            present = world.of(world.image)
            assert present, "a suspension ended while no pod existed"
            assert all(pod.ready for pod in present), "a suspension ended while a pod was not ready"
            failed = [pod for pod in present if (pod.uid, pod.image) in self.failed and self.is_verdict_kept(pod)]
            assert not failed, "a suspension ended while a pod was failed"

    def reconcile(self) -> None:
        try:
            self.world.rest()
        except Killed:
            self.world.die()
        except Conflicted:
            pass
        finally:
            self.budget = self.conflict = None

    # the cluster

    def roll(self) -> None:
        """The workload's controller replaces one pod after the other."""
        world = self.world
        if not world.observed:
            return
        if world.kind == "StatefulSet":  # its controller deletes the pods with the highest ordinals, of any version
            for pod in list(world.pods.values()):
                if int(pod.name.rpartition("-")[2]) >= world.replicas:
                    self.forget(pod)
        present = world.of(world.image)
        old = [pod for pod in world.pods.values() if pod.image != world.image]
        while len(present) > world.replicas:
            self.forget(present.pop())
        if all(pod.ready for pod in present) and len(present) < world.replicas:
            if self.in_place and old:
                world.update_in_place(old[0])
                self.schedule(old[0])
            else:
                number = None
                if world.kind == "StatefulSet" and old:
                    number = int(old[-1].name.rpartition("-")[2])
                    self.forget(old[-1])
                (pod,) = world.make(1, number=number)
                world.touch(pod.find_no_node())
                pod.unscheduled, pod.node, pod.phase = False, self.node, "Running"
                world.touch(pod)
                self.schedule(pod)
        old = [pod for pod in world.pods.values() if pod.image != world.image]
        ready = sum(pod.ready for pod in world.of(world.image))
        while old and ready + len(old) > world.replicas:
            self.forget(old.pop(0))

    def schedule(self, pod: SimPod) -> None:
        world = self.world
        if pod.image.startswith("dud"):
            pod.wait_for_image()
            world.touch(pod)
            self.next.pop(pod.uid, None)
        else:
            self.next[pod.uid] = (world.t + START, "end" if pod.image.startswith("end") else "up")

    def forget(self, pod: SimPod) -> None:
        self.world.remove(pod)
        self.next.pop(pod.uid, None)

    def act(self, uid: str, what: str) -> None:
        """The kubelet acts on a pod: `what` is up, crash or end."""
        world, pod = self.world, self.world.pods[uid]
        del self.next[uid]
        if pod.node in world.lost_nodes:
            return
        if what == "end":
            pod.phase = "Failed"
            world.touch(pod.lose_readiness(world.t))
            self.forget(pod)
        elif what == "up":
            world.up(pod)
            if pod.image in self.life:
                self.next[uid] = (world.t + self.life[pod.image], "crash")
        else:
            world.touch(pod.crash(world.t))
            wait = min(BACK_OFF * 2.0 ** min(pod.restarts - 1, 10), LONGEST_BACK_OFF)
            self.next[uid] = (world.t + wait, "up")

    def go_on(self, seconds: float) -> None:
        """Let time pass. Kubelets, the controller and the reconciler do what is due."""
        world, end = self.world, self.world.t + seconds
        for _ in range(5000):
            self.roll()
            self.reconcile()
            self.next = {uid: each for uid, each in self.next.items() if uid in world.pods}
            due = [at for at, _ in self.next.values()]
            if world.decision.requeue_after is not None:
                due.append(world.t + max(world.decision.requeue_after, 0.001))
            present = world.of(world.image)
            if world.observed and len(present) < world.replicas and all(pod.ready for pod in present):
                due.append(world.t + 1)
            at = min([*due, end])
            if at >= end:
                break
            world.t = max(at, world.t)
            for uid, (when, what) in list(self.next.items()):
                if when <= world.t and uid in world.pods:
                    self.act(uid, what)
        else:
            raise AssertionError("the reconciler and the cluster never come to rest")
        world.t = end
        self.reconcile()

    @rule(seconds=st.sampled_from([1.0, 5.0, 9.0, 30.0, 60.0, 119.0, 121.0, 300.0]))
    def time_passes(self, seconds: float) -> None:
        self.go_on(seconds)

    @rule(seconds=st.floats(0.1, 200.0))
    def some_time_passes(self, seconds: float) -> None:
        self.go_on(seconds)

    @rule(pick=st.integers(0, 9))
    def a_pod_is_deleted(self, pick: int) -> None:
        pods = list(self.world.pods.values())
        if pods:
            self.forget(pods[pick % len(pods)])

    @rule(pick=st.integers(0, 9))
    def a_good_pod_loses_readiness(self, pick: int) -> None:
        world = self.world
        pods = [
            pod
            for pod in world.pods.values()
            if pod.image.startswith("good") and pod.ready and world.t - pod.ready_at >= 30
        ]
        if pods:
            pod = pods[pick % len(pods)]
            world.touch(pod.lose_readiness(world.t))
            self.next[pod.uid] = (world.t + 30, "up")

    @rule()
    def a_node_is_lost(self) -> None:
        world = self.world
        world.lose_node(self.node)
        for pod in world.pods.values():
            if pod.node == self.node and pod.ready:
                world.touch(pod.lose_readiness(world.t))
        self.node = "node-2" if self.node == "node-1" else "node-1"
        self.find(self.node)

    @rule()
    def nodes_come_back(self) -> None:
        for node in sorted(self.world.lost_nodes):
            self.find(node)

    @rule(runs=st.booleans())
    def the_workloads_controller_stops_or_starts(self, runs: bool) -> None:
        self.world.observed = runs

    def find(self, node: str) -> None:
        world = self.world
        world.find_node(node)
        for pod in world.pods.values():
            if pod.node == node and not pod.ready:
                self.schedule(pod)

    @rule(skew=st.integers(-300, 300))
    def a_kubelets_clock_jumps(self, skew: int) -> None:
        self.world.kubelet = skew

    # people

    @precondition(lambda self: self.count < 6)
    @rule(
        nature=st.sampled_from(["good", "bad", "dud", "end"]),
        life=st.sampled_from([1.0, 8.0, 20.0, 100.0]),
        repair=st.booleans(),
    )
    def release(self, nature: str, life: float, repair: bool) -> None:
        """The gatekeeper denies a release of a suspended workload unless it is a repair."""
        world = self.world
        if world.suspended and not repair:
            return
        if world.suspended:
            world.own_labels[labels.IGNORED_SUSPEND] = "true"
        self.count += 1
        image = f"{nature}-{self.count}"
        if nature == "bad":
            self.life[image] = life
        world.release(image)

    @rule(replicas=st.integers(0, 6))
    def a_person_scales(self, replicas: int) -> None:
        world = self.world
        world.scale(replicas)
        if not replicas:
            for pod in list(world.pods.values()):
                self.forget(pod)

    @rule(pick=st.integers(0, 9), verdict=st.sampled_from(["pass", "unpass", "maybe", ""]))
    def a_person_gives_a_verdict(self, pick: int, verdict: str) -> None:
        pods = list(self.world.pods.values())
        if not pods:
            return
        pod = pods[pick % len(pods)]
        if self.world.judge(pod, verdict):
            if verdict in ("pass", ""):
                self.failed.discard((pod.uid, pod.image))
            else:
                self.failed.add((pod.uid, pod.image))
                self.judged_images.add(pod.image)

    @rule(to=st.sampled_from(["", "nowhere", "good-1"]))
    def a_person_requests_a_rollback(self, to: str) -> None:
        world = self.world
        if world.version in world.releases and world.state() not in (WorkloadState.FAILED, ""):
            self.asked.add(world.image)
            world.ask_rollback(to)

    @rule(
        blocking=st.booleans(),
        rollback=st.booleans(),
        share=st.sampled_from(["20%", "1", "100%"]),
        branch=st.booleans(),
        content=st.sampled_from(["2", "50%"]),
    )
    def a_person_changes_the_settings(
        self, blocking: bool, rollback: bool, share: str, branch: bool, content: str
    ) -> None:
        self.world.settings = Settings(blocking, branch, content, rollback, share)

    @rule(pick=st.integers(0, 9), forged=st.sampled_from(["", "forged", fingerprint("good-1")]))
    def a_person_forges_labels(self, pick: int, forged: str) -> None:
        pods = list(self.world.pods.values())
        if pods:
            pod = pods[pick % len(pods)]
            pod.pod_labels[labels.VERSION] = forged
            pod.pod_labels[labels.OPERATE_FINISHED] = str(int(self.world.t))
            self.world.touch(pod)

    @rule(refused=st.booleans())
    def a_policy_changes(self, refused: bool) -> None:
        self.world.write_refused = "a policy" if refused else ""

    # leaders

    @rule(writes=st.integers(0, 6))
    def the_leader_dies(self, writes: int) -> None:
        self.budget = writes
        self.reconcile()
        self.world.die()

    @rule(writes=st.integers(0, 4))
    def a_write_conflicts(self, writes: int) -> None:
        self.conflict = writes
        self.reconcile()

    @rule(ours=st.sampled_from([-1.0, 0.0, 1.0]))
    def another_leader_takes_over(self, ours: float) -> None:
        self.world.die()
        self.world.ours = ours

    # invariants

    def settled(self, image: str) -> bool:
        world = self.world
        return (
            fingerprint(image) in world.releases
            and world.state(image) == WorkloadState.SUCCESS
            and world.said(ConditionType.SETTLED, image)[0] == "True"
        )

    @invariant()
    def no_bad_release_settles(self) -> None:
        if not hasattr(self, "world"):
            return
        for image in self.world.revisions:
            if not image.startswith("good"):
                assert not self.settled(image), f"{image} settled"

    @invariant()
    def no_good_release_is_rolled_back_or_suspended(self) -> None:
        if not hasattr(self, "world"):
            return
        world = self.world
        for image in world.revisions:
            if not image.startswith("good") or fingerprint(image) not in world.releases:
                continue
            if image not in self.asked:
                said = world.condition(ConditionType.ROLLED_BACK, image)
                assert world.state(image) != WorkloadState.ROLLBACK, f"{image}: {said}"
                assert said is None or not said.is_true, f"{image}: {said}"
            if image not in self.judged_images:
                assert world.state(image) != WorkloadState.SUSPEND, f"{image}: {world.status(image)}"

    @invariant()
    def no_pod_is_verified_twice_at_once(self) -> None:
        if not hasattr(self, "world"):
            return
        for image in self.world.revisions:
            release = self.world.releases.get(fingerprint(image))
            if release is None:
                continue
            # a pod that may have been updated in place is verified again when its version is released again
            began = release.spec.create_time_unix - 1 if self.world.adapter.in_place else 0
            verified = [
                info.uid
                for batch in self.world.batches.values()
                if fingerprint(image) in batch.metadata.name and batch.spec.create_time_unix >= began
                for info in batch.spec.pod_infos
                if not info.verdict
            ]
            assert len(verified) == len(set(verified))

    def is_verdict_kept(self, pod: SimPod) -> bool:
        """Whether a verdict that fails the pod exists. The verdicts of a version are deleted with its ChangeWorkload,
        although a pod may be updated in place to that version again."""
        return any(
            info.uid == pod.uid and result.pod == pod.name and result.verdict not in ("", "pass")
            for batch in self.world.batches.values()
            if fingerprint(pod.image) in batch.metadata.name
            for info in batch.spec.pod_infos
            for result in batch.status.pod_results
        )

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.it_comes_to_rest()

    def it_comes_to_rest(self) -> None:
        world = self.world
        world.write_refused, world.observed = "", True
        self.nodes_come_back()
        self.go_on(1000)  # pods that crash reach the longest back-off
        self.no_bad_release_settles()
        self.no_good_release_is_rolled_back_or_suspended()
        self.next.clear()
        world.run(TIMEOUT * 4)
        before = world.writes
        for _ in range(3):
            world.run(1000)
        assert world.writes == before, f"the reconciler writes although nothing happens: {world.status()}"
        state = world.state()
        stalled = world.said(ConditionType.STALLED)[0] == "True"
        empty = world.said(ConditionType.NO_REPLICAS)[0] == "True"
        event(f"{world.image.partition(chr(45))[0]} {state} {stalled=} {empty=}")
        event(f"announced {sorted(set(world.reasons))}")
        assert state in FINAL or (state == WorkloadState.RUNNING and (stalled or empty)), world.status()
        present = world.of(world.image)
        failed = self.failed & {(pod.uid, pod.image) for pod in present if self.is_verdict_kept(pod)}
        if failed:
            assert state == WorkloadState.SUSPEND
            assert world.suspended or not world.settings.blocking
        if present and world.image.startswith("good") and not failed:
            assert state == WorkloadState.SUCCESS, world.status()
            assert not world.suspended
            assert world.said(ConditionType.SETTLED)[0] == "True", world.status()
            assert world.groups is None or world.groups.count(Group.PASSED) == len(present)


Releases.TestCase.settings = random_runs(150, steps=30)
TestReleases = Releases.TestCase
