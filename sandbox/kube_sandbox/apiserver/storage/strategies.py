"""The fields that the server sets in a written object, and the changes of a write that it reverts.

The rules are those of `PrepareForCreate` and `PrepareForUpdate` in kube-apiserver's registries.
"""

import uuid

from kube_base.times import now
from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.storage import registry
from kube_sandbox.apiserver.storage.pods import qos_class, revert_all_but_resources
from kube_sandbox.apiserver.storage.registry import ResourceType

_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_SYSTEM_FIELDS = ("creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")

# The initial status per type. Go always writes these fields, because they have no `omitempty`.
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


def drop_system_fields(metadata: Object) -> None:
    """Remove the fields that only the server sets in a new object, in place."""
    for field in _SYSTEM_FIELDS:
        metadata.pop(field, None)


def drop_empty_metadata(metadata: Object) -> None:
    """Remove empty fields in place, like Go's `omitempty`."""
    for field in [
        field for field, value in metadata.items() if value in (None, "", {}, []) and field != "managedFields"
    ]:
        del metadata[field]


def dedup_owners(metadata: Object) -> str:
    """Remove duplicate owner references in place. Returns the warning for the client; empty without duplicates."""
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
    """Set the UID, creation time, first generation and initial status of a new object, in place."""
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
            _set_job_selector(obj)
        case "apiextensions.k8s.io", "customresourcedefinitions":
            stored = [version["name"] for version in obj["spec"].get("versions") or () if version.get("storage")]
            obj["status"] = {
                "conditions": None,
                "acceptedNames": {"plural": "", "kind": ""},
                "storedVersions": stored or None,
            }


def prepare_update(resource: ResourceType, obj: Object, old: Object, subresource: str) -> None:
    """Revert the changes from `old` to `obj` that this request must not make, and set the generation, in place."""
    metadata, before = obj["metadata"], old["metadata"]
    _restore(metadata, before, "generation")
    if subresource == "status":
        _restore_all_but_status(resource, obj, old)
    elif subresource == "resize":
        revert_all_but_resources(obj, old)
    elif resource.has_status:
        _restore(obj, old, "status")
    if resource.storage == registry.NAMESPACES and subresource != "finalize":
        obj.setdefault("spec", {})
        _restore(obj["spec"], old.get("spec") or {}, "finalizers")
    if resource.storage == ("", "secrets") and not obj.get("type"):
        _restore(obj, old, "type")
    if resource.storage == ("apps", "daemonsets") and subresource != "status":
        _set_template_generation(obj, old)
    if resource.storage == ("apps", "statefulsets"):
        _drop_max_unavailable(obj, old)
    if not metadata.get("uid"):
        metadata["uid"] = before["uid"]
    metadata["creationTimestamp"] = before["creationTimestamp"]
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if field in before and not (field == "deletionGracePeriodSeconds" and field in metadata):
            metadata[field] = before[field]
    counted = subresource != "status" and (resource.custom is not None or registry.GENERATION in resource.flags)
    if counted and _increments_generation(resource, obj, old):
        metadata["generation"] = before.get("generation", 0) + 1


def _set_template_generation(obj: Object, old: Object) -> None:
    """Set the annotation that counts the changes of a DaemonSet's template. Changes by clients are ignored."""
    before = str((old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION))
    count = int(before) if before.isascii() and before.isdigit() else 0
    count += obj["spec"]["template"] != old["spec"]["template"]
    annotations = obj["metadata"].get("annotations") or {}
    obj["metadata"]["annotations"] = {**annotations, _TEMPLATE_GENERATION: str(count)}


def _drop_max_unavailable(obj: Object, old: Object) -> None:
    """Remove a new maxUnavailable, in place: the feature gate MaxUnavailableStatefulSet is off by default in 1.36."""

    def rolling(one: Object) -> Object:
        return ((one.get("spec") or {}).get("updateStrategy") or {}).get("rollingUpdate") or {}

    if "maxUnavailable" not in rolling(old):
        rolling(obj).pop("maxUnavailable", None)


def _restore(obj: Object, old: Object, field: str) -> None:
    if field in old:
        obj[field] = old[field]
    else:
        obj.pop(field, None)


def _restore_all_but_status(resource: ResourceType, obj: Object, old: Object) -> None:
    """Revert all changes of a status write except status, and except labels and annotations of built-in kinds."""
    if resource.custom is not None:
        managed = obj["metadata"].get("managedFields")
        kept = {key: obj["metadata"][key] for key in ("resourceVersion", "uid") if key in obj["metadata"]}
        obj["metadata"] = {**old["metadata"], **kept, "managedFields": managed}
    elif resource.plural == "deployments":
        _restore(obj["metadata"], old["metadata"], "labels")
    elif resource.plural == "pods":
        _restore(obj["metadata"], old["metadata"], "ownerReferences")
        obj["metadata"].pop("deletionTimestamp", None)
        if qos := (old.get("status") or {}).get("qosClass"):
            obj.setdefault("status", {}).setdefault("qosClass", qos)
    for field in [field for field in obj if field not in ("apiVersion", "kind", "metadata", "status")]:
        _restore(obj, old, field)
    for field in [field for field in old if field not in obj and field != "status"]:
        obj[field] = old[field]
    if resource.custom is None:
        obj["status"] = {**_EMPTY_STATUS.get(resource.plural, {}), **(obj.get("status") or {})}


def _increments_generation(resource: ResourceType, obj: Object, old: Object) -> bool:
    """Whether a field outside metadata and status changed; for a Deployment also an annotation."""
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


def _set_job_selector(job: Object) -> None:
    """Label a Job's pods with its UID and select them by this label, unless the user set a selector."""
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
