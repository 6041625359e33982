"""Why a pod of a release is not up, in the words of the cluster. Pure functions."""

import re
from enum import StrEnum

from altershield.workloads.pods import Fault, Trouble
from reconciler.releases.pods.health import TrackedPod


class Cause(StrEnum):
    """Reasons of the condition PodsNotUp, for words that alternate while their cause stays."""

    IMAGE = "ImageNotPulled"
    CONTAINER = "ContainerEnds"


_IMAGE_REASONS = ("ErrImagePull", "ImagePullBackOff")
_CONTAINER_REASONS = ("BackOff", "CrashLoopBackOff", "CreateContainerError", "RunContainerError", "PostStartHookError")
_UNKNOWN = "NotUp"
_NO_REASON = re.compile(r"[^A-Za-z0-9_,:]|^[^A-Za-z]+|[,:]+$")  # not allowed in the reason of a condition


def words(tracked: TrackedPod, *, node_lost: bool = False) -> Trouble | None:
    """Why the pod is not up; None if nothing says why. `node_lost`: its node is not ready or does not exist."""
    told = told_by(tracked, node_lost=node_lost)
    return told if told is not None else tracked.trouble


def told_by(tracked: TrackedPod, *, node_lost: bool) -> Trouble | None:
    """As `words`; None also if they would only say that the pod is not ready."""
    own = own_words(tracked, node_lost=node_lost)
    return own if own is not None or tracked.was_up else tracked.predecessor


def own_words(tracked: TrackedPod, *, node_lost: bool) -> Trouble | None:
    """As `told_by`, without the words of the pod that this pod replaces."""
    pod = tracked.pod
    if pod.node and node_lost:
        return Trouble(Fault.NODE_NOT_READY, f"node {pod.node} is not ready or does not exist")
    trouble = tracked.trouble if pod.ready else pod.trouble  # a pod that is ready now had this reason before
    return trouble if trouble is not None and trouble.tells else tracked.event


def cause(trouble: Trouble) -> str:
    """The reason of the condition PodsNotUp. It stays while the kubelet tries the same again and again."""
    if trouble.reason in _IMAGE_REASONS:
        return Cause.IMAGE
    if trouble.exit_code is not None or trouble.reason in _CONTAINER_REASONS:
        return Cause.CONTAINER
    return _NO_REASON.sub("", trouble.reason) or _UNKNOWN
