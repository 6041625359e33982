"""The QoS class of pods, and the changes that a resize of a pod must not make."""

from kube_sandbox.apiserver.attributes import Object, copied


def qos_class(pod: Object) -> str:
    """BestEffort without requests and limits, Guaranteed when all requests equal the limits, else Burstable."""
    some, all_equal = False, True
    for container in [*(pod["spec"].get("initContainers") or ()), *(pod["spec"].get("containers") or ())]:
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in ("cpu", "memory"):
            some = some or name in requests or name in limits
            all_equal = all_equal and name in limits and requests.get(name, limits[name]) == limits[name]
    if not some:
        return "BestEffort"
    return "Guaranteed" if all_equal else "Burstable"


def revert_all_but_resources(obj: Object, old: Object) -> None:
    """Revert all changes except those of the containers' resources and resize policies, in place."""
    kept = {key: value for key, value in obj["metadata"].items() if key in ("resourceVersion", "uid", "managedFields")}
    unmanaged = {key: value for key, value in old["metadata"].items() if key != "managedFields"}
    obj["metadata"].clear()
    obj["metadata"].update({**unmanaged, **kept})
    obj["status"] = old["status"]
    spec, before = obj["spec"], copied(old["spec"])
    if any(len(spec.get(field) or ()) != len(before.get(field) or ()) for field in ("containers", "initContainers")):
        return  # the validation reports it
    for field in ("containers", "initContainers"):
        pairs = list(zip(spec.get(field) or (), before.get(field) or (), strict=True))
        if any(new["name"] != former["name"] for new, former in pairs):
            before[field] = spec[field]
            continue
        for new, former in pairs:
            for key in ("resources", "resizePolicy"):
                former.pop(key, None)
                former |= {key: new[key]} if key in new else {}
    obj["spec"] = before
