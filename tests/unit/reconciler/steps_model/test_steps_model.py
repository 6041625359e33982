"""A random test of releases in steps: people, controllers and failures in any order."""

import json
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from altershield.api import labels
from altershield.api.change_workload import WorkloadState
from altershield.api.ops_config import Settings
from altershield.api.policy import OnFailure
from altershield.api.rollout import ENDED, Rollout, Step
from altershield.rollout.admission import State, Wanted
from altershield.workloads.held import NEVER_AVAILABLE, values, with_values
from tests.support.random_runs import random_runs
from tests.unit.reconciler.releases.world import KINDS, fingerprint

from .checks import SURGE, UNAVAILABLE
from .cluster import Cluster, spec_of

DEADLINE = 60
PAUSED, MIN_READY = "/spec/paused", "/spec/minReadySeconds"

amounts = st.sampled_from([0, 1, 2, "25%", "50%"])
step = st.builds(
    Step,
    st.sampled_from([1, 1, 2, 3, "10%", "30%", "50%"]),
    st.sampled_from([0, 30, 120]),
    approval=st.sampled_from([False, False, True]),
)
EDITS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "Deployment": st.fixed_dictionaries(
        {},
        optional={
            SURGE: st.sampled_from([1, 2, "25%"]),
            UNAVAILABLE: amounts,
            MIN_READY: st.sampled_from([None, 5, 30, NEVER_AVAILABLE]),
        },
    ),
    "StatefulSet": st.fixed_dictionaries(
        {}, optional={"/spec/updateStrategy/rollingUpdate/partition": st.integers(0, 3)}
    ),
    "DaemonSet": st.just({"/spec/updateStrategy/type": "RollingUpdate"}),
    "CloneSet": st.fixed_dictionaries({}, optional={"/spec/updateStrategy/partition": st.sampled_from([0, 1, "50%"])}),
}


class Steps(RuleBasedStateMachine):
    @initialize(
        kind=st.sampled_from((*KINDS, "Deployment", "DaemonSet")),
        replicas=st.integers(1, 8),
        steps=st.lists(step, min_size=1, max_size=3),
        surge=amounts,
        unavailable=amounts,
        min_ready=st.sampled_from([0, 0, 10, 30]),
        parallel=st.booleans(),
        observe=st.sampled_from([0, 1, 10]),
        on_failure=st.sampled_from([OnFailure.SUSPEND, OnFailure.ROLLBACK]),
        nature=st.sampled_from(["good", "good", "bad", "dud"]),
    )
    def begin(
        self,
        kind: str,
        replicas: int,
        steps: list[Step],
        surge: int | str,
        unavailable: int | str,
        min_ready: int,
        parallel: bool,
        observe: int,
        on_failure: OnFailure,
        nature: str,
    ) -> None:
        self.rollout = Rollout(steps=tuple(steps), step_deadline_seconds=DEADLINE)
        own = spec_of(kind, surge, unavailable, min_ready, parallel)
        self.world = Cluster(kind, own, replicas=replicas, rollout=self.rollout, observe=observe, on_failure=on_failure)
        self.count = 0
        self.stale: str | None = None
        self.release("good", repair=False)
        self.world.go_on(1000.0)
        assert self.world.state() == WorkloadState.SUCCESS, self.world.status()
        self.release(nature, repair=False)

    # time

    @rule(seconds=st.sampled_from([1.0, 5.0, 31.0, 60.0, 125.0, 700.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.go_on(seconds)

    @rule(seconds=st.floats(0.5, 400.0))
    def some_time_passes(self, seconds: float) -> None:
        self.world.go_on(seconds)

    @rule()
    def a_step_passes(self) -> None:
        self.world.go_on(200.0)

    # releases

    def admitted(self, image: str, *, repair: bool, other: dict[str, Any] | None = None) -> bool:
        world = self.world
        if (world.suspended and not repair) or not world.gatekeeper:
            return False
        if world.suspended:
            world.own_labels[labels.IGNORED_SUSPEND] = "true"
        world.taken = {}
        world.release(image, other=other)
        world.user = with_values(world.user, world.taken)
        world.on_release(image)
        return True

    @precondition(lambda self: self.count < 6)
    @rule(nature=st.sampled_from(["good", "good", "bad", "dud"]), repair=st.booleans())
    def release(self, nature: str, repair: bool) -> None:
        image = f"{nature}-{self.count + 1}"
        self.count += self.admitted(image, repair=repair)

    @precondition(lambda self: self.world.hold is not None)
    @rule()
    def the_base_is_released_again(self) -> None:
        world = self.world
        base = next((image for image in world.revisions if world.hold and fingerprint(image) == world.hold.base), "")
        if base:
            self.admitted(base, repair=True)
            assert not world.gatekeeper or world.hold is None, "the base is held"

    @precondition(lambda self: self.count < 6)
    @rule(data=st.data())
    def another_webhook_changes_a_field_of_a_release(self, data: st.DataObject) -> None:
        if self.world.hold is None:
            self.count += self.admitted(f"good-{self.count + 1}", repair=True, other=data.draw(self.edits()))

    def edits(self) -> st.SearchStrategy[dict[str, Any]]:
        return EDITS[self.world.kind].map(
            lambda fields: {path: value for path, value in fields.items() if value != NEVER_AVAILABLE}
        )

    # what people do with the workload

    def edited(self, fields: dict[str, Any]) -> None:
        """Note the values that the user gives the fields."""
        world, hold = self.world, self.world.hold
        for path, value in fields.items():
            present = values(world.adapter, world.spec)[path]
            if value == NEVER_AVAILABLE or (hold is not None and value == present):
                continue  # a value that the field has already cannot be told from the held one
            world.user = with_values(world.user, {path: value})

    @rule(data=st.data())
    def somebody_edits_fields(self, data: st.DataObject) -> None:
        world = self.world
        fields = data.draw(EDITS[world.kind])
        if not world.gatekeeper:
            fields = {path: value for path, value in fields.items() if value != NEVER_AVAILABLE}
        spec = with_values(world.spec, fields)
        if world.hold is None and NEVER_AVAILABLE in fields.values():
            world.user = with_values(world.user, {MIN_READY: 0})
        self.edited(fields)
        if world.gatekeeper:
            world.change(spec=spec)
        else:
            world.keep(State(world.annotation, spec))

    @precondition(lambda self: self.world.kind == "Deployment")
    @rule(paused=st.sampled_from([True, None]))
    def somebody_pauses_or_resumes(self, paused: bool | None) -> None:
        world = self.world
        if world.gatekeeper:
            self.edited({PAUSED: paused})
            world.change(spec=with_values(world.spec, {PAUSED: paused}))

    @precondition(lambda self: self.world.hold is not None)
    @rule(data=st.data(), again=st.booleans())
    def somebody_edits_fields_while_no_gatekeeper_answers(self, data: st.DataObject, again: bool) -> None:
        self.one_fault_takes_the_place_of_another("gatekeepers")
        self.somebody_edits_fields(data)
        self.one_fault_takes_the_place_of_another("")
        if again:
            self.world.change()  # by anybody, before the reconciler has held the fields again
        self.world.go_on(20.0)

    @precondition(lambda self: self.world.kind == "Deployment" and self.world.hold is not None)
    @rule()
    def somebody_edits_the_strategy_in_a_step(self) -> None:
        self.one_fault_takes_the_place_of_another("")
        fields = {SURGE: 3, UNAVAILABLE: 3}
        self.edited(fields)
        self.world.change(spec=with_values(self.world.spec, fields))
        self.world.go_on(5.0)

    @precondition(lambda self: self.world.hold is not None)
    @rule(by_request=st.booleans())
    def a_release_stands_still_for_long(self, by_request: bool) -> None:
        self.one_fault_takes_the_place_of_another("")
        if by_request:
            self.a_person_asks("Hold")
        elif self.world.kind == "Deployment":
            self.somebody_pauses_or_resumes(True)
        self.world.go_on(DEADLINE + 5.0)
        if by_request:
            self.a_person_asks("Promote")
        elif self.world.kind == "Deployment":
            self.somebody_pauses_or_resumes(None)
        self.world.go_on(20.0)

    @precondition(lambda self: self.world.hold is not None)
    @rule(pick=st.integers(0, 9))
    def a_pod_breaks_and_a_person_promotes(self, pick: int) -> None:
        world = self.world
        world.go_on(20.0)
        pods = [pod for pod in world.of(world.image) if pod.ready and not pod.deleting]
        if pods:
            pod = pods[pick % len(pods)]
            world.touch(pod.lose_readiness(world.t))
            world.next[pod.uid] = (world.t + 30, "up")
            self.a_person_asks("Promote")
            world.settle()

    @precondition(lambda self: self.world.gatekeeper)
    @rule(what=st.sampled_from(["dropped", "garbage", "stale", "more pods", "other base"]))
    def somebody_writes_the_annotation(self, what: str) -> None:
        world, before = self.world, self.world.annotation
        known = json.loads(before) if before is not None else {}
        text: str | None = {"dropped": None, "garbage": "no JSON", "stale": self.stale}.get(what)
        if what == "more pods" and known:
            text = json.dumps({**known, "causes": [{**known["causes"][0], "pods": 99}]})
        if what == "other base" and known:
            text = json.dumps({**known, "base": "0" * 32})
        plain = world.after_a_request()
        world.change(annotation=text)
        assert State(world.annotation, world.spec) == plain, "an annotation that anybody wrote is taken"
        self.stale = before or self.stale

    @precondition(lambda self: self.world.kind != "DaemonSet")
    @rule(replicas=st.integers(0, 10))
    def somebody_scales(self, replicas: int) -> None:
        world = self.world
        world.extra += max(0, replicas - world.replicas)
        world.scale(replicas)
        world.resource_version += 1
        world.note()
        world.roll()
        world.note()

    @rule(pick=st.integers(0, 9))
    def a_pod_is_deleted(self, pick: int) -> None:
        world = self.world
        pods = [pod for pod in world.pods.values() if not pod.deleting]
        if pods:
            pod = pods[pick % len(pods)]
            world.extra += pod.image != world.image and world.kind != "Deployment"
            world.terminate(pod)

    @rule(pick=st.integers(0, 9), verdict=st.sampled_from(["unpass", "pass", ""]))
    def a_person_gives_a_verdict(self, pick: int, verdict: str) -> None:
        pods = self.world.of(self.world.image)
        if pods and self.world.judge(pods[pick % len(pods)], verdict):
            self.world.judged.add(self.world.image)

    @rule(verb=st.sampled_from(["Promote", "Promote", "PromoteFull", "Hold", "Rollback", "Approve", "Retry", "Resume"]))
    def a_person_asks(self, verb: str) -> None:
        if self.world.version in self.world.releases:
            self.world.request(verb)
            if verb in ("Rollback", "Approve"):
                self.world.judged.add(self.world.image)

    # the cluster

    @precondition(lambda self: self.world.kind == "DaemonSet")
    @rule(joins=st.booleans())
    def a_node_joins_or_leaves(self, joins: bool) -> None:
        world = self.world
        if joins and len(world.nodes) < 10:
            world.nodes.append(f"new-{self.count}-{len(world.nodes)}-{world.resource_version}")
            world.extra += 1
        elif not joins and len(world.nodes) > 1:
            gone = world.nodes.pop()
            for pod in [each for each in world.pods.values() if each.node == gone]:
                world.remove(pod)
        world.replicas = len(world.nodes)
        world.resource_version += 1
        world.note()

    @precondition(lambda self: self.world.kind == "DaemonSet")
    @rule()
    def a_node_is_lost_or_found(self) -> None:
        world = self.world
        if world.lost_nodes:
            for node in sorted(world.lost_nodes):
                world.find_node(node)
                for pod in world.pods.values():
                    if pod.node == node and not pod.ready and not pod.deleting:
                        world.begin_pod(pod)
            return
        node = world.nodes[0]
        world.lose_node(node)
        for pod in world.pods.values():
            if pod.node == node and pod.ready:
                world.touch(pod.lose_readiness(world.t))

    @rule(
        fault=st.sampled_from(
            ["", "", "", "quota", "holds", "evictions", "gatekeepers", "no policy", "rollout off", "controller", "late"]
        )
    )
    def one_fault_takes_the_place_of_another(self, fault: str) -> None:
        world = self.world
        world.controller.quota = fault == "quota"
        world.refuses_holds = "a policy" if fault == "holds" else ""
        world.refuses_evictions = fault == "evictions"
        world.gatekeeper = fault != "gatekeepers"
        world.wanted = None if fault == "no policy" else Wanted(self.rollout, "shop/web@1")
        world.settings = Settings(rollout=fault != "rollout off")
        world.observed = fault != "controller"
        if fault == "late":
            world.fall_behind()
        else:
            world.catch_up()

    # leaders

    @rule(writes=st.integers(0, 6))
    def the_leader_dies(self, writes: int) -> None:
        self.world.budget = writes
        self.world.settle()
        self.world.die()

    @rule(writes=st.integers(0, 4))
    def a_write_conflicts(self, writes: int) -> None:
        self.world.conflict = writes
        self.world.settle()

    # the end

    @invariant()
    def own_fields(self) -> None:
        if hasattr(self, "world"):
            self.world.check_spec()

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        world = self.world
        self.one_fault_takes_the_place_of_another("")
        for node in sorted(world.lost_nodes):
            world.find_node(node)
            for pod in world.pods.values():
                if pod.node == node and not pod.ready and not pod.deleting:
                    world.begin_pod(pod)
        if world.kind == "Deployment":
            self.somebody_pauses_or_resumes(None)
        if not world.replicas:
            self.somebody_scales(3)
        world.go_on(10.0)
        for _ in range(8):
            if world.version in world.releases and world.steps_status.phase not in ENDED:
                world.request("PromoteFull")
            world.go_on(1500.0)
        world.check_end()
        world.check_spec()
        writes = world.writes
        for _ in range(3):
            world.go_on(1000.0)
        assert world.writes == writes or world.image.startswith(("bad", "dud")), "it writes although nothing happens"


Steps.TestCase.settings = random_runs(240, steps=15)
TestSteps = Steps.TestCase
