"""Pods, workloads and budgets for the tests of decisions about budgets."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from altershield.api.budgets import PodUnavailableBudget, PodUnavailableBudgetStatus, TargetRef
from altershield.budgets import pods
from altershield.budgets.index import PodIndex
from altershield.budgets.pods import Pod
from altershield.budgets.scaled import Scaled
from altershield.workloads.meta import NO_OWNER, Owner, packed
from altershield.workloads.workload import WireSelector
from kube_base.resources import DEPLOYMENTS, REPLICA_SETS
from kube_base.times import rfc3339

NAMESPACE = "shop"
NOW = 1_800_000_000.0
LABELS = {"app": "web"}
SET = Owner("apps/v1", "ReplicaSet", "web-5d9", "set-web")
DEPLOYMENT = Owner("apps/v1", "Deployment", "web", "deployment-web")


def uid(number: int) -> str:
    return f"00000000-0000-0000-0000-{number:012}"


def wire(name: str = "web-1", **fields: Any) -> dict[str, Any]:
    """A ready pod as the API server sends it. Fields: uid, version, labels, annotations, owner (None: bare), phase,
    reason (of the phase), ready, deleting, containers (name → id), conditions (type → status), disruption (the reason
    of the condition DisruptionTarget), at (the time of the conditions), spec."""
    owner = fields.get("owner", SET)
    references = [{"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid,
                   "controller": True}] if owner else []  # fmt: skip
    conditions = {"Ready": "True" if fields.get("ready", True) else "False", **fields.get("conditions", {})}
    if "disruption" in fields:
        conditions["DisruptionTarget"] = "True"
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": NAMESPACE,
        "uid": fields.get("uid", f"uid-{name}"),
        "resourceVersion": str(fields.get("version", 1)),
        "labels": fields.get("labels", LABELS),
        "annotations": fields.get("annotations"),
        "ownerReferences": references,
    }
    if fields.get("deleting"):
        metadata["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    containers = fields.get("containers", {"web": "0123456789abcdef"})
    status = {
        "phase": fields.get("phase", "Running"),
        "observedGeneration": fields.get("observed", 0),
        "reason": fields.get("reason", ""),
        "conditions": [
            {
                "type": type_,
                "status": found,
                "reason": fields.get("disruption", ""),
                "lastTransitionTime": rfc3339(fields.get("at", NOW)),
            }
            for type_, found in conditions.items()
        ],
        "containerStatuses": [{"name": key, "containerID": f"containerd://{id_}"} for key, id_ in containers.items()],
    }
    return {"metadata": metadata, "spec": fields.get("spec", {}), "status": status}


def pod(name: str = "web-1", **fields: Any) -> Pod:
    return pods.read(msgspec.json.encode(wire(name, **fields)))


def scaled(owner: Owner, replicas: int, *, above: Owner = NO_OWNER, deleting: bool = False) -> Scaled:
    return Scaled(
        NAMESPACE, owner.name, packed(owner.uid), 1, owner.group_kind, replicas, deleting, above,
        WireSelector(match_labels=LABELS), replicas,
    )  # fmt: skip


class Cluster:
    """`Scales` of the given objects. Of other Deployments and ReplicaSets it says that they can be read live."""

    def __init__(self, *objects: Scaled, gone: Iterable[str] = ()) -> None:
        self.objects = {each.uid: each for each in objects}
        self.gone = set(gone)

    def get(self, owner: Owner) -> Scaled | None:
        return self.objects.get(owner.uid)

    def owned_by(self, uid: str) -> Sequence[Scaled]:
        return [each for each in self.objects.values() if each.owner.uid == uid]

    def named(self, target: TargetRef) -> Scaled | None:
        found = (
            each for each in self.objects.values() if (each.group_kind, each.name) == (target.group_kind, target.name)
        )
        return next(found, None)

    def is_gone(self, owner: Owner) -> bool:
        return owner.uid in self.gone

    def can_read(self, owner: Owner) -> bool:
        return owner.kind in (DEPLOYMENTS.kind, REPLICA_SETS.kind) and owner.uid not in self.gone


def web(replicas: int, **changes: Any) -> Cluster:
    """A Deployment with one ReplicaSet."""
    return Cluster(scaled(DEPLOYMENT, replicas, **changes), scaled(SET, replicas, above=DEPLOYMENT))


def budget(
    status: PodUnavailableBudgetStatus | None = None, *, name: str = "web", version: int = 1, **spec: Any
) -> PodUnavailableBudget:
    """A budget with these fields of `spec`. Without a selector and a target: of the pods with `LABELS`."""
    if "selector" not in spec and "targetRef" not in spec:
        spec["selector"] = {"matchLabels": LABELS}
    metadata = {"name": name, "namespace": NAMESPACE, "uid": f"budget-{name}", "resourceVersion": str(version)}
    found = msgspec.convert({"metadata": {**metadata, "generation": 1}, "spec": spec}, PodUnavailableBudget)
    return found if status is None else msgspec.structs.replace(found, status=status)


def groups(found: Iterable[Pod]) -> Any:
    return PodIndex(found).groups(NAMESPACE)
