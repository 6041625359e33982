"""Releases of StatefulSets and DaemonSets with `kubectl rollout`."""

import pytest

from conformance.manifests import deployment, text
from support.kubectl import Json, Kubectl
from support.polling import eventually


def workload(kind: str, name: str, image: str = "busybox", **spec: object) -> Json:
    body = deployment(name, image=image, **spec)
    body["kind"] = kind
    if kind == "DaemonSet":
        del body["spec"]["replicas"]
    return body


def start(space: Kubectl, kind: str, name: str, **spec: object) -> str:
    space("apply", "-f", "-", stdin=text(workload(kind, name, **spec)))
    status(space, f"{kind}/{name}")
    return f"{kind}/{name}"


def status(space: Kubectl, which: str) -> str:
    return space("rollout", "status", which)


def image(space: Kubectl, which: str) -> str:
    return space("get", which, "-o", "jsonpath={.spec.template.spec.containers[0].image}")


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_rollout_history_undo_and_restart_work(space: Kubectl, kind: str) -> None:
    which = start(space, kind, f"story-{kind.lower()}")
    space("set", "image", which, "main=busybox:2")
    status(space, which)
    history = space("rollout", "history", which).splitlines()
    assert [line.split()[0] for line in history[2:] if line] == ["1", "2"]
    assert "busybox:2" in space("rollout", "history", which, "--revision=2")
    space("rollout", "undo", which)
    status(space, which)
    assert image(space, which) == "busybox"
    history = space("rollout", "history", which).splitlines()
    assert [line.split()[0] for line in history[2:] if line] == ["2", "3"]
    names = ("get", "pods", "-l", f"app=story-{kind.lower()}", "-o", "jsonpath={.items[*].metadata.uid}")
    before = set(space(*names).split())
    space("rollout", "restart", which)
    status(space, which)
    eventually(lambda: not before & set(space(*names).split()), "new pods")


def test_partition_limits_the_update_of_a_stateful_set(space: Kubectl) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    which = start(space, "StatefulSet", "parted", replicas=2, updateStrategy=strategy)
    space("set", "image", which, "main=busybox:2")
    assert "partitioned roll out complete: 1 new pods have been updated" in status(space, which)
    shown = space("get", "pods", "-l", "app=parted", "-o", "jsonpath={.items[*].spec.containers[0].image}")
    assert shown == "busybox busybox:2"
    space("patch", which, "-p", '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}')
    status(space, which)
    found = space.json("statefulset", "parted")["status"]
    assert found["currentRevision"] == found["updateRevision"]


def test_pods_have_labels_for_revision_and_ordinal(space: Kubectl) -> None:
    start(space, "StatefulSet", "placed", replicas=1)
    start(space, "DaemonSet", "agent")
    labels = space.labels("pod", "placed-0")
    revision = space.json("statefulset", "placed")["status"]["updateRevision"]
    assert labels["apps.kubernetes.io/pod-index"] == "0"
    assert labels["statefulset.kubernetes.io/pod-name"] == "placed-0"
    assert labels["controller-revision-hash"] == revision
    assert space.labels("controllerrevision", revision)["controller.kubernetes.io/hash"] == revision.partition("-")[2]
    agent = space.json("pods", "-l", "app=agent")["items"][0]
    hash_ = agent["metadata"]["labels"]["controller-revision-hash"]
    assert agent["metadata"]["labels"]["pod-template-generation"] == "1"
    assert space.labels("controllerrevision", f"agent-{hash_}")["controller-revision-hash"] == hash_


def test_foreground_delete_of_a_stateful_set_deletes_pods_and_revisions(space: Kubectl) -> None:
    start(space, "StatefulSet", "leaving", replicas=2)
    space("delete", "statefulset", "leaving", "--cascade=foreground")
    assert not space("get", "pods,controllerrevisions", "-l", "app=leaving", "-o", "name")
