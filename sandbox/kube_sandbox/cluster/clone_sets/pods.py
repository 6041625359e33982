"""The pods of a CloneSet, and their update in place. Pure functions.

The rules are those of OpenKruise (pkg/controller/cloneset, pkg/util/inplaceupdate).
"""

import json
from typing import NamedTuple

from kube_base.resources import CLONE_SETS
from kube_base.times import rfc3339
from kube_sandbox.cluster import availability
from kube_sandbox.cluster.history import REVISION_LABEL
from kube_sandbox.cluster.kinds import Object, Pod, find
from kube_sandbox.cluster.kubelet import images
from kube_sandbox.cluster.pod_control import pod_body
from kube_sandbox.cluster.templates import HASH_LABEL
from kube_sandbox.cluster.workload_kinds import CloneSet

INSTANCE_LABEL = "apps.kruise.io/cloneset-instance-id"
SPECIFIED_DELETE = "apps.kruise.io/specified-delete"
LIFECYCLE_LABEL = "lifecycle.apps.kruise.io/state"
LIFECYCLE_TIME = "lifecycle.apps.kruise.io/timestamp"
UPDATE_STATE = "apps.kruise.io/inplace-update-state"
UPDATE_READY = "InPlaceUpdateReady"

PREPARING, NORMAL, UPDATING = "PreparingNormal", "Normal", "Updating"


class InPlaceUpdate(NamedTuple):
    """The changes that an update in place makes in a pod."""

    images: dict[str, str]
    """The new images by container."""
    labels: dict[str, str | None]
    """None removes a label."""
    annotations: dict[str, str | None]


def short(revision: str) -> str:
    """The hash at the end of a revision name."""
    return revision.rpartition("-")[2]


def revision(pod: Pod) -> str:
    return pod.metadata.labels.get(REVISION_LABEL, "")


def is_of(pod: Pod, revision_name: str) -> bool:
    return short(revision(pod)) == short(revision_name)


def is_ready(pod: Pod) -> bool:
    """Whether the pod runs, is ready and is not being updated in place."""
    return is_available(pod, 0, float("inf"))


def is_available(pod: Pod, min_ready_seconds: int, now: float) -> bool:
    state = pod.metadata.labels.get(LIFECYCLE_LABEL, "")
    return state in ("", NORMAL) and is_updated_and_ready(pod, min_ready_seconds, now)


def is_updated_and_ready(pod: Pod, min_ready_seconds: int, now: float) -> bool:
    gate = find(pod.status.conditions, UPDATE_READY)
    return (
        pod.status.phase == "Running"
        and availability.is_available(pod, min_ready_seconds, now)
        and (gate is None or gate.status == "True")
    )


def is_to_delete(clone_set: CloneSet, pod: Pod) -> bool:
    """Whether this pod is marked for deletion: by a user, or by an update with ReCreate."""
    return (
        pod.metadata.labels.get(SPECIFIED_DELETE) == "true"
        or pod.metadata.name in clone_set.spec.scale_strategy.pods_to_delete
    )


def body(clone_set: CloneSet, template: Object, revision_name: str, instance: str) -> Object:
    labels = {
        REVISION_LABEL: revision_name,
        HASH_LABEL: short(revision_name),
        INSTANCE_LABEL: instance,
        LIFECYCLE_LABEL: PREPARING,
    }
    name = f"{clone_set.metadata.name}-{instance}"
    pod = pod_body(template, CLONE_SETS, clone_set.metadata, labels, name=name)
    gates = list(pod["spec"].get("readinessGates") or ())
    gate = {"conditionType": UPDATE_READY}
    pod["spec"]["readinessGates"] = [*gates, *([] if gate in gates else [gate])]
    return pod


def in_place_update(old: Object | None, new: Object) -> InPlaceUpdate | None:
    """The changes that turn pods of template `old` into pods of `new` in place. None if that is impossible, because
    `old` is unknown or more than images, labels and annotations changed."""
    if old is None or _without_images(old) != _without_images(new):
        return None
    before, after = _images(old), _images(new)
    return InPlaceUpdate(
        {name: image for name, image in after.items() if before.get(name) != image},
        _changes(old, new, "labels"),
        _changes(old, new, "annotations"),
    )


def start_patch(pod: Pod, now: float) -> Object:
    """A status patch that makes the pod unready before it changes."""
    gate = {
        "type": UPDATE_READY,
        "status": "False",
        "reason": "StartInPlaceUpdate",
        "lastTransitionTime": rfc3339(now),
    }
    ready = {
        "type": "Ready",
        "status": "False",
        "reason": "ReadinessGatesNotReady",
        "message": f'the status of pod readiness gate "{UPDATE_READY}" is not "True", but False',
        "lastTransitionTime": rfc3339(now),
    }
    conditions = [gate, ready] if pod.ready_since is not None else [gate]
    return {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": conditions}}


def update_patch(pod: Pod, change: InPlaceUpdate, revision_name: str, now: float) -> Object:
    """A strategic merge patch with the changes, and the state of the update as labels and annotations."""
    ids = {str(status["name"]): status.get("imageID", "") for status in pod.status.container_statuses}
    state = {
        "revision": revision_name,
        "updateTimestamp": rfc3339(now),
        "lastContainerStatuses": {name: {"imageID": ids.get(name, "")} for name in change.images},
        "updateImages": bool(change.images),
    }
    labels = {REVISION_LABEL: revision_name, HASH_LABEL: short(revision_name), LIFECYCLE_LABEL: UPDATING}
    annotations = {UPDATE_STATE: json.dumps(state, separators=(",", ":")), LIFECYCLE_TIME: rfc3339(now)}
    return {
        "metadata": {
            "uid": pod.metadata.uid,
            "labels": {**change.labels, **labels},
            "annotations": {**change.annotations, **annotations},
        },
        "spec": {"containers": [{"name": name, "image": image} for name, image in change.images.items()]},
    }


def has_new_images(pod: Pod) -> bool:
    """Whether the containers that an update in place changed run their new images."""
    text = pod.metadata.annotations.get(UPDATE_STATE)
    if text is None:
        return True
    try:
        before = json.loads(text).get("lastContainerStatuses") or {}
    except ValueError:
        return True
    statuses = {str(status["name"]): status for status in pod.status.container_statuses}
    wanted = {one.name: images.full_reference(one.image) for one in pod.spec.containers}
    return all(
        name in statuses
        and (statuses[name].get("imageID", "") != last.get("imageID") or statuses[name]["image"] == wanted.get(name))
        for name, last in before.items()
    )


def finish_patch(pod: Pod, now: float) -> Object | None:
    """A status patch that sets the readiness gate of an updated pod; None if the gate is set or the update is not
    done."""
    gate = find(pod.status.conditions, UPDATE_READY)
    has_gate = any(one.condition_type == UPDATE_READY for one in pod.spec.readiness_gates)
    if not has_gate or (gate is not None and gate.status == "True") or not has_new_images(pod):
        return None
    condition = {"type": UPDATE_READY, "status": "True", "reason": None, "lastTransitionTime": rfc3339(now)}
    return {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}


def lifecycle_patch(pod: Pod, now: float) -> Object | None:
    """A patch to the next state of the lifecycle label; None if it stays."""
    state = pod.metadata.labels.get(LIFECYCLE_LABEL, "")
    gate = find(pod.status.conditions, UPDATE_READY)
    begun = state == PREPARING and bool(pod.spec.node_name)
    updated = state == UPDATING and has_new_images(pod) and (gate is None or gate.status == "True")
    if not begun and not updated:
        return None
    return {
        "metadata": {
            "uid": pod.metadata.uid,
            "labels": {LIFECYCLE_LABEL: NORMAL},
            "annotations": {LIFECYCLE_TIME: rfc3339(now)},
        }
    }


def _images(template: Object) -> dict[str, str]:
    return {str(one["name"]): str(one.get("image", "")) for one in template["spec"].get("containers") or ()}


def _without_images(template: Object) -> Object:
    spec = template["spec"]
    bare = [{key: value for key, value in one.items() if key != "image"} for one in spec.get("containers") or ()]
    return {**spec, "containers": bare}


def _changes(old: Object, new: Object, field: str) -> dict[str, str | None]:
    before = (old.get("metadata") or {}).get(field) or {}
    after = (new.get("metadata") or {}).get(field) or {}
    gone: dict[str, str | None] = dict.fromkeys(before.keys() - after.keys())
    return {**gone, **{key: value for key, value in after.items() if before.get(key) != value}}
