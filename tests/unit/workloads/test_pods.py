"""What is read of pods: whether they are ready, and what somebody who looks at one wants to know first."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api import labels
from altershield.api.meta import unix
from altershield.workloads import BY_KIND, is_pod_of_revision, nodes, sets
from altershield.workloads import pods as pod_projections
from altershield.workloads.meta import NO_OWNER, Owner
from altershield.workloads.pods import Trouble

from .objects import CREATED, VERSION, Object, condition, container, pod

READY = condition("Ready", True)
SCHEDULED = condition("PodScheduled", True)
BACK_OFF = {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container"}


def ended(code: int = 1, reason: str = "Error", message: str = "") -> Object:
    return {"terminated": {"exitCode": code, "reason": reason, "message": message, "startedAt": CREATED}}


def troubled(*statuses: Object, init: list[Object] | None = None, **status: Any) -> str:
    found = pod(status={"containerStatuses": list(statuses), "initContainerStatuses": init, **status})
    return str(found.trouble) if found.trouble is not None else ""


def test_a_pod_that_is_ready() -> None:
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


def test_a_pod_that_is_ready_has_no_trouble_whatever_it_went_through() -> None:
    status = container(restarts=1, running={}, last=ended(137, "OOMKilled"))
    assert pod(status={"conditions": [READY], "containerStatuses": [status]}).trouble is None


@pytest.mark.parametrize("phase", ["Pending", "Unknown", "Failed", "Succeeded"])
def test_only_a_pod_that_runs_is_ready(phase: str) -> None:
    found = pod(status={"phase": phase, "conditions": [READY]})

    assert not found.ready
    assert found.exists is (phase in ("Pending", "Unknown"))


def test_what_is_terminating_does_not_exist() -> None:
    assert not pod(deletionTimestamp=CREATED).exists


def test_nobody_says_since_when() -> None:
    assert pod().ready_at == pod().scheduled_at == 0
    assert pod(status={"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": None}]}).ready_at == 0


def test_a_node_is_a_matter_of_the_condition() -> None:
    assert pod(status={"conditions": [condition("PodScheduled", False)]}).scheduled_at == 0


def test_restarts_are_those_of_all_containers() -> None:
    found = pod(
        status={
            "containerStatuses": [container(restarts=2), container(restarts=3)],
            "initContainerStatuses": [container(restarts=4)],
        }
    )
    assert found.restarts == 9


def test_labels_that_decide() -> None:
    own = {labels.VERSION: "x", labels.OPERATE_FINISHED: "17", labels.CONTROLLER_REVISION_HASH: "web-6b8"}
    found = pod(labels=own)
    assert (found.version, found.finished, found.hash) == ("x", "17", "web-6b8")
    assert pod(labels=None).version == ""


def test_only_the_owner_that_controls_counts() -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
    assert pod(ownerReferences=[owner]).owner == NO_OWNER
    assert pod(ownerReferences=[owner, {**owner, "uid": "v", "controller": True}]).owner.uid == "v"


def test_an_owner_by_the_same_uid_is_not_taken_for_another() -> None:
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
def test_what_a_container_says(status: Object, text: str) -> None:
    assert troubled(status) == text


def test_a_container_that_failed_speaks_before_one_that_waits_for_it() -> None:
    waiting = container(waiting={"reason": "PodInitializing"})
    failed = container(restarts=2, waiting=BACK_OFF, last=ended(1))
    assert troubled(waiting, init=[failed]).startswith("CrashLoopBackOff (exit code 1)")


def test_an_init_container_that_is_done_is_no_trouble() -> None:
    waiting = container(waiting={"reason": "ErrImagePull", "message": "no such image"})
    done = container(**ended(0, "Completed"))
    assert troubled(waiting, init=[done]) == "ErrImagePull: no such image"
    assert troubled(container(running={}), init=[done]) == ""
    assert troubled(container(running={}), init=[container(**ended(1))]) == "Error (exit code 1)"


def test_the_word_of_the_whole_pod_comes_first() -> None:
    status = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}
    assert troubled(container(**ended(137)), **status) == "Evicted: The node was low on resource: memory."


def test_what_the_scheduler_says() -> None:
    nowhere = condition("PodScheduled", False, reason="Unschedulable", message="0/3 nodes are available")
    found = pod(spec={"nodeName": ""}, status={"phase": "Pending", "conditions": [nowhere]})
    assert found.unscheduled
    assert not found.creating
    assert found.trouble == Trouble("Unschedulable", "0/3 nodes are available")
    gated = pod(spec={"nodeName": ""}, status={"phase": "Pending", "conditions": [condition("PodScheduled", False)]})
    assert gated.unscheduled
    assert str(gated.trouble) == "Unschedulable"


def test_what_has_a_node_is_scheduled_whatever_is_said() -> None:
    assert not pod(status={"conditions": [condition("PodScheduled", False)]}).unscheduled


def test_what_no_scheduler_has_looked_at_has_no_node_either() -> None:
    found = pod(spec={"nodeName": ""}, status={"phase": "Pending"})
    assert found.unscheduled
    assert found.trouble is None
    assert not found.creating


def test_what_the_kubelet_says_of_readiness_comes_last() -> None:
    unready = condition("Ready", False, reason="ContainersNotReady", message="containers with unready status: [main]")
    text = "ContainersNotReady: containers with unready status: [main]"
    assert troubled(container(running={}), conditions=[unready]) == text
    assert troubled(container(**ended(1)), conditions=[unready]) == "Error (exit code 1)"
    assert troubled(container(running={}), conditions=[condition("Ready", False)]) == ""
    assert troubled(container(running={}), conditions=[condition("Ready", False, message="why")]) == "NotReady: why"


@pytest.mark.parametrize(("status", "disrupted"), [(True, True), (False, False), (None, False)])
def test_what_the_cluster_ends_by_itself(status: bool | None, disrupted: bool) -> None:
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
def test_what_the_kubelet_evicts_for_its_own_limits_ends_by_itself(message: str, disrupted: bool) -> None:
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
def test_whether_containers_are_still_to_be_made(statuses: list[Object], creating: bool) -> None:
    assert pod(status={"phase": "Pending", "containerStatuses": statuses}).creating is creating


def test_long_words_are_cut_and_put_on_one_line() -> None:
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
def test_hostile_statuses_are_refused_or_read(part: str, value: Any) -> None:
    try:
        found = pod(status={part: value})
    except msgspec.DecodeError:
        return
    assert found.metadata.name


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"{}", b'{"metadata": null}', b'{"metadata": {}, "status": 5}'])
def test_what_is_no_pod_is_refused(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        pod_projections.read(data)


# what a pod is of


@pytest.mark.parametrize(
    ("name", "of"),
    [("web-6b8", True), ("web-7c9", False), ("web-a6b8", False), ("6b8", True), ("web-6b8-x", False)],
)
@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet", "CloneSet"])
def test_without_an_object_in_between_the_hash_says_it(kind: str, name: str, of: bool) -> None:
    for own in ("6b8", "web-6b8") if name == "web-6b8" else ("6b8",):
        found = pod(labels={labels.CONTROLLER_REVISION_HASH: own})
        assert is_pod_of_revision(BY_KIND[kind], found, name, "any uid") is of
    assert not is_pod_of_revision(BY_KIND[kind], pod(labels={}), name, "any uid")


def test_with_one_in_between_its_uid_alone_says_it() -> None:
    found = pod(labels={labels.CONTROLLER_REVISION_HASH: "web-6b8"})
    assert is_pod_of_revision(BY_KIND["Deployment"], found, "web-6b8", "rs-uid")
    assert not is_pod_of_revision(BY_KIND["Deployment"], found, "web-5d4f8c7b9", "another")


# nodes, and what is in between


@pytest.mark.parametrize(
    ("type_", "status", "ready"), [("Ready", True, True), ("Ready", False, False), ("DiskPressure", True, False)]
)
def test_whether_a_node_is_ready(type_: str, status: bool, ready: bool) -> None:
    body = {"metadata": {"name": "node-1"}, "status": {"conditions": [condition(type_, status)]}}
    found = nodes.read(msgspec.json.encode(body))
    assert (found.metadata.name, found.ready, bool(found.ready_at)) == ("node-1", ready, type_ == "Ready")


def test_a_node_of_which_nobody_knows_is_not_ready() -> None:
    unknown = {**condition("Ready", True), "status": "Unknown"}
    assert not nodes.read(msgspec.json.encode({"metadata": {}, "status": {"conditions": [unknown]}})).ready
    assert not nodes.read(b'{"metadata": {"name": "new"}}').ready


def test_what_is_kept_of_what_is_in_between() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    body = {"metadata": {"name": "web-1", "uid": "rs", "labels": {labels.VERSION: VERSION}, "ownerReferences": [owner]}}
    found = sets.read(msgspec.json.encode(body))
    assert (found.metadata.uid, found.owner.uid, found.version) == ("rs", "d", VERSION)
