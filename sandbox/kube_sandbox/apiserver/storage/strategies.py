"""What the server itself sets on an object that is written, and what of a write it ignores.

From the `PrepareForCreate` and `PrepareForUpdate` of kube-apiserver's registries.
"""

import uuid

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.storage import registry
from kube_sandbox.apiserver.storage.registry import ResourceType
from kube_sandbox.times import now

_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_SYSTEM_FIELDS = ("creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")

# What a status holds even when nothing was reported yet: Go writes these members always.
_EMPTY_STATUS: dict[str, Object] = {
    "replicasets": {"replicas": 0},
    "replicationcontrollers": {"replicas": 0},
    "statefulsets": {"replicas": 0, "availableReplicas": 0},
    "daemonsets": {"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0},
    "poddisruptionbudgets": {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
    "horizontalpodautoscalers": {"desiredReplicas": 0, "currentMetrics": None},
    "services": {"loadBalancer": {}},
    "ingresses": {"loadBalancer": {}},
    "namespaces": {"phase": "Active"},
    "persistentvolumes": {"phase": "Pending"},
    "persistentvolumeclaims": {"phase": "Pending"},
    "pods": {"phase": "Pending"},
}


def wipe_system_fields(metadata: Object) -> None:
    """A client does not say who an object is or when it came."""
    for field in _SYSTEM_FIELDS:
        metadata.pop(field, None)


def tidy_metadata(metadata: Object) -> None:
    """Empty members are left out, as Go does."""
    for field in [
        field for field, value in metadata.items() if value in (None, "", {}, []) and field != "managedFields"
    ]:
        del metadata[field]


def dedup_owners(metadata: Object) -> str:
    """Each owner once. A warning where there were more, else empty."""
    owners = metadata.get("ownerReferences") or []
    seen: list[Object] = []
    repeated: list[str] = []
    for owner in owners:
        if owner in seen:
            repeated.append(str(owner.get("uid")))
        else:
            seen.append(owner)
    if not repeated:
        return ""
    metadata["ownerReferences"] = seen
    return (
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may"
        " reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
        + ", ".join(repeated)
    )


def prepare_create(resource: ResourceType, obj: Object) -> None:
    """Identity, first generation and first status of a new object."""
    metadata = obj["metadata"]
    metadata["uid"] = str(uuid.uuid4())
    metadata["creationTimestamp"] = now()
    if resource.custom is not None or registry.GENERATION in resource.flags:
        metadata["generation"] = 1
    if resource.has_status and registry.KEEPS_STATUS_ON_CREATE not in resource.flags:
        obj.pop("status", None)
        if resource.custom is None:
            obj["status"] = dict(_EMPTY_STATUS.get(resource.plural, {}))
    match resource.storage:
        case "", "namespaces":
            finalizers = obj.setdefault("spec", {}).setdefault("finalizers", [])
            if "kubernetes" not in finalizers:
                finalizers.append("kubernetes")
            metadata.setdefault("labels", {})["kubernetes.io/metadata.name"] = metadata.get("name", "")
        case "", "pods":
            obj["status"]["qosClass"] = qos_class(obj)
        case "apps", "daemonsets":
            metadata["annotations"] = {_TEMPLATE_GENERATION: "1"} | (metadata.get("annotations") or {})
        case "apps", "statefulsets":
            _drop_max_unavailable(obj, {})
        case "batch", "jobs":
            _select_own_pods(obj)
        case "apiextensions.k8s.io", "customresourcedefinitions":
            stored = [version["name"] for version in obj["spec"].get("versions") or () if version.get("storage")]
            obj["status"] = {
                "conditions": None,
                "acceptedNames": {"plural": "", "kind": ""},
                "storedVersions": stored or None,
            }


def prepare_update(resource: ResourceType, obj: Object, old: Object, subresource: str) -> None:
    """What the write of `old` to `obj` may not touch is put back; the generation counts what matters."""
    metadata, before = obj["metadata"], old["metadata"]
    _put_back(metadata, before, "generation")
    if subresource == "status":
        _only_status(resource, obj, old)
    elif resource.has_status:
        _put_back(obj, old, "status")
    if resource.storage == registry.NAMESPACES and subresource != "finalize":
        obj.setdefault("spec", {})
        _put_back(obj["spec"], old.get("spec") or {}, "finalizers")
    if resource.storage == ("", "secrets") and not obj.get("type"):
        _put_back(obj, old, "type")
    if resource.storage == ("apps", "daemonsets") and subresource != "status":
        _count_templates(obj, old)
    if resource.storage == ("apps", "statefulsets"):
        _drop_max_unavailable(obj, old)
    if not metadata.get("uid"):
        metadata["uid"] = before["uid"]
    metadata["creationTimestamp"] = before["creationTimestamp"]
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if field in before and not (field == "deletionGracePeriodSeconds" and field in metadata):
            metadata[field] = before[field]
    counted = subresource != "status" and (resource.custom is not None or registry.GENERATION in resource.flags)
    if counted and _desires_more(resource, obj, old):
        metadata["generation"] = before.get("generation", 0) + 1


def _count_templates(obj: Object, old: Object) -> None:
    """A DaemonSet's annotation says how often its template changed; nobody else sets it."""
    before = str((old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION))
    count = int(before) if before.isascii() and before.isdigit() else 0
    count += obj["spec"]["template"] != old["spec"]["template"]
    annotations = obj["metadata"].get("annotations") or {}
    obj["metadata"]["annotations"] = {**annotations, _TEMPLATE_GENERATION: str(count)}


def _drop_max_unavailable(obj: Object, old: Object) -> None:
    """The feature gate MaxUnavailableStatefulSet is off by default in 1.36."""

    def rolling(one: Object) -> Object:
        return ((one.get("spec") or {}).get("updateStrategy") or {}).get("rollingUpdate") or {}

    if "maxUnavailable" not in rolling(old):
        rolling(obj).pop("maxUnavailable", None)


def _put_back(obj: Object, old: Object, field: str) -> None:
    if field in old:
        obj[field] = old[field]
    else:
        obj.pop(field, None)


def _only_status(resource: ResourceType, obj: Object, old: Object) -> None:
    """A write of status changes nothing but status, and for built-in kinds labels and annotations."""
    if resource.custom is not None:
        managed = obj["metadata"].get("managedFields")
        kept = {key: obj["metadata"][key] for key in ("resourceVersion", "uid") if key in obj["metadata"]}
        obj["metadata"] = {**old["metadata"], **kept, "managedFields": managed}
    elif resource.plural == "deployments":
        _put_back(obj["metadata"], old["metadata"], "labels")
    elif resource.plural == "pods":
        _put_back(obj["metadata"], old["metadata"], "ownerReferences")
        obj["metadata"].pop("deletionTimestamp", None)
        if qos := (old.get("status") or {}).get("qosClass"):
            obj.setdefault("status", {}).setdefault("qosClass", qos)
    for field in [field for field in obj if field not in ("apiVersion", "kind", "metadata", "status")]:
        _put_back(obj, old, field)
    for field in [field for field in old if field not in obj and field != "status"]:
        obj[field] = old[field]
    if resource.custom is None:
        obj["status"] = {**_EMPTY_STATUS.get(resource.plural, {}), **(obj.get("status") or {})}


def _desires_more(resource: ResourceType, obj: Object, old: Object) -> bool:
    """Whether anything changed but metadata and status."""
    outside = (
        ("apiVersion", "kind", "metadata", "status") if resource.has_status else ("apiVersion", "kind", "metadata")
    )
    if {key: value for key, value in obj.items() if key not in outside} != {
        key: value for key, value in old.items() if key not in outside
    }:
        return True
    if resource.plural == "deployments" and resource.group == "apps":
        return (obj["metadata"].get("annotations") or {}) != (old["metadata"].get("annotations") or {})
    return False


def qos_class(pod: Object) -> str:
    """BestEffort without any requests or limits, Guaranteed where all are equal, else Burstable."""
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


def _select_own_pods(job: Object) -> None:
    """A job's pods carry its uid, unless the user chose a selector."""
    spec, metadata = job["spec"], job["metadata"]
    if spec.get("manualSelector") or not metadata.get("name"):
        return
    labels = {
        "batch.kubernetes.io/controller-uid": metadata["uid"],
        "batch.kubernetes.io/job-name": metadata["name"],
        "controller-uid": metadata["uid"],
        "job-name": metadata["name"],
    }
    template = spec["template"].setdefault("metadata", {})
    template["labels"] = (template.get("labels") or {}) | labels
    key = "batch.kubernetes.io/controller-uid"
    spec.setdefault("selector", {"matchLabels": {key: metadata["uid"]}})
