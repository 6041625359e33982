"""What a pod's object says about it."""

from altershield.api import labels
from altershield.api.kinds import PodInfo
from altershield.api.meta import unix
from altershield.api.views import Pod

_CRASH_LOOP = "CrashLoopBackOff"
_CLOCK_SKEW = 300  # seconds between our clock and the API server's; tokens bear no more either
_MAX_TROUBLE = 300  # characters of a kubelet's message; some quote whole registries' answers


def exists(pod: Pod) -> bool:
    """Whether the pod counts: not terminating, and not ended (as evicted pods have)."""
    return pod.metadata.deletion_timestamp is None and pod.status.phase not in ("Succeeded", "Failed")


def ready(pod: Pod) -> bool:
    return pod.status.phase == "Running" and any(
        condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions
    )


def finished(pod: Pod) -> bool:
    """Whether it was seen to come up. A mark from before the pod is none: it came with a template into which
    somebody copied the labels of another pod."""
    marked = labels.OPERATE_FINISHED in pod.metadata.labels
    return marked and finished_at(pod) >= unix(pod.metadata.creation_timestamp) - _CLOCK_SKEW


def finished_at(pod: Pod) -> int:
    """The Unix second at which it came up; 0 where the label holds something else."""
    value = pod.metadata.labels.get(labels.OPERATE_FINISHED, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) <= 12 else 0


def crash_looping(pod: Pod) -> bool:
    """Whether a container waits to be started again after crashes."""
    return any(reason == _CRASH_LOOP for reason, _ in _waiting(pod))


def trouble(pod: Pod) -> str:
    """Why the pod is not up, in the kubelet's or the scheduler's words; empty where nobody says."""
    for reason, message in _waiting(pod):
        if reason not in ("ContainerCreating", "PodInitializing"):
            return clip(f"{reason}: {message}" if message else reason)
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return clip(f"{condition.reason or 'Unschedulable'}: {condition.message}")
    for condition in pod.status.conditions:
        if condition.type == "Ready" and condition.status == "False" and condition.reason:
            return clip(f"{condition.reason}: {condition.message}" if condition.message else condition.reason)
    return ""


def info(pod: Pod, workload: str) -> PodInfo:
    """The pod as our kinds list it."""
    return PodInfo(
        pod=pod.metadata.name,
        app=workload,
        host_name=pod.metadata.name,
        namespace=pod.metadata.namespace,
        work_space="default",
        ip=pod.status.pod_ip,
    )


def _waiting(pod: Pod) -> list[tuple[str, str]]:
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return [
        (status.state.waiting.reason, status.state.waiting.message)
        for status in statuses
        if status.state.waiting is not None
    ]


def clip(text: str) -> str:
    """As one line of bounded length."""
    text = " ".join(text.split())
    return text if len(text) <= _MAX_TROUBLE else f"{text[: _MAX_TROUBLE - 1]}…"
