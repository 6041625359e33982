"""The table row of a pod, with the READY, STATUS and RESTARTS columns of `kubectl get pods`."""

from typing import Any

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.printers.humans import age

_SUCCEEDED = [
    {"type": "Completed", "status": "True", "reason": "Succeeded", "message": "The pod has completed successfully."}
]
_FAILED = [{"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}]


def cells(pod: Object) -> list[Any]:
    """The cells Name, Ready, Status, Restarts, Age, IP, Node, Nominated Node and Readiness Gates."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    ready, total, reason, restarts = _summary(pod, spec, status)
    metadata = pod["metadata"]
    ips = status.get("podIPs") or [{}]
    return [
        metadata.get("name", ""),
        f"{ready}/{total}",
        reason,
        restarts,
        age(metadata.get("creationTimestamp")),
        ips[0].get("ip") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        _gates(spec, status),
    ]


def conditions(pod: Object) -> list[Object]:
    """The row conditions of a pod. Only completed pods have one."""
    return {"Succeeded": _SUCCEEDED, "Failed": _FAILED}.get((pod.get("status") or {}).get("phase", ""), [])


def _summary(pod: Object, spec: Object, status: Object) -> tuple[int, int, str, str]:
    sidecars = {c["name"] for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"}
    total = len(spec.get("containers") or ()) + len(sidecars)
    phase = status.get("phase", "")
    reason = status.get("reason") or phase
    if any(
        c.get("type") == "PodScheduled" and c.get("reason") == "SchedulingGated" for c in status.get("conditions") or ()
    ):
        reason = "SchedulingGated"
    initial = status.get("initContainerStatuses") or []
    ready = sum(1 for c in initial if c["name"] in sidecars and c.get("started") and c.get("ready"))
    waiting = _init_reason(initial, sidecars, len(spec.get("initContainers") or ()))
    counted = initial
    if waiting:
        reason = waiting
    if not waiting or _is_true(status, "Initialized"):
        running = status.get("containerStatuses") or []
        counted = [c for c in initial if c["name"] in sidecars] + running
        ready += sum(1 for c in running if c.get("ready") and "running" in _state(c))
        reason = _reason(reason, running, status)
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            reason = "Unknown"
        elif phase not in ("Failed", "Succeeded"):
            reason = "Terminating"
    return ready, total, reason, _restarts(counted)


def _state(container: Object) -> Object:
    state: Object = container.get("state") or {}
    return state


def _is_true(status: Object, type_: str) -> bool:
    return any(c.get("type") == type_ and c.get("status") == "True" for c in status.get("conditions") or ())


def _init_reason(initial: list[Object], sidecars: set[str], total: int) -> str:
    """The status of a pod whose init containers have not finished; empty when they have."""
    for index, container in enumerate(initial):
        state = _state(container)
        ended, waits = state.get("terminated"), state.get("waiting") or {}
        if ended is not None and ended.get("exitCode", 0) == 0:
            continue
        if container["name"] in sidecars and container.get("started"):
            continue
        if ended is not None:
            return f"Init:{_termination_reason(ended)}"
        if waits.get("reason") and waits["reason"] != "PodInitializing":
            return f"Init:{waits['reason']}"
        return f"Init:{index}/{total}"
    return ""


def _termination_reason(ended: Object) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _reason(reason: str, containers: list[Object], status: Object) -> str:
    """The status of a pod: the reason of the first waiting or terminated container. It is not `Completed` while other
    containers run or when one failed."""
    running, failed = False, ""
    for container in reversed(containers):
        state = _state(container)
        ended, waits = state.get("terminated"), state.get("waiting") or {}
        if waits.get("reason"):
            reason = waits["reason"]
        elif ended is not None:
            reason = _termination_reason(ended)
            if ended.get("exitCode", 0) != 0:
                failed = reason
        elif container.get("ready") and "running" in state:
            running = True
    if reason == "Completed":
        if running and _is_true(status, "Ready"):
            return "Running"
        if failed:
            return failed
        if running:
            return "NotReady"
    return reason


def _restarts(containers: list[Object]) -> str:
    count = sum(c.get("restartCount", 0) for c in containers)
    ended = [((c.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or "" for c in containers]
    last = max(ended, default="")
    return f"{count} ({age(last)} ago)" if count and last else str(count)


def _gates(spec: Object, status: Object) -> str:
    gates = spec.get("readinessGates") or []
    if not gates:
        return "<none>"
    return f"{sum(1 for gate in gates if _is_true(status, gate['conditionType']))}/{len(gates)}"
