"""Validation of containers' probes and lifecycle hooks (k8s.io/kubernetes, pkg/apis/core/validation)."""

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.validation import causes, texts
from kube_sandbox.apiserver.validation.causes import Causes

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")


def hooks_and_probes(container: Object, grace: int | None, path: str) -> Causes:
    """Validate the lifecycle hooks and probes of a container."""
    for hook in ("postStart", "preStop"):
        if (handler := (container.get("lifecycle") or {}).get(hook)) is not None:
            yield from _handler(handler, grace, f"{path}.lifecycle.{hook}")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if (probe := container.get(name)) is not None:
            yield from _probe(name, probe, grace, f"{path}.{name}")


def _probe(name: str, probe: Object, grace: int | None, path: str) -> Causes:
    yield from _handler(probe, grace, path)
    for field in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        yield from causes.non_negative(f"{path}.{field}", probe.get(field))
    seconds = probe.get("terminationGracePeriodSeconds")
    if seconds is not None and seconds <= 0:
        yield causes.invalid(f"{path}.terminationGracePeriodSeconds", seconds, "must be greater than 0")
    if name == "readinessProbe":
        if seconds is not None:
            why = "must not be set for readinessProbes"
            yield causes.invalid(f"{path}.terminationGracePeriodSeconds", seconds, why)
    elif probe.get("successThreshold", 1) != 1:
        yield causes.invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def _handler(handler: Object, grace: int | None, path: str) -> Causes:
    present = [name for name in _HANDLERS if name in handler]
    for name in present[1:]:
        yield causes.forbidden(f"{path}.{name}", "may not specify more than 1 handler type")
    if not present:
        yield causes.required(path, "must specify a handler type")
        return
    name, action = present[0], handler[present[0]]
    where = f"{path}.{name}"
    match name:
        case "exec":
            yield from causes.non_empty(f"{where}.command", action.get("command"))
        case "httpGet":
            yield from causes.non_empty(f"{where}.path", action.get("path"))
            yield from port(action["port"], f"{where}.port")
            yield from causes.one_of(f"{where}.scheme", action.get("scheme"), ("HTTP", "HTTPS"))
            for header in action.get("httpHeaders") or ():
                yield from causes.invalid_each(
                    f"{where}.httpHeaders", header["name"], texts.header_name(header["name"])
                )
        case "tcpSocket" | "grpc":
            yield from port(action["port"], f"{where}.port")
        case "sleep":
            if grace is not None and not 0 <= action["seconds"] <= grace:
                why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                yield causes.invalid(where, action["seconds"], why)


def port(value: int | str, path: str) -> Causes:
    """Validate the number or name of a port."""
    wrong = texts.port_name(value) if isinstance(value, str) else texts.port_number(value)
    yield from causes.invalid_each(path, value, wrong)
