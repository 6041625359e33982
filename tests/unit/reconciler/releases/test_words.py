"""What a release says about pods that are not up: in whose words, how soon, and with how many writes and reads."""

import pytest

from altershield import releases
from altershield.api.condition_types import ConditionType
from altershield.workloads.pods import Fault, Trouble
from reconciler.releases.pods.not_up import ASK_AFTER

from .scenarios import ROLLED_BACK, RUNNING, STALLED, SUCCESS, SUSPEND, first_release, second_release
from .world import SimPod, World

PODS_NOT_UP = ConditionType.PODS_NOT_UP
PULLING = 'container main: ImagePullBackOff: Back-off pulling image "busybo"'
NO_SECRET = 'MountVolume.SetUp failed for volume "keys" : secret "absent" not found'
NOT_MOUNTED = Trouble("FailedMount", NO_SECRET)
LIMIT = 'Usage of EmptyDir volume "cache" exceeds the limit "1Mi". '
EVICTED = ("Evicted", "The node was low on resource: memory. ")
BY_KUBELET = ("TerminationByKubelet", EVICTED[1])
PREEMPTED = ("PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod")


def said(world: World, image: str = "") -> str:
    """The message of the condition PodsNotUp; empty if the release has none."""
    known = world.condition(PODS_NOT_UP, image) if image else world.condition(PODS_NOT_UP)
    return known.message if known is not None and known.is_true else ""


def silent(world: World, *pods: SimPod) -> None:
    """The status of these pods does not say why they are not up."""
    for pod in pods:
        pod.be_created()
    world.touch(*pods)


def writes_of_status(world: World) -> list[float]:
    written: list[float] = []
    world.write_hook = lambda what: written.append(world.t) if what == "status" else None
    return written


def test_reason_of_a_pod_is_stored_as_soon_as_its_status_has_it(kind: str) -> None:
    world = first_release(kind, replicas=5)
    first, second, *_ = world.make(5)
    world.run(2)
    assert said(world) == ""
    world.touch(first.wait_for_image())
    world.rest()
    assert said(world) == f"1 of 5 pods does not come up: {first.name}: {PULLING}"
    assert releases.why(world.stored(), current=True).endswith(f"5 coming up; {said(world)}")
    written = writes_of_status(world)
    world.touch(second.wait_for_image())
    world.run(20)
    assert written == [], "the number of the pods is stored with the next write"
    world.up(*world.of("v1")[2:])
    world.run(70)
    assert said(world) == f"2 of 5 pods do not come up: {first.name}: {PULLING}"


def test_slow_start_of_healthy_pods_costs_no_write_and_no_read(kind: str) -> None:
    def writes(seconds: float) -> int:
        world = first_release(kind)
        pods = world.make(3)
        silent(world, *pods)
        world.run(seconds)
        world.up(*pods)
        world.run(300)
        assert (world.state(), world.condition(PODS_NOT_UP), world.asked) == (SUCCESS, None, [])
        return world.writes

    assert writes(25) == writes(1)


def test_retries_of_the_kubelet_cost_one_write() -> None:
    world = first_release("Deployment")
    (pod,) = world.make(1)
    world.rest()
    written = writes_of_status(world)
    for _ in range(5):
        pod.waiting = ("ErrImagePull", "failed to pull and unpack image")
        world.touch(pod)
        world.run(10)
        world.touch(pod.wait_for_image())
        world.run(10)
    assert len(written) == 1
    assert pod.name in said(world)


def test_crashes_and_runs_in_between_cost_one_write() -> None:
    world = first_release("Deployment")
    (pod,) = world.make(1)
    world.rest()
    written = writes_of_status(world)
    for _ in range(5):
        world.touch(pod.crash(world.t))
        world.run(10)
        pod.waiting = None
        world.touch(pod)
        world.run(10)
    assert len(written) == 1
    assert "container main: " in said(world)
    assert "(exit code 1)" in said(world)


def test_pods_that_crash_once_cost_less_than_a_write_each(kind: str) -> None:
    """They start one after the other."""

    def writes(*, crash: bool) -> int:
        world = first_release(kind, replicas=20)
        for _ in range(20):
            (pod,) = world.make(1)
            world.run(2)
            if crash:
                world.touch(pod.crash(world.t))
            world.run(10)
            world.up(pod)
            world.run(25)
        world.run(300)
        assert world.state() == SUCCESS
        return world.writes

    assert writes(crash=True) - writes(crash=False) <= 20


def test_condition_is_removed_soon_after_the_reason_is_gone() -> None:
    world = first_release("Deployment")
    pods = world.make(3)
    world.touch(pods[0].wait_for_image())
    world.run(5)
    assert said(world)
    world.up(pods[0])
    world.run(61)
    assert (world.state(), said(world)) == (RUNNING, "")


def test_condition_ends_with_the_release(kind: str) -> None:
    world = first_release(kind)
    for pod in world.make(3):
        world.touch(pod.wait_for_image())
    world.run(60)
    assert said(world)
    world.run(70)
    assert (world.state(), world.condition(PODS_NOT_UP)) == (SUSPEND, None)
    world, (pod,) = second_release(kind)
    world.touch(pod.wait_for_image())
    world.run(60)
    assert said(world)
    world.run(120)
    assert world.image == "v1"
    assert world.condition(PODS_NOT_UP, "v2") is None
    assert PULLING in getattr(world.condition(ROLLED_BACK, "v2"), "message", "")


def test_new_leader_writes_the_same_words_not_again() -> None:
    world = first_release("Deployment")
    for pod in world.make(3):
        world.touch(pod.wait_for_image())
    world.run(5)
    written = writes_of_status(world)
    world.die()
    world.run(5)
    assert (written, bool(said(world))) == ([], True)


def test_pod_that_just_got_its_node_does_not_quote_the_scheduler() -> None:
    world = first_release("Deployment")
    pods = world.make(3)
    world.touch(*(pod.find_no_node() for pod in pods))
    world.run(20)
    for pod in pods:
        pod.unscheduled, pod.node = False, "node-1"
    world.touch(*pods)
    world.rest()
    assert world.condition(PODS_NOT_UP) is None


# Events


def test_events_of_a_silent_pod_are_read_once_and_their_words_are_stored(kind: str) -> None:
    world, (pod,) = second_release(kind)
    silent(world, pod)
    world.event_words[pod.uid] = NOT_MOUNTED
    world.run(ASK_AFTER - 1)
    assert world.asked == []
    world.run(2)
    assert said(world).endswith(f" does not come up: {pod.name}: FailedMount: {NO_SECRET}")
    world.run(80)
    assert [uid for _, uid in world.asked] == [pod.uid]
    world.run(60)
    assert world.image == "v1"
    assert f"FailedMount: {NO_SECRET}" in getattr(world.condition(ROLLED_BACK, "v2"), "message", "")


def test_events_are_read_again_only_after_a_change_or_the_start_timeout() -> None:
    world = first_release("Deployment", start_timeout=1000)
    (pod,) = world.make(1)
    silent(world, pod)
    world.run(ASK_AFTER + 500)
    assert len(world.asked) == 1
    pod.creating = False
    world.touch(pod)
    world.run(1)
    assert len(world.asked) == 2
    for _ in range(20):  # the pod changes again and again
        pod.creating = not pod.creating
        world.touch(pod)
        world.run(1)
    assert len(world.asked) == 2
    world.run(20)
    assert len(world.asked) == 3


def test_events_of_few_pods_are_read() -> None:
    world = first_release("Deployment", replicas=100)
    silent(world, *world.make(100))
    world.run(119)
    assert len(world.asked) == 2


def test_words_of_the_status_need_no_event() -> None:
    world = first_release("Deployment")
    for pod in world.make(3):
        world.touch(pod.wait_for_image())
    world.run(110)
    assert world.asked == []


def test_words_of_events_end_with_the_change_of_the_pod() -> None:
    world = first_release("Deployment")
    (pod,) = world.make(1)
    silent(world, pod)
    world.event_words[pod.uid] = NOT_MOUNTED
    world.run(ASK_AFTER)
    assert "FailedMount" in said(world)
    pod.creating, pod.phase, pod.waiting = False, "Running", None
    del world.event_words[pod.uid]
    world.touch(pod)
    world.run(61)
    assert said(world) == ""


def test_words_of_events_stay_while_a_pod_becomes_ready_and_unready() -> None:
    world = first_release("Deployment")
    (pod,) = world.make(1)
    world.event_words[pod.uid] = Trouble("Unhealthy", "Readiness probe failed", where="container main")
    world.run(ASK_AFTER)
    asked, words = len(world.asked), said(world)
    assert words.endswith("container main: Unhealthy: Readiness probe failed")
    for _ in range(3):
        world.up(pod)
        world.run(2)
        world.touch(pod.lose_readiness(world.t))
        world.run(2)
        assert (said(world), len(world.asked)) == (words, asked)


# nodes, evictions and preemptions


def test_node_that_is_not_ready_is_named() -> None:
    world, (pod,) = second_release("Deployment")
    world.lose_node("node-1")
    world.run(300)
    stalled = world.condition(STALLED, "v2")
    assert stalled is not None
    assert stalled.reason == Fault.NODE_NOT_READY
    assert f"{pod.name}: NodeNotReady: node node-1 is not ready or does not exist" in stalled.message


def test_pod_that_replaces_one_that_ended_by_itself_quotes_it(kind: str) -> None:
    world, (pod,) = second_release(kind)
    for _ in range(6):
        world.run(25)
        if world.image == "v1":
            break
        pod.phase, pod.refused = "Failed", ("Evicted", LIMIT)
        world.touch(pod)
        number = int(pod.name.rpartition("-")[2])
        world.remove(pod)
        before, (pod,) = pod, world.make(1, image="v2", number=number)
        world.rest()
    assert world.image == "v1"
    message = getattr(world.condition(ROLLED_BACK, "v2"), "message", "")
    text = f"pod {pod.name} is not up after 120 s, counted with the pods that it replaces: predecessor {before.name}: "
    assert message.startswith(f"{text}Evicted: {LIMIT.strip()}"), message


def test_release_whose_pods_are_evicted_again_and_again_says_so() -> None:
    world = first_release("Deployment", replicas=2)
    for _ in range(20):
        pods = world.make(2)
        world.run(30)
        for pod in pods:
            pod.phase, pod.refused, pod.disrupted = "Failed", EVICTED, BY_KUBELET
            world.touch(pod)
            world.remove(pod)
        world.run(5)
    stalled = world.condition(STALLED)
    assert stalled is not None
    assert (stalled.status, world.state()) == ("True", RUNNING)
    assert ": Evicted: The node was low on resource: memory." in stalled.message


@pytest.mark.parametrize("preempted", [True, False])
def test_pod_that_replaces_an_evicted_or_preempted_pod_quotes_it(preempted: bool) -> None:
    world = first_release("Deployment")
    pods = world.make(3)
    world.up(*pods[1:])
    world.run(5)
    if preempted:
        pods[0].deleting, pods[0].disrupted = True, PREEMPTED
        text = ": ".join(PREEMPTED)
    else:
        pods[0].phase, pods[0].refused, pods[0].disrupted = "Failed", EVICTED, BY_KUBELET
        text = "Evicted: The node was low on resource: memory."
    world.touch(pods[0])
    world.remove(pods[0])
    world.rest()
    assert said(world) == ""
    (pod,) = world.make(1)
    world.rest()
    assert said(world) == f"1 of 3 pods does not come up: {pod.name}: predecessor {pods[0].name}: {text}"
    world.touch(pod.wait_for_image())
    world.run(31)
    assert said(world) == f"1 of 3 pods does not come up: {pod.name}: {PULLING}"
