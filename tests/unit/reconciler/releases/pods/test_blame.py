"""Pods that the cluster does not create, schedule or start because of what the release changed."""

from collections.abc import Callable
from typing import Any

import pytest

from altershield.api.policy import AppliedPolicy
from altershield.workloads.pods import Fault
from reconciler.releases.pods.blame import Part, causes, changed_parts, faults_of
from tests.unit.reconciler.releases.scenarios import (
    ROLLED_BACK,
    RUNNING,
    STALLED,
    SUCCESS,
    SUSPEND,
    assert_rolled_back_after,
    first_release,
    is_restored,
    second_release,
    serving,
)
from tests.unit.reconciler.releases.world import SimPod, World

PLACED = frozenset({Part.PLACEMENT})
QUOTA = "exceeded quota: compute, requested: requests.cpu=64, used: requests.cpu=1, limited: requests.cpu=4"


def unscheduled(world: World, pod: SimPod) -> None:
    world.touch(pod.find_no_node())


def no_volume(world: World, pod: SimPod) -> None:
    world.events_say = Fault.VOLUME
    world.touch(pod.be_created())


def no_sandbox(world: World, pod: SimPod) -> None:
    world.events_say = Fault.SANDBOX
    world.touch(pod.be_created())


FAULTS = [(unscheduled, Part.PLACEMENT), (no_volume, Part.VOLUMES), (no_sandbox, Part.RUNTIME)]


@pytest.mark.parametrize(("spoil", "part"), FAULTS, ids=[part for _, part in FAULTS])
def test_pod_that_the_cluster_holds_up_because_of_the_release_is_overdue_after_a_longer_time(
    kind: str, spoil: Callable[[World, SimPod], None], part: Part
) -> None:
    world, (pod, *_) = second_release(kind)
    world.changed = frozenset({part})
    spoil(world, pod)
    world.run(599)
    assert (world.image, world.state()) == ("v2", RUNNING)
    assert world.message(STALLED).endswith("overdue after 600 s if this release changed what causes it")
    world.run(1)
    assert is_restored(world)
    assert "is not up after 600 s" in world.message(ROLLED_BACK, "v2")
    if spoil is unscheduled:
        assert "0/3 nodes are available" in world.message(ROLLED_BACK, "v2")


@pytest.mark.parametrize(
    ("policy", "seconds"),
    [
        ({"unschedulable_seconds": 145}, 145),
        ({"unschedulable_seconds": 30}, 120),
        ({"start_timeout_seconds": 700}, 700),
    ],
    ids=str,
)
def test_time_until_then_is_a_field_of_the_policy(policy: dict[str, int], seconds: int) -> None:
    world = serving("Deployment", 3)
    world.policy, world.changed = AppliedPolicy(name="p", **policy), PLACED  # type: ignore[arg-type]
    world.begin("v2")
    unscheduled(world, *world.make(1))
    world.run(seconds - 1)
    assert world.image == "v2"
    world.run(1)
    assert is_restored(world)


def test_first_release_waits_for_a_node_because_nothing_can_be_undone(kind: str) -> None:
    world = first_release(kind)
    world.changed = PLACED
    for pod in world.make(3):
        unscheduled(world, pod)
    world.run(5000)
    assert (world.state(), world.suspended) == (RUNNING, False)
    assert world.said(STALLED) == ("True", "Unschedulable")
    assert world.rest() == 0


def test_release_that_must_not_be_rolled_back_is_suspended_and_quotes_the_scheduler() -> None:
    world = serving("Deployment", 3)
    world.rolling, world.changed = False, PLACED
    world.begin("v2")
    unscheduled(world, *world.make(1))
    world.run(600)
    assert (world.image, world.state()) == ("v2", SUSPEND)
    (failed,) = world.status().defense_check_fail_pods
    assert "0/3 nodes are available" in failed.message


def test_pods_that_are_added_after_success_do_not_end_the_release() -> None:
    world, (first, *others) = second_release("Deployment", 3)
    world.changed = PLACED
    unscheduled(world, first)
    world.up(*others)
    world.settings = type(world.settings)(share="100%")
    world.run(700)
    assert world.groups is not None
    assert world.groups.cause.changed == PLACED
    first.unscheduled, first.node, first.phase = False, "node-1", "Running"
    world.up(first)
    world.remove(*world.of("v1"))
    world.run(15)
    assert world.state() == SUCCESS
    world.settings = type(world.settings)(share="1")
    world.replicas = 5
    unscheduled(world, *world.make(1))
    looks = world.looks
    world.run(2000)
    assert (world.image, world.state()) == ("v2", SUCCESS)
    assert world.looks == looks


def test_new_leader_knows_since_when_the_pod_has_no_node() -> None:
    world, (pod, *_) = second_release("Deployment")
    world.changed = PLACED
    unscheduled(world, pod)
    world.run(400)
    world.die()
    assert_rolled_back_after(world, 200)


def test_pod_that_no_scheduler_looks_at_is_named() -> None:
    world, (pod, *_) = second_release("Deployment")
    pod.unscheduled, pod.node, pod.phase, pod.silent = True, "", "Pending", True
    world.touch(pod)
    world.run(200)
    assert f"{pod.name}: no scheduler has looked at it; check that the scheduler" in world.message(STALLED)


def refused_by_status(world: World, text: str) -> None:
    world.refusal = text


def refused_by_events(world: World, text: str) -> None:
    world.events_refuse = text


REFUSED = [
    ("Deployment", refused_by_status),
    ("StatefulSet", refused_by_events),
    ("DaemonSet", refused_by_events),
    ("CloneSet", refused_by_events),
]


@pytest.mark.parametrize(("kind", "refuse"), REFUSED, ids=[kind for kind, _ in REFUSED])
def test_release_whose_pods_cannot_be_created_ends_if_it_is_the_cause(
    kind: str, refuse: Callable[[World, str], None]
) -> None:
    world, _ = second_release(kind, 0)
    world.changed = frozenset({Part.RESOURCES})
    refuse(world, QUOTA)
    world.run(599)
    assert (world.image, world.state()) == ("v2", RUNNING)
    world.run(1)
    assert is_restored(world)
    found = world.condition(ROLLED_BACK, "v2")
    assert found is not None
    assert found.message.startswith("3 pods cannot be created because of what this release changed: ")
    assert QUOTA in found.message


@pytest.mark.parametrize(("kind", "refuse"), REFUSED, ids=[kind for kind, _ in REFUSED])
@pytest.mark.parametrize(
    "changed", [frozenset(), frozenset({Part.SPEC}), PLACED], ids=["nothing", "image", "placement"]
)
def test_release_whose_pods_cannot_be_created_waits_if_it_is_not_the_cause(
    kind: str, refuse: Callable[[World, str], None], changed: Any
) -> None:
    world, _ = second_release(kind, 0)
    world.changed = changed
    refuse(world, QUOTA)
    world.run(5000)
    assert (world.image, world.state(), world.suspended) == ("v2", RUNNING, False)
    assert world.said(STALLED)[0] == "True"
    looks = world.looks
    assert looks <= 10
    for _ in range(5):
        world.rest()
    assert world.looks == looks, "an event of a pod causes no read"


def test_rollback_of_a_release_without_pods_goes_on_under_a_new_leader() -> None:
    world, (pod, *_) = second_release("Deployment", 1)
    world.up(pod)
    world.run(30)
    world.changed, world.refusal, world.write_refused = frozenset({Part.RESOURCES}), QUOTA, "a policy"
    world.run(620)
    assert "RollbackStarted" in world.reasons
    world.die()
    world.write_refused = ""
    world.run(10)
    assert is_restored(world)


@pytest.mark.parametrize("text", ["", QUOTA])
def test_release_whose_pods_cannot_be_created_and_that_must_not_be_rolled_back_waits(text: str) -> None:
    world = serving("Deployment", 3)
    world.rolling, world.changed, world.refusal = False, frozenset({Part.RESOURCES}), text
    world.release("v2")
    world.run(2000)
    assert (world.image, world.state(), world.suspended) == ("v2", RUNNING, False)
    assert world.said(STALLED) == ("True", "FailedCreate" if text else "PodsMissing")
    assert (world.condition(ROLLED_BACK) is not None) == bool(text)
    assert world.rest() == 0


def test_suspended_release_does_not_look_for_the_cause_of_missing_pods() -> None:
    world = first_release("StatefulSet")
    (pod,) = world.make(1)
    world.touch(pod.wait_for_image())
    world.run(121)
    assert world.state() == SUSPEND
    looks = world.looks
    world.run(2000)
    assert world.looks == looks


CONTAINER = {"name": "main", "image": "nginx:1", "resources": {"requests": {"cpu": "1"}}}
SPEC = {"containers": [CONTAINER], "schedulerName": "default-scheduler", "serviceAccountName": "web"}
CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
CSI = {"name": "data", "csi": {"driver": "nosuch.example.com"}}
CONFIG = {"name": "config", "configMap": {"name": "config"}}


def with_container(**fields: Any) -> Any:
    return {"containers": [{**CONTAINER, **fields}]}


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({}, set()),
        (with_container(image="nginx:2", env=[{"name": "A", "value": "1"}]), set()),
        (with_container(name="other"), set()),
        ({"nodeSelector": {}, "tolerations": None, "volumes": []}, set()),
        ({"volumes": [CONFIG]}, set()),
        ({"nodeName": "node-1"}, {Part.NODE}),
        ({"nodeSelector": {"disk": "sdd"}}, {Part.PLACEMENT}),
        ({"affinity": {"nodeAffinity": {}}}, {Part.PLACEMENT}),
        ({"tolerations": [{"operator": "Exists"}]}, {Part.PLACEMENT}),
        ({"topologySpreadConstraints": [{"maxSkew": 1}]}, {Part.PLACEMENT}),
        ({"schedulerName": "nobody"}, {Part.PLACEMENT}),
        ({"schedulingGates": [{"name": "wait"}]}, {Part.PLACEMENT}),
        ({"resourceClaims": [{"name": "gpu"}]}, {Part.PLACEMENT}),
        ({"hostNetwork": True}, {Part.PLACEMENT, Part.SECURITY}),
        (with_container(ports=[{"containerPort": 80, "hostPort": 80}]), {Part.PLACEMENT, Part.SECURITY}),
        (with_container(ports=[{"containerPort": 80}]), set()),
        (with_container(resources={"requests": {"cpu": "64"}}), {Part.RESOURCES}),
        (with_container(resources={"requests": {"cpu": "1"}, "limits": {"memory": "1Ti"}}), {Part.RESOURCES}),
        ({"initContainers": [CONTAINER]}, {Part.RESOURCES, Part.SECURITY}),
        ({"containers": [CONTAINER, {"name": "more"}]}, {Part.SECURITY}),
        ({"resources": {"requests": {"cpu": "64"}}}, {Part.RESOURCES}),
        ({"overhead": {"cpu": "64"}}, {Part.RESOURCES}),
        ({"volumes": [CLAIM]}, {Part.VOLUMES}),
        ({"volumes": [CSI]}, {Part.VOLUMES}),
        ({"volumes": [{"name": "data", "ephemeral": {}}]}, {Part.VOLUMES}),
        ({"volumes": [{"name": "data", "hostPath": {"path": "/"}}]}, {Part.SECURITY}),
        ({"priorityClassName": "high"}, {Part.PRIORITY}),
        ({"runtimeClassName": "gvisor"}, {Part.RUNTIME}),
        ({"serviceAccountName": "nobody"}, {Part.ACCOUNT}),
        ({"hostPID": True}, {Part.SECURITY}),
        ({"securityContext": {"runAsUser": 0}}, {Part.SECURITY}),
        (with_container(securityContext={"privileged": True}), {Part.SECURITY}),
    ],
)
def test_parts_of_a_template_that_differ(changes: Any, parts: set[Part]) -> None:
    before, after = {"spec": SPEC}, {"spec": {**SPEC, **changes}}
    for one, other in ((before, after), (after, before)):
        found = changed_parts(one, other)
        assert found - {Part.SPEC} == parts
        assert (Part.SPEC in found) == (one != other)


def test_a_request_that_equals_the_limit_may_be_left_out() -> None:
    limit = {"limits": {"cpu": "1"}}
    both = {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}
    assert Part.RESOURCES not in changed_parts(
        {"spec": with_container(resources=limit)}, {"spec": with_container(resources=both)}
    )


def test_a_template_without_a_spec_can_be_compared() -> None:
    assert changed_parts({}, {"spec": None}) == set()


@pytest.mark.parametrize(
    ("part", "faults"),
    [
        (Part.NODE, set(Fault)),
        (Part.PLACEMENT, {Fault.UNSCHEDULABLE, Fault.VOLUME, Fault.SANDBOX}),
        (Part.RESOURCES, {Fault.UNSCHEDULABLE}),
        (Part.VOLUMES, {Fault.UNSCHEDULABLE, Fault.VOLUME}),
        (Part.PRIORITY, {Fault.UNSCHEDULABLE}),
        (Part.RUNTIME, {Fault.UNSCHEDULABLE, Fault.SANDBOX}),
        (Part.ACCOUNT, set()),
        (Part.SECURITY, {Fault.SANDBOX}),
        (Part.SPEC, set()),
    ],
)
def test_faults_that_a_changed_part_causes(part: Part, faults: set[Fault]) -> None:
    assert faults_of(frozenset({part})) == faults


ON_HOST = {Part.SECURITY, Part.VOLUMES}
OF_QUOTA = {Part.RESOURCES, Part.VOLUMES}
BOTH = "exceeded quota: q, requested: pods=1,requests.cpu=2, used: pods=2,requests.cpu=2, limited: requests.cpu=3"
FORBIDDEN = 'FailedCreate: pods "web-5d4f8c7b9-" is forbidden: '


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        (f'{FORBIDDEN}violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)', ON_HOST),
        (f'{FORBIDDEN}error looking up service account shop/nobody: serviceaccount "nobody" not found', {Part.ACCOUNT}),
        (f"{FORBIDDEN}no PriorityClass with name urgent was found", {Part.PRIORITY}),
        (f'{FORBIDDEN}pod rejected: RuntimeClass "gvisor" not found', {Part.RUNTIME}),
        (f"{FORBIDDEN}{QUOTA}", OF_QUOTA),
        (f"{FORBIDDEN}{BOTH}", OF_QUOTA),
        (f"{FORBIDDEN}exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2", set()),
        (f"{FORBIDDEN}exceeded quota: q, requested: count/pods=1, used: count/pods=2, limited: count/pods=2", set()),
        (f"{FORBIDDEN}failed quota: q: must specify limits.cpu for: main", {Part.RESOURCES}),
        (f"{FORBIDDEN}maximum cpu usage per Container is 2, but limit is 4", {Part.RESOURCES}),
        (f"{FORBIDDEN}cpu max limit to request ratio per Container is 2, but provided ratio is 4", {Part.RESOURCES}),
        (f"{FORBIDDEN}pod node label selector conflicts with its namespace node label selector", {Part.PLACEMENT}),
        (f"{FORBIDDEN}unable to validate against any security context constraint: []", {*ON_HOST, Part.ACCOUNT}),
        ('FailedCreate: admission webhook "p.example.com" denied the request: image', {Part.SPEC}),
        (f"{FORBIDDEN}ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no", {Part.SPEC}),
        ('FailedCreate: Pod "web-" is invalid: spec.containers[0].image: Required value', {Part.SPEC}),
        ('FailedCreate: Internal error occurred: failed calling webhook "p": denied the request', set()),
        ("FailedCreate: Internal error occurred: resource quota evaluation timed out", set()),
        ("FailedCreate: etcdserver: request timed out", set()),
    ],
)
def test_parts_that_a_refusal_of_the_api_server_is_about(message: str, parts: set[Part]) -> None:
    assert {part for part in Part if causes(frozenset({part}), message)} == parts


def test_moment_without_a_version_to_go_back_to_does_not_acquit_the_release_for_good() -> None:
    world, (pod, *_) = second_release("Deployment")
    world.changed = PLACED
    unscheduled(world, pod)
    world.run(590)
    world.touch(*[each.lose_readiness(world.t) for each in world.of("v1")])
    world.run(30)
    assert (world.image, world.state()) == ("v2", RUNNING)
    world.up(*world.of("v1"))
    world.run(600)
    assert is_restored(world)
