"""The lifecycle of pods and containers on a node."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_base.times import unix
from kube_sandbox.cluster.kinds import Object, Pod
from kube_sandbox.cluster.kubelet import containers, images, lifecycle
from kube_sandbox.cluster.kubelet.pod_states import Node
from kube_sandbox.cluster.settings import SimulationSettings
from support.objects import T0, pod

SETTINGS = SimulationSettings(image_pull=0.2, container_start=0.2, crash_back_off=10, pull_back_off=10)


def statuses(subject: Pod, seconds: float, settings: SimulationSettings = SETTINGS) -> Iterator[tuple[Pod, list[str]]]:
    """Each status that the pod gets within `seconds`, and the reasons of the Events written with it."""
    passed = 0.0
    since: dict[str, tuple[str, float]] = {}
    node = Node("192.168.0.2", "10.244.0.1", set())
    while passed < seconds:
        for name, state in lifecycle.states(subject).items():
            if since.get(name, ("",))[0] != state:
                since[name] = state, passed
        ages = {name: passed - at for name, (_, at) in since.items()}
        step = lifecycle.advance(subject, ages, node, settings, T0 + passed)
        if step.status is not None:
            subject = patched(subject, step.status)
            yield subject, [event.reason for event in step.events]
        elif step.wait is None:
            return
        else:
            passed += step.wait + 1e-9  # so that rounding does not leave a rest


def patched(subject: Pod, status: Object) -> Pod:
    wire: dict[str, Any] = msgspec.to_builtins(subject)
    conditions = {one["type"]: one for one in wire.setdefault("status", {}).get("conditions", [])}
    conditions |= {one["type"]: {k: v for k, v in one.items() if v is not None} for one in status["conditions"]}
    wire["status"] |= {**status, "conditions": list(conditions.values())}
    return msgspec.convert(wire, Pod)


def status_lines(subject: Pod, seconds: float = 60, settings: SimulationSettings = SETTINGS) -> list[str]:
    """Each status in one line: phase, state, readiness and restarts."""
    return [status_line(state) for state, _ in statuses(subject, seconds, settings)]


def status_line(subject: Pod) -> str:
    status = subject.status.container_statuses[0]
    state = status["state"]
    reason = "Running" if "running" in state else (state.get("waiting") or state.get("terminated"))["reason"]
    ready = "ready" if subject.ready_since is not None else "unready"
    return f"{subject.status.phase} {reason} {ready} {status['restartCount']}"


PROBED = [{"name": "sleep", "image": "busybox", "readinessProbe": {"initialDelaySeconds": 5}}]


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (pod(), ["Pending ContainerCreating unready 0", "Running Running ready 0"]),
        (
            pod(containers=PROBED),
            ["Pending ContainerCreating unready 0", "Running Running unready 0", "Running Running ready 0"],
        ),
        (pod(image="never-ready"), ["Pending ContainerCreating unready 0", "Running Running unready 0"]),
        (
            pod(image="app:crash"),
            [
                "Pending ContainerCreating unready 0",
                "Running Error unready 0",
                "Running CrashLoopBackOff unready 1",
                "Running CrashLoopBackOff unready 2",
                "Running CrashLoopBackOff unready 3",
            ],
        ),
        (pod(image="crash", restartPolicy="Never"), ["Pending ContainerCreating unready 0", "Failed Error unready 0"]),
        (
            pod(image="busybo"),
            ["Pending ContainerCreating unready 0"]
            + ["Pending ErrImagePull unready 0", "Pending ImagePullBackOff unready 0"] * 4,
        ),
    ],
    ids=["fine", "probed", "never ready", "crash", "crash once", "no image"],
)
def test_pod_status_passes_through_the_expected_states(subject: Pod, expected: list[str]) -> None:
    assert status_lines(subject, 55) == expected


def test_container_that_crashes_later_is_ready_until_it_crashes() -> None:
    settings = SimulationSettings(container_start=0.2, crash=5, crash_back_off=10)
    assert status_lines(pod(image="crash"), 13, settings) == [
        "Pending ContainerCreating unready 0",
        "Running Running ready 0",
        "Running Error unready 0",
        "Running Running ready 1",
        "Running Error unready 1",
        "Running CrashLoopBackOff unready 1",
    ]


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("app:exits-after-3s", ["ready 0", "Error 0", "ready 1", "Error 1", "CrashLoopBackOff 1", "ready 2"]),
        ("app:exits-once-after-500ms", ["ready 0", "Error 0", "ready 1"]),
        ("oom-after-3s", ["ready 0", "OOMKilled 0", "ready 1", "OOMKilled 1", "CrashLoopBackOff 1", "ready 2"]),
        ("completes-after-3s", ["ready 0", "Completed 0", "ready 1", "Completed 1", "CrashLoopBackOff 1", "ready 2"]),
        ("app:unready-after-3s", ["ready 0", "unready 0"]),
        ("app:flaps-every-5s", ["ready 0", "unready 0", "ready 0", "unready 0"]),
        ("app:badconfig", ["CreateContainerConfigError 0"]),
    ],
)
def test_image_with_a_time_in_its_name_changes_state_after_that_time(image: str, expected: list[str]) -> None:
    settings = SimulationSettings(container_start=0.1, image_pull=0, crash_back_off=5)
    lines = [line.split() for line in status_lines(pod(image=image), 19.5, settings)]
    summaries = [f"{ready if state == 'Running' else state} {restarts}" for _, state, ready, restarts in lines]
    assert summaries[1 if "ContainerCreating" in summaries[0] else 0 :][: len(expected)] == expected


def test_flapping_container_changes_its_readiness_also_if_the_kubelet_is_late_by_whole_periods() -> None:
    flapping = pod(image="app:flaps-every-400ms")
    *_, (ready, _) = statuses(flapping, 0.5)
    assert ready.status.container_statuses[0]["ready"]
    node = Node("192.168.0.2", "10.244.0.1", set())
    (container,) = ready.spec.containers
    late = lifecycle.advance(ready, {container.name: 0.9}, node, SETTINGS, T0)
    assert late.status is not None
    assert not late.status["containerStatuses"][0]["ready"]
    assert lifecycle.states(ready) != lifecycle.states(patched(ready, late.status)), "the age begins again"


def test_container_killed_for_memory_keeps_its_last_state() -> None:
    settings = SimulationSettings(container_start=0.1, image_pull=0, crash_back_off=5)
    *_, (looping, _), (again, _) = statuses(pod(image="oom-after-3s"), 12, settings)
    waiting, running = looping.status.container_statuses[0], again.status.container_statuses[0]
    for status in (waiting, running):
        ended = status["lastState"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")
        assert ended["startedAt"] < ended["finishedAt"]
    assert (waiting["restartCount"], running["restartCount"]) == (1, 2)
    assert (waiting["started"], running["started"]) == (False, True)
    assert looping.status.phase == "Running"


def test_lost_readiness_gives_an_event_and_a_transition_time() -> None:
    *_, (unready, events) = statuses(pod(image="app:unready-after-3s"), 10)
    conditions = {one.type: one for one in unready.status.conditions}
    assert events == ["Unhealthy"]
    assert (conditions["Ready"].status, conditions["Ready"].reason) == ("False", "ContainersNotReady")
    assert conditions["Ready"].last_transition_time == "2026-01-01T00:00:03Z"
    assert conditions["PodReadyToStartContainers"].last_transition_time == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("image", "policy", "phase", "reason"),
    [
        ("completes-after-1s", "Never", "Succeeded", "PodCompleted"),
        ("completes-after-1s", "OnFailure", "Succeeded", "PodCompleted"),
        ("exits-after-1s", "Never", "Failed", "PodFailed"),
    ],
)
def test_pod_without_restarts_ends_as_succeeded_or_failed(image: str, policy: str, phase: str, reason: str) -> None:
    *_, (ended, _) = statuses(pod(image=image, restartPolicy=policy), 10)
    conditions = {one.type: (one.status, one.reason) for one in ended.status.conditions}
    assert (ended.status.phase, conditions["Ready"]) == (phase, ("False", reason))


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        ("app:nomount", "FailedMount"),
        ("app:nosecret", "FailedMount"),
        ("app:noattach", "FailedAttachVolume"),
        ("app:nonetwork", "FailedCreatePodSandBox"),
    ],
)
def test_pod_without_its_volume_or_a_network_does_not_start(image: str, reason: str) -> None:
    ((stuck, events),) = statuses(pod(image=image), 60)
    conditions = {one.type: one.status for one in stuck.status.conditions}
    assert (status_line(stuck), events) == ("Pending ContainerCreating unready 0", [reason])
    assert conditions["PodReadyToStartContainers"] == "False"
    assert not stuck.status.pod_ip


def test_container_that_never_becomes_ready_fails_its_probe() -> None:
    *_, (_, events) = statuses(pod(image="never-ready"), 60)
    assert events[-2:] == ["Started", "Unhealthy"]


def test_failing_init_container_keeps_the_others_waiting() -> None:
    subject = pod(initContainers=[{"name": "first", "image": "fine"}, {"name": "second", "image": "crash"}])
    *_, (stuck, _) = statuses(subject, 25)
    first, second = stuck.status.init_container_statuses
    assert status_line(stuck) == "Pending PodInitializing unready 0"
    assert first["state"]["terminated"]["reason"] == "Completed"
    assert second["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert second["restartCount"] >= 2
    conditions = {one.type: one for one in stuck.status.conditions}
    assert conditions["Initialized"].message == "containers with incomplete status: [second]"


def test_container_with_a_changed_image_is_restarted_in_place() -> None:
    *_, (up, _) = statuses(pod(image="app:1"), 5)
    changed = msgspec.structs.replace(up, spec=pod(image="app:2").spec)
    changes = list(statuses(changed, 5))
    assert [status_line(state) for state, _ in changes] == ["Running Completed unready 0", "Running Running ready 1"]
    assert [events[0] for _, events in changes] == ["Killing", "Pulling"]
    status = changes[-1][0].status.container_statuses[0]
    assert (status["image"], status["lastState"]["terminated"]["reason"]) == ("docker.io/library/app:2", "Completed")


def test_pod_that_starts_at_once_gets_one_status_write() -> None:
    assert status_lines(pod(), 5, SimulationSettings()) == ["Running Running ready 0"]


def test_slow_image_starts_after_slow_start() -> None:
    assert status_lines(pod(image="slow"), 1.9) == ["Pending ContainerCreating unready 0"]
    assert status_lines(pod(image="slow"), 2.5)[-1] == "Running Running ready 0"


def test_slow_container_delays_the_pod_but_not_the_other_containers() -> None:
    both = pod(containers=[{"name": "a", "image": "slow"}, {"name": "b", "image": "fast"}])
    assert status_lines(both) == [
        "Pending ContainerCreating unready 0",
        "Pending ContainerCreating unready 0",
        "Running Running ready 0",
    ]


def test_init_containers_succeed_before_the_other_containers_start() -> None:
    first, last = (state for state, _ in statuses(pod(initContainers=[{"name": "init", "image": "x"}]), 10))
    assert status_line(first) == "Pending PodInitializing unready 0"
    assert last.status.init_container_statuses[0]["state"]["terminated"]["reason"] == "Completed"
    assert status_line(last) == "Running Running ready 0"


def test_init_container_that_takes_time_runs_before_the_others_start() -> None:
    subject = pod(initContainers=[{"name": name, "image": "completes-after-3s"} for name in ("first", "second")])
    seen = [state for state, _ in statuses(subject, 10)]
    assert status_line(seen[-1]) == "Running Running ready 0"
    assert {status_line(state) for state in seen[:-2]} == {"Pending PodInitializing unready 0"}
    running = [[name for name, status in initial(state).items() if "running" in status["state"]] for state in seen]
    assert [each for each in running if each] == [["first"], ["second"]]
    for status in initial(seen[-1]).values():
        ended = status["state"]["terminated"]
        assert (status["ready"], status["restartCount"], ended["exitCode"]) == (True, 0, 0)
        assert unix(ended["finishedAt"]) - unix(ended["startedAt"]) == pytest.approx(3, abs=1)


def initial(subject: Pod) -> dict[str, Object]:
    return {status["name"]: status for status in subject.status.init_container_statuses}


@pytest.mark.parametrize("probe", ["startupProbe", "readinessProbe"])
def test_image_is_not_ready_before_its_time(probe: str) -> None:
    subject = pod(containers=[{"name": "sleep", "image": "ready-after-4s", probe: {}}])
    *_, before, after = (state for state, _ in statuses(subject, 20))
    assert [status_line(each) for each in (before, after)] == ["Running Running unready 0", "Running Running ready 0"]
    assert before.status.container_statuses[0]["started"] is (probe == "readinessProbe")
    assert after.status.container_statuses[0]["started"] is True


def test_container_whose_startup_probe_gives_up_is_killed() -> None:
    probe = {"periodSeconds": 1, "failureThreshold": 3}
    subject = pod(containers=[{"name": "sleep", "image": "ready-after-4s", "startupProbe": probe}])
    found = status_lines(subject, 20)
    assert "Running Error unready 0" in found
    assert not any("ready" in line.split() for line in found)


def test_readiness_gate_delays_ready_but_not_containers_ready() -> None:
    *_, (gated, _) = statuses(pod(readinessGates=[{"conditionType": "my/gate"}]), 10)
    conditions = {one.type: (one.status, one.reason) for one in gated.status.conditions}
    assert conditions["ContainersReady"] == ("True", "")
    assert conditions["Ready"] == ("False", "ReadinessGatesNotReady")
    opened = patched(gated, {"conditions": [{"type": "my/gate", "status": "True"}]})
    assert [status_line(state) for state, _ in statuses(opened, 10)] == ["Running Running ready 0"]


def test_messages_are_those_of_the_kubelet() -> None:
    waits = [state.status.container_statuses[0]["state"]["waiting"] for state, _ in statuses(pod(image="busybo"), 1)]
    assert waits[2]["message"].startswith('Back-off pulling image "busybo": ErrImagePull: failed to pull and unpack')
    *_, (crashed, _) = statuses(pod(image="crash"), 5)
    waiting = crashed.status.container_statuses[0]["state"]["waiting"]
    assert waiting["message"] == ("back-off 10s restarting failed container=sleep pod=sleep-1_default(uid of sleep-1)")


def test_events_are_written_together_with_the_states() -> None:
    assert [events for _, events in statuses(pod(), 5)] == [[], ["Pulling", "Pulled", "Created", "Started"]]
    assert [events for _, events in statuses(pod(image="missing"), 5)] == [
        [],
        ["Pulling", "Failed", "Failed"],
        ["BackOff", "Failed"],
    ]


def test_container_with_a_corrected_image_starts_at_once() -> None:
    *_, (stuck, _) = statuses(pod(image="nosuch"), 1)
    mended = msgspec.structs.replace(stuck, spec=pod(image="busybox").spec)
    assert status_lines(mended, 0.5) == ["Running Running ready 0"]


@pytest.mark.parametrize(
    ("reference", "known"),
    [
        ("busybox", images.Image()),
        ("registry.example:5000/library/busybox:1.36", images.Image()),
        ("busybo", images.Image(exists=False)),
        ("app@sha256:c0ffee", images.Image()),
        ("crash.example/app", images.Image()),
        ("team/app:v2-slow-crash", images.Image(crashes=True, is_slow=True)),
        ("app:never-ready", images.Image(becomes_ready=False)),
        ("nosuch/app", images.Image()),
        ("team/nosuch", images.Image(exists=False)),
        ("app:1.2-exits-after-3s", images.Image(end=images.End(3))),
        ("app:exits-once-after-1.5s", images.Image(end=images.End(1.5, once=True))),
        ("app:oom-after-200ms", images.Image(end=images.End(0.2, 137, "OOMKilled"))),
        ("app:completes-after-1s", images.Image(end=images.End(1, 0, "Completed"))),
        ("app:unready-after-2s", images.Image(unready_after=2)),
        ("app:flaps-every-2s", images.Image(flaps=2)),
        ("app:slow-nomount", images.Image(is_slow=True, mounts=False)),
        ("app:badconfig", images.Image(is_configured=False)),
    ],
)
def test_image_name_gives_the_behaviour_of_its_containers(reference: str, known: images.Image) -> None:
    assert images.behaviour(reference) == known


@pytest.mark.parametrize(
    ("reference", "full"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("team/app:1", "docker.io/team/app:1"),
        ("registry.example/app", "registry.example/app:latest"),
        ("localhost:5000/app:2", "localhost:5000/app:2"),
    ],
)
def test_reference_is_completed_with_registry_and_tag(reference: str, full: str) -> None:
    assert images.full_reference(reference) == full


def test_durations_are_formatted_as_in_go() -> None:
    assert [containers.go_duration(one) for one in (0.02, 1.5, 10, 80, 160, 300)] == [
        "20ms", "1.5s", "10s", "1m20s", "2m40s", "5m0s",
    ]  # fmt: skip


@given(
    st.lists(st.sampled_from(["busybox", "slow", "crash", "missing", "unready", "slow-crash"]), min_size=1, max_size=4),
    st.sampled_from(["Always", "OnFailure", "Never"]),
    st.booleans(),
)
def test_status_of_any_pod_settles(kinds: list[str], policy: str, probed: bool) -> None:
    probe = {"readinessProbe": {}} if probed else {}
    containers = [{"name": f"c{i}", "image": kind, **probe} for i, kind in enumerate(kinds)]
    states = [state for state, _ in statuses(pod(containers=containers, restartPolicy=policy), 100)]
    assert len(states) <= 60
    should_be_ready = all(kind in ("busybox", "slow") for kind in kinds)
    assert (states[-1].ready_since is not None) == should_be_ready
    phases = [state.status.phase for state in states]
    assert phases == sorted(phases, key=["Pending", "Running", "Failed"].index)  # a phase never returns
