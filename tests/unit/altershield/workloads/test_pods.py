"""Fields of pods, nodes and sets: readiness, owner, and the trouble that a pod reports."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api import labels
from altershield.workloads import is_pod_of_revision, nodes, sets
from altershield.workloads import pods as pod_projections
from altershield.workloads.meta import NO_OWNER, Owner
from altershield.workloads.pods import Trouble
from kube_base.times import unix
from tests.support.workloads import BY_NAME

from .objects import CREATED, VERSION, Object, condition, container, pod

READY = condition("Ready", True)
SCHEDULED = condition("PodScheduled", True)
BACK_OFF = {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container"}


def ended(code: int = 1, reason: str = "Error", message: str = "") -> Object:
    return {"terminated": {"exitCode": code, "reason": reason, "message": message, "startedAt": CREATED}}


def troubled(*statuses: Object, init: list[Object] | None = None, sidecars: Sequence[str] = (), **status: Any) -> str:
    spec = {"nodeName": "node-1", "initContainers": [{"name": name, "restartPolicy": "Always"} for name in sidecars]}
    found = pod(spec=spec, status={"containerStatuses": list(statuses), "initContainerStatuses": init, **status})
    return str(found.trouble) if found.trouble is not None else ""


def test_ready_pod_is_read_with_all_its_fields() -> None:
    found = pod(
        status={"conditions": [SCHEDULED, READY], "podIP": "10.0.0.7", "containerStatuses": [container(ready=True)]}
    )

    assert found.ready
    assert found.exists
    assert found.ready_at == found.scheduled_at == found.metadata.created == int(unix(CREATED))
    assert (found.ip, found.node, found.restarts, found.trouble) == ("10.0.0.7", "node-1", 0, None)
    assert (found.version, found.finished, found.hash) == (VERSION, "", "")
    assert found.owner == Owner("apps/v1", "ReplicaSet", "web-5d4f8c7b9", "rs-uid")
    assert not found.unscheduled
    assert not found.creating


def test_ready_pod_has_no_trouble_although_it_restarted() -> None:
    status = container(restarts=1, running={}, last=ended(137, "OOMKilled"))
    assert pod(status={"conditions": [READY], "containerStatuses": [status]}).trouble is None


@pytest.mark.parametrize("phase", ["Pending", "Unknown", "Failed", "Succeeded"])
def test_only_a_running_pod_is_ready(phase: str) -> None:
    found = pod(status={"phase": phase, "conditions": [READY]})

    assert not found.ready
    assert found.exists is (phase in ("Pending", "Unknown"))


def test_terminating_pod_does_not_exist() -> None:
    assert not pod(deletionTimestamp=CREATED).exists


def test_time_of_a_missing_condition_or_transition_is_zero() -> None:
    assert pod().ready_at == pod().scheduled_at == 0
    assert pod(status={"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": None}]}).ready_at == 0


@pytest.mark.parametrize(
    ("ready", "start", "was_ready"),
    [
        (condition("Ready", True), CREATED, True),
        (condition("Ready", False), CREATED, False),
        (condition("Ready", False), "2026-08-21T07:29:47Z", False),
        (condition("Ready", False), "2026-08-21T07:29:46Z", True),
        (condition("Ready", False), None, True),
        ({"type": "Ready", "status": "False"}, CREATED, True),
        (SCHEDULED, None, False),
    ],
)
def test_pod_was_ready_if_its_readiness_has_changed_since_its_start(
    ready: Object, start: str | None, was_ready: bool
) -> None:
    assert pod(status={"conditions": [ready], "startTime": start}).was_ready is was_ready


def test_scheduled_at_is_zero_if_pod_scheduled_is_false() -> None:
    assert pod(status={"conditions": [condition("PodScheduled", False)]}).scheduled_at == 0


def test_restarts_are_the_sum_of_all_containers() -> None:
    found = pod(
        status={
            "containerStatuses": [container(restarts=2), container(restarts=3)],
            "initContainerStatuses": [container(restarts=4)],
        }
    )
    assert found.restarts == 9


def test_restarted_containers_are_app_containers_and_sidecars() -> None:
    found = pod(
        spec={"initContainers": [{"name": "init"}, {"name": "mesh", "restartPolicy": "Always"}]},
        status={
            "containerStatuses": [
                {**container(restarts=2, running={}, last=ended(3, message="no\nconfig")), "name": "app"},
                {**container(restarts=0, running={}), "name": "log"},
            ],
            "initContainerStatuses": [
                {**container(restarts=4, **ended(0, "Completed")), "name": "init"},
                {**container(restarts=1, running={}, last=ended(255, "Unknown")), "name": "mesh"},
            ],
        },
    )
    assert [(each.name, each.count, each.lost, str(each.why)) for each in found.restarted] == [
        ("app", 2, False, "Error (exit code 3): no config"),
        ("mesh", 1, True, "Unknown (exit code 255)"),
    ]


@pytest.mark.parametrize(("finished", "expected"), [(CREATED, int(unix(CREATED))), (None, 0)])
def test_end_of_the_last_run_of_a_restarted_container_may_be_unknown(finished: str | None, expected: int) -> None:
    last = {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "finishedAt": finished}}
    (found,) = pod(status={"containerStatuses": [container(restarts=1, last=last)]}).restarted
    assert (found.ended_at, found.lost) == (expected, True)


def test_restarted_container_without_a_last_state_is_read() -> None:
    (found,) = pod(status={"containerStatuses": [container(restarts=1)]}).restarted
    assert (found.count, found.ended_at, found.lost, str(found.why)) == (1, 0, False, "Error (exit code 0)")


def test_version_finished_and_hash_are_read_from_the_labels() -> None:
    own = {labels.VERSION: "x", labels.OPERATE_FINISHED: "17", labels.CONTROLLER_REVISION_HASH: "web-6b8"}
    found = pod(labels=own)
    assert (found.version, found.finished, found.hash) == ("x", "17", "web-6b8")
    assert pod(labels=None).version == ""


def test_only_the_controlling_owner_is_read() -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
    assert pod(ownerReferences=[owner]).owner == NO_OWNER
    assert pod(ownerReferences=[owner, {**owner, "uid": "v", "controller": True}]).owner.uid == "v"


def test_owners_with_the_same_uid_are_distinguished() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": "same", "controller": True}
    for forged in ({"kind": "StatefulSet"}, {"name": "b"}, {"apiVersion": "evil/v1"}):
        assert pod(ownerReferences=[owner]).owner == Owner("apps/v1", "ReplicaSet", "a", "same")
        wanted = {**owner, **forged}
        found = pod(ownerReferences=[wanted]).owner
        assert (found.api_version, found.kind, found.name) == (wanted["apiVersion"], wanted["kind"], wanted["name"])


# trouble


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (
            container(waiting={"reason": "ImagePullBackOff", "message": 'Back-off pulling image "busybo"'}),
            'ImagePullBackOff: Back-off pulling image "busybo"',
        ),
        (container(waiting={"reason": "ContainerCreating"}), ""),
        (container(waiting={"reason": "PodInitializing"}), ""),
        (container(waiting={}), ""),
        (
            container(restarts=3, waiting=BACK_OFF, last=ended(137, "OOMKilled")),
            "CrashLoopBackOff (exit code 137): OOMKilled, back-off 40s restarting failed container",
        ),
        (
            container(restarts=3, waiting=BACK_OFF, last=ended(1)),
            "CrashLoopBackOff (exit code 1): back-off 40s restarting failed container",
        ),
        (
            container(restarts=3, waiting={"reason": "CrashLoopBackOff"}, last=ended(2, "Error", "no such file")),
            "CrashLoopBackOff (exit code 2): no such file",
        ),
        (container(**ended(1, "Error", "boom")), "Error (exit code 1): boom"),
        (container(**ended(0, "Completed")), "Completed (exit code 0)"),
        (container(terminated={"exitCode": 3}), "Terminated (exit code 3)"),
        (container(restarts=1, running={}, last=ended(137, "OOMKilled")), "OOMKilled (exit code 137)"),
        (container(running={}), ""),
        (container(ready=True, restarts=1, running={}, last=ended(1)), ""),
        (container(running={}, last=ended(1)), ""),
    ],
)
def test_trouble_of_a_container_has_reason_exit_code_and_message(status: Object, text: str) -> None:
    assert troubled(status) == (f"container main: {text}" if text else "")


def test_failed_init_container_takes_precedence_over_a_waiting_container() -> None:
    waiting = container(waiting={"reason": "PodInitializing"})
    failed = container(restarts=2, waiting=BACK_OFF, last=ended(1))
    assert troubled(waiting, init=[failed]).startswith("init container main: CrashLoopBackOff (exit code 1)")


def test_completed_init_container_is_no_trouble() -> None:
    waiting = container(waiting={"reason": "ErrImagePull", "message": "no such image"})
    done = container(**ended(0, "Completed"))
    assert troubled(waiting, init=[done]) == "container main: ErrImagePull: no such image"
    assert troubled(container(running={}), init=[done]) == ""
    assert troubled(container(running={}), init=[container(**ended(1))]) == "init container main: Error (exit code 1)"


def test_sidecar_that_ended_is_a_trouble_with_its_name() -> None:
    proxy = container(**ended(0, "Completed")) | {"name": "proxy"}
    waiting = container(waiting={"reason": "PodInitializing"})
    assert troubled(waiting, init=[proxy], sidecars=["proxy"]) == "sidecar proxy: Completed (exit code 0)"
    other = container(**ended(0, "Completed")) | {"name": "other"}
    assert troubled(waiting, init=[other], sidecars=["proxy"]) == ""


def test_init_container_that_runs_is_named_but_does_not_tell_why_the_pod_is_not_up() -> None:
    waiting = container(waiting={"reason": "PodInitializing"})
    unready = condition("Ready", False, reason="ContainersNotReady", message="containers with unready status: [main]")
    migrate = container(running={}) | {"name": "migrate"}
    statuses = {"containerStatuses": [waiting], "initContainerStatuses": [migrate]}
    found = pod(status={"phase": "Pending", "conditions": [unready], **statuses}).trouble
    assert found == Trouble("PodInitializing", "it has not ended", where="init container migrate")
    assert not found.tells


def test_preempted_pod_says_so_although_it_is_ready() -> None:
    text = "default-scheduler: preempting to accommodate a higher priority pod"
    target = condition("DisruptionTarget", True, reason="PreemptionByScheduler", message=text)
    found = pod(status={"conditions": [READY, target]}, deletionTimestamp=CREATED)
    assert str(found.trouble) == f"PreemptionByScheduler: {text}"
    drained = condition("DisruptionTarget", True, reason="EvictionByEvictionAPI", message="Eviction API: evicting")
    assert pod(status={"conditions": [READY, drained]}, deletionTimestamp=CREATED).trouble is None


@pytest.mark.parametrize(
    ("reason", "tells"),
    [("ContainersNotReady", False), ("ReadinessGatesNotReady", True), ("PodFailed", False), ("", False)],
)
def test_condition_ready_tells_only_of_readiness_gates(reason: str, tells: bool) -> None:
    unready = condition("Ready", False, reason=reason, message="why")
    found = pod(status={"conditions": [unready], "containerStatuses": [container(running={})]}).trouble
    assert found is not None
    assert found.tells is tells


def test_reason_of_the_pod_takes_precedence_over_its_containers() -> None:
    status = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}
    assert troubled(container(**ended(137)), **status) == "Evicted: The node was low on resource: memory."


def test_unscheduled_pod_has_the_message_of_the_scheduler() -> None:
    nowhere = condition("PodScheduled", False, reason="Unschedulable", message="0/3 nodes are available")
    found = pod(spec={"nodeName": ""}, status={"phase": "Pending", "conditions": [nowhere]})
    assert found.unscheduled
    assert not found.creating
    assert found.trouble == Trouble("Unschedulable", "0/3 nodes are available")
    gated = pod(spec={"nodeName": ""}, status={"phase": "Pending", "conditions": [condition("PodScheduled", False)]})
    assert gated.unscheduled
    assert str(gated.trouble) == "Unschedulable"


def test_pod_with_a_node_is_scheduled_although_the_condition_is_false() -> None:
    assert not pod(status={"conditions": [condition("PodScheduled", False)]}).unscheduled


def test_pod_without_a_node_or_a_condition_is_unscheduled() -> None:
    found = pod(spec={"nodeName": ""}, status={"phase": "Pending"})
    assert found.unscheduled
    assert found.trouble is None
    assert not found.creating


def test_trouble_of_a_container_takes_precedence_over_the_ready_condition() -> None:
    unready = condition("Ready", False, reason="ContainersNotReady", message="containers with unready status: [main]")
    text = "ContainersNotReady: containers with unready status: [main]"
    assert troubled(container(running={}), conditions=[unready]) == text
    assert troubled(container(**ended(1)), conditions=[unready]) == "container main: Error (exit code 1)"
    assert troubled(container(running={}), conditions=[condition("Ready", False)]) == ""
    assert troubled(container(running={}), conditions=[condition("Ready", False, message="why")]) == "NotReady: why"


@pytest.mark.parametrize(
    ("reason", "message", "disrupted"),
    [
        ("OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu, requested: 500000", True),
        ("OutOfpods", "Pod was rejected: Node didn't have enough resource: pods, requested: 1", True),
        ("Evicted", "Pod was rejected: The node had condition: [DiskPressure]. ", True),
        ("NodeAffinity", "Pod was rejected: Predicate NodeAffinity failed", True),
        ("UnexpectedAdmissionError", "Pod was rejected: Allocate failed due to no healthy devices present", True),
        ("NodeShutdown", "Pod was rejected: Pod was rejected as the node is shutting down.", True),
        ("SysctlForbidden", 'Pod was rejected: forbidden sysctl: "a" not allowlisted', False),
        ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline", False),
        ("Evicted", 'Usage of EmptyDir volume "cache" exceeds the limit "1Mi". ', False),
    ],
)
def test_pod_is_disrupted_if_its_node_refuses_it_but_not_if_its_spec_is_the_cause(
    reason: str, message: str, disrupted: bool
) -> None:
    status = {"phase": "Failed", "reason": reason, "message": message}
    assert pod(status=status).disrupted is disrupted


@pytest.mark.parametrize(("status", "disrupted"), [(True, True), (False, False), (None, False)])
def test_pod_with_a_disruption_target_is_disrupted(status: bool | None, disrupted: bool) -> None:
    conditions = [] if status is None else [condition("DisruptionTarget", status, reason="EvictionByEvictionAPI")]
    assert pod(status={"conditions": conditions}).disrupted is disrupted


@pytest.mark.parametrize(
    ("message", "disrupted"),
    [
        ("The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi.", True),
        ("Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ", False),
        ('Usage of EmptyDir volume "cache" exceeds the limit "1Mi". ', False),
        ('Container app exceeded its local ephemeral storage limit "1Mi". ', False),
    ],
)
def test_pod_evicted_for_its_own_storage_limit_is_not_disrupted(message: str, disrupted: bool) -> None:
    conditions = [condition("DisruptionTarget", True, reason="TerminationByKubelet")]
    status = {"phase": "Failed", "reason": "Evicted", "message": message, "conditions": conditions}
    assert pod(status=status).disrupted is disrupted


@pytest.mark.parametrize(
    ("statuses", "creating"),
    [
        ([], True),
        ([container(waiting={"reason": "ContainerCreating"})], True),
        ([container(waiting={"reason": "PodInitializing"})], True),
        ([container(waiting={})], True),
        ([container(waiting={"reason": "ContainerCreating"}), container(running={})], False),
        ([container(waiting={"reason": "ImagePullBackOff"})], False),
        ([container(running={})], False),
    ],
)
def test_pod_is_creating_while_its_containers_wait_without_an_error(statuses: list[Object], creating: bool) -> None:
    assert pod(status={"phase": "Pending", "containerStatuses": statuses}).creating is creating


def test_long_trouble_is_clipped_to_one_line() -> None:
    found = pod(
        status={"containerStatuses": [container(waiting={"reason": "r" * 99, "message": "a\n b\t" + "x" * 999})]}
    )
    assert found.trouble is not None
    assert (len(found.trouble.reason), len(found.trouble.message)) == (64, 300)
    assert found.trouble.message.startswith("a b x")
    assert found.trouble.message.endswith("…")
    assert len(str(found.trouble)) == 300


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(
    part=st.sampled_from(["containerStatuses", "initContainerStatuses", "conditions", "phase", "podIP", "reason"]),
    value=anything,
)
def test_malformed_status_is_rejected_or_read(part: str, value: Any) -> None:
    try:
        found = pod(status={part: value})
    except msgspec.DecodeError:
        return
    assert found.metadata.name


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"{}", b'{"metadata": null}', b'{"metadata": {}, "status": 5}'])
def test_data_that_is_no_pod_is_rejected(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        pod_projections.read(data)


# which revision a pod belongs to


@pytest.mark.parametrize(
    ("name", "of"), [("web-6b8", True), ("web-7c9", False), ("web-a6b8", False), ("6b8", True), ("web-6b8-x", False)]
)
@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet", "CloneSet"])
def test_pod_without_an_intermediate_object_belongs_to_the_revision_of_its_hash(kind: str, name: str, of: bool) -> None:
    for own in ("6b8", "web-6b8") if name == "web-6b8" else ("6b8",):
        found = pod(labels={labels.CONTROLLER_REVISION_HASH: own})
        assert is_pod_of_revision(BY_NAME[kind], found, name, "any uid") is of
    assert not is_pod_of_revision(BY_NAME[kind], pod(labels={}), name, "any uid")


def test_pod_with_a_replica_set_belongs_to_the_revision_of_its_owner_uid() -> None:
    found = pod(labels={labels.CONTROLLER_REVISION_HASH: "web-6b8"})
    assert is_pod_of_revision(BY_NAME["Deployment"], found, "web-6b8", "rs-uid")
    assert not is_pod_of_revision(BY_NAME["Deployment"], found, "web-5d4f8c7b9", "another")


# nodes and sets


@pytest.mark.parametrize(
    ("type_", "status", "ready"), [("Ready", True, True), ("Ready", False, False), ("DiskPressure", True, False)]
)
def test_node_is_ready_according_to_its_ready_condition(type_: str, status: bool, ready: bool) -> None:
    body = {"metadata": {"name": "node-1"}, "status": {"conditions": [condition(type_, status)]}}
    found = nodes.read(msgspec.json.encode(body))
    assert (found.metadata.name, found.ready, bool(found.ready_at)) == ("node-1", ready, type_ == "Ready")


def test_node_has_its_labels() -> None:
    assert nodes.read(b'{"metadata": {"name": "node-1", "labels": {"pool": "canary"}}}').labels == {"pool": "canary"}
    assert nodes.read(b'{"metadata": {"name": "node-1"}}').labels == {}


def test_node_with_an_unknown_or_missing_condition_is_not_ready() -> None:
    unknown = {**condition("Ready", True), "status": "Unknown"}
    assert not nodes.read(msgspec.json.encode({"metadata": {}, "status": {"conditions": [unknown]}})).ready
    assert not nodes.read(b'{"metadata": {"name": "new"}}').ready


def test_set_is_read_with_uid_owner_version_and_number() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    metadata = {"name": "web-1", "uid": "rs", "labels": {labels.VERSION: VERSION}, "ownerReferences": [owner]}
    numbers = {None: 0, "12": 12, "9223372036854775807": 2**63 - 1, "9223372036854775808": 0, "1e3": 0, "9" * 5000: 0}
    for text, number in numbers.items():
        annotations = {"deployment.kubernetes.io/revision": text} if text else None
        found = sets.read(msgspec.json.encode({"metadata": {**metadata, "annotations": annotations}}))
        assert (found.metadata.uid, found.owner.uid, found.version, found.number) == ("rs", "d", VERSION, number)
