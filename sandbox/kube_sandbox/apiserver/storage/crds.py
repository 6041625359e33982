"""CustomResourceDefinitions: the resources that they add to the API, and their deletion.

The API serves a CRD as soon as it is stored, provided that no other CRD uses its names. The deletion of a CRD deletes
its custom resources first. Conditions and texts follow `k8s.io/apiextensions-apiserver`, `pkg/controller`.
"""

from collections.abc import Iterator
from typing import Any

from kube_base.times import now
from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.gotext import aggregated
from kube_sandbox.apiserver.storage.registry import (
    CRDS,
    CustomType,
    Registry,
    ResourceType,
    Subresource,
)
from kube_sandbox.apiserver.storage.store import Change, Item, Storage, Store

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_SUBRESOURCE_VERBS = ("get", "patch", "update")
_AGE = {
    "name": "Age",
    "type": "date",
    "jsonPath": ".metadata.creationTimestamp",
    "description": (
        "CreationTimestamp is a timestamp representing the server time when this object was created. It is not"
        " guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It"
        " is represented in RFC3339 form and is in UTC."
    ),
}


class CustomResources:
    """Updates the registry and the status of CRDs when stored CRDs change. The store reports every change."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry
        self._terminating: dict[Storage, str] = {}
        """The names of CRDs that wait for the deletion of their custom resources, by the resources' storage."""

    def on_change(self, storage: Storage, change: Change) -> None:
        if storage == CRDS:
            if change.deleted:
                self._on_delete(change.item)
            else:
                self._on_write(change.item)
        elif change.deleted and storage in self._terminating:
            self._finish_cleanup(storage)

    def _on_write(self, item: Item) -> None:
        crd = item.object
        name = item.key[1]
        status = crd.get("status") or {}
        if crd["metadata"].get("deletionTimestamp"):
            if CLEANUP in (crd["metadata"].get("finalizers") or ()) and storage_of(crd) not in self._terminating:
                self._start_cleanup(item)
            return
        updated = {**status, **self._new_status(crd, status)}
        if updated != status:
            copy = item.copy()
            copy["status"] = updated
            self._store.update(CRDS, item, copy)  # calls this method again, which then finds no difference
            return
        served = list(types(crd)) if _condition(updated, "Established") == "True" else []
        self._registry.serve(name, served)

    def _new_status(self, crd: Object, status: Object) -> Object:
        """The conditions, accepted names and stored versions that a CRD's status should have."""
        accepted, conflict = self._accepted_names(crd, status.get("acceptedNames") or {})
        if conflict:
            names = ("NamesAccepted", "False", *conflict)
            established = ("Established", "False", "NotAccepted", "not all names are accepted")
        else:
            names = ("NamesAccepted", "True", "NoConflicts", "no conflicts found")
            established = ("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
        conditions = list(status.get("conditions") or ())
        for condition in (names, established):
            if conflict and condition is established and _condition(status, "Established") == "True":
                continue  # a conflict does not change an established CRD
            _set_condition(conditions, *condition)
        stored = list(status.get("storedVersions") or ())
        storage = next(version["name"] for version in crd["spec"]["versions"] if version.get("storage"))
        if storage not in stored:
            stored.append(storage)
        return {"conditions": conditions, "acceptedNames": accepted, "storedVersions": stored}

    def _accepted_names(self, crd: Object, before: Object) -> tuple[Object, tuple[str, str] | None]:
        """The names that no other CRD of the group uses, and the reason and message of a conflict, if any."""
        spec, own = crd["spec"], crd["metadata"]["name"]
        names = spec["names"]
        taken_resources: set[str] = set()
        taken_kinds: set[str] = set()
        for other in self._store.list(*CRDS):
            if other["spec"]["group"] == spec["group"] and other["metadata"]["name"] != own:
                accepted = (other.get("status") or {}).get("acceptedNames") or {}
                taken_resources |= {accepted.get(field, "") for field in ("plural", "singular")}
                taken_resources |= set(accepted.get("shortNames") or ())
                taken_kinds |= {accepted.get(field, "") for field in ("kind", "listKind")}
        accepted, conflict = {"plural": "", "kind": "", **before}, None
        for field, reason, taken in (
            ("plural", "PluralConflict", taken_resources),
            ("singular", "SingularConflict", taken_resources),
            ("shortNames", "ShortNamesConflict", taken_resources),
            ("kind", "KindConflict", taken_kinds),
            ("listKind", "ListKindConflict", taken_kinds),
        ):
            wanted = names.get(field) or []
            each = [wanted] if isinstance(wanted, str) else wanted
            if used := [f'"{name}" is already in use' for name in each if name in taken]:
                conflict = reason, aggregated(used)  # the real server reports the last conflict
            else:
                accepted |= {field: names[field]} if field in names else {}
        accepted |= {"categories": names["categories"]} if "categories" in names else {}
        return accepted, conflict

    def _start_cleanup(self, item: Item) -> None:
        """Delete the custom resources. The CRD waits for those that have finalizers."""
        storage = storage_of(item.object)
        self._terminating[storage] = item.key[1]
        for resource in list(self._store.collection(storage).items.values()):
            if self._store.item(storage, *resource.key) is not resource:
                continue
            if resource.object["metadata"].get("finalizers"):
                marked = resource.copy()
                marked["metadata"].setdefault("deletionTimestamp", now())
                marked["metadata"].setdefault("deletionGracePeriodSeconds", 0)
                self._store.update(storage, resource, marked)
            else:
                self._store.delete(storage, resource)
        self._finish_cleanup(storage)

    def _finish_cleanup(self, storage: Storage) -> None:
        """Delete the CRD after its last custom resource, unless it has other finalizers."""
        if storage not in self._terminating or self._store.collection(storage).items:
            return
        name = self._terminating.pop(storage)
        item = self._store.item(CRDS, "", name)
        if item is None:
            return
        crd = item.copy()
        crd["metadata"]["finalizers"] = [found for found in crd["metadata"]["finalizers"] if found != CLEANUP]
        if crd["metadata"]["finalizers"]:
            self._registry.serve(name, [])
            self._store.update(CRDS, item, crd)
        else:
            self._store.delete(CRDS, item)

    def _on_delete(self, item: Item) -> None:
        self._registry.serve(item.key[1], [])
        self._store.drop(storage_of(item.object))


def begin_deletion(crd: Object) -> None:
    """Mark a CRD for deletion, in place. A finalizer keeps it until its custom resources are deleted."""
    metadata = crd["metadata"]
    metadata["deletionTimestamp"] = now()
    metadata["finalizers"] = [*(metadata.get("finalizers") or ()), CLEANUP]
    conditions = list((crd.get("status") or {}).get("conditions") or ())
    message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    _set_condition(conditions, "Terminating", "True", "InstanceDeletionPending", message)
    crd["status"] = {**(crd.get("status") or {}), "conditions": conditions}


def storage_of(crd: Object) -> Storage:
    return crd["spec"]["group"], crd["spec"]["names"]["plural"]


def types(crd: Object) -> Iterator[ResourceType]:
    """The resources that the served versions of a CRD add."""
    spec = crd["spec"]
    group, names = spec["group"], spec["names"]
    storage_version = next(version["name"] for version in spec["versions"] if version.get("storage"))
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        selectable = tuple(field["jsonPath"].lstrip(".") for field in version.get("selectableFields") or ())
        subresources = version.get("subresources") or {}
        warning = f"{group}/{version['name']} {names['kind']} is deprecated"
        yield ResourceType(
            group,
            version["name"],
            names["plural"],
            names["kind"],
            namespaced=spec["scope"] == "Namespaced",
            singular=names["singular"],
            list_kind=names["listKind"],
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            verbs=_VERBS,
            subresources=tuple(_subresources(names["kind"], subresources)),
            storage=(group, names["plural"]),
            fields=selectable,
            custom=CustomType(
                crd=crd["metadata"]["name"],
                schema=schema,
                preserve_unknown=bool(spec.get("preserveUnknownFields")),
                columns=tuple(version.get("additionalPrinterColumns") or [_AGE]),
                scale=subresources.get("scale"),
                deprecation_warning=(version.get("deprecationWarning") or warning) if version.get("deprecated") else "",
                storage_api_version=f"{group}/{storage_version}",
            ),
        )


def _subresources(kind: str, subresources: dict[str, Any]) -> Iterator[Subresource]:
    if subresources.get("status") is not None:
        yield Subresource("status", ("", "", kind), _SUBRESOURCE_VERBS)
    if subresources.get("scale") is not None:
        yield Subresource("scale", ("autoscaling", "v1", "Scale"), _SUBRESOURCE_VERBS)


def _condition(status: Object, type_: str) -> str:
    return next((str(found["status"]) for found in status.get("conditions") or () if found["type"] == type_), "")


def _set_condition(conditions: list[Object], type_: str, status: str, reason: str, message: str) -> None:
    """Set a condition in place. The transition time changes only with the condition's status."""
    new = {"type": type_, "status": status, "lastTransitionTime": now(), "reason": reason, "message": message}
    for index, old in enumerate(conditions):
        if old["type"] == type_:
            if old["status"] == status:
                new["lastTransitionTime"] = old["lastTransitionTime"]
            conditions[index] = new
            return
    conditions.append(new)
