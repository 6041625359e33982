"""Validation of UPDATE of `pods/resize` (`ValidatePodResize` in pkg/apis/core/validation). Other changes than those of
resources are reverted before."""

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.storage.pods import qos_class
from kube_sandbox.apiserver.validation import causes
from kube_sandbox.apiserver.validation.causes import Causes
from kube_sandbox.apiserver.validation.pod import pod_spec

_MIRROR = "kubernetes.io/config.mirror"
_RESIZABLE = ("cpu", "memory")


def pod_resize(obj: Object, old: Object) -> Causes:
    """Validate the new resources of a pod's containers."""
    if _MIRROR in (old["metadata"].get("annotations") or {}):
        yield causes.forbidden("[]", "static pods cannot be resized")
        return
    spec, before = obj["spec"], old["spec"]
    yield from pod_spec(spec, "spec")
    if qos_class(obj) != (old["status"].get("qosClass") or qos_class(old)):
        qos = (obj.get("status") or {}).get("qosClass", "")
        yield causes.invalid("spec", qos, "Pod QOS Class may not change as a result of resizing")
    if not _is_supported(old):
        yield causes.forbidden("spec", "Pod running on node without support for resize")
    if wrong := list(_order(spec, before)):
        yield from wrong
        return
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield from _removed(container, before[field][index], f"spec.{field}[{index}].resources")
    for container, former in zip(spec["containers"], before["containers"], strict=True):
        if _without_resizable(container, former) != former:
            yield causes.forbidden("spec", "only cpu and memory resources are mutable")
    for index, container in enumerate(spec.get("initContainers") or ()):
        yield from _init_container(container, before["initContainers"][index], f"spec.initContainers[{index}]")


def _init_container(container: Object, former: Object, path: str) -> Causes:
    if _without_resizable(container, former) != former:
        why = "only cpu and memory resources for init or sidecar containers are mutable"
        yield causes.forbidden(path, why)
    if container != former and container.get("restartPolicy") != "Always":
        for policy in container.get("resizePolicy") or ():
            if policy["restartPolicy"] == "RestartContainer":
                why = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
                yield causes.forbidden(path, why)


def _is_supported(pod: Object) -> bool:
    """Whether the kubelet resizes containers: it then reports the resources of running ones."""
    for status in pod["status"].get("containerStatuses") or ():
        if "running" in (status.get("state") or {}):
            return "resources" in status
    return True


def _order(spec: Object, before: Object) -> Causes:
    for field in ("containers", "initContainers"):
        new, former = spec.get(field) or (), before.get(field) or ()
        if len(new) != len(former):
            yield causes.forbidden(f"spec.{field}", f"{field} may not be added or removed on resize")
            continue
        for index, (one, other) in enumerate(zip(new, former, strict=True)):
            if one["name"] != other["name"]:
                why = f"{field} may not be renamed or reordered on resize"
                yield causes.forbidden(f"spec.{field}[{index}].name", why)


def _removed(container: Object, former: Object, path: str) -> Causes:
    for field in ("requests", "limits"):
        present = (container.get("resources") or {}).get(field) or {}
        if any(name not in present for name in (former.get("resources") or {}).get(field) or {}):
            yield causes.forbidden(f"{path}.{field}", f"resource {field} cannot be removed")


def _without_resizable(container: Object, former: Object) -> Object:
    """The container with the cpu and memory of the former one."""
    resources: Object = {}
    for field in ("limits", "requests"):
        new = (container.get("resources") or {}).get(field) or {}
        old = (former.get("resources") or {}).get(field) or {}
        values = {name: value for name, value in new.items() if name not in _RESIZABLE}
        values |= {name: value for name, value in old.items() if name in _RESIZABLE}
        if values:
            resources[field] = values
    result = {**container, "resources": resources}
    if not resources and "resources" not in former:
        del result["resources"]
    return result
