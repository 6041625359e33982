"""ControllerRevisions: the revisions of StatefulSets, DaemonSets and CloneSets."""

from copy import deepcopy

from altershield.api.json_patch import Operation
from altershield.workloads.adapter import Object
from kube_base.resources import CONTROLLER_REVISIONS, Resource


def template(revision: Object) -> Object | None:
    """The pod template in a ControllerRevision, which stores it as a patch of its workload; None if it has none."""
    spec = (revision.get("data") or {}).get("spec") or {}
    found = spec.get("template")
    if not isinstance(found, dict):
        return None
    found = deepcopy(found)
    found.pop("$patch", None)
    return found


def number(revision: Object) -> int:
    """The field `revision`; 0 if it is missing."""
    found = revision.get("revision")
    return found if isinstance(found, int) else 0


class OfRevisions:
    """The common part of the adapters whose workloads control their pods themselves and store ControllerRevisions."""

    revisions: Resource = CONTROLLER_REVISIONS
    intermediate: Resource | None = None

    def template(self, revision: Object) -> Object | None:
        return template(revision)

    def number(self, revision: Object) -> int:
        return number(revision)

    def release(self, template: Object) -> list[Operation]:
        return [{"op": "replace", "path": "/spec/template", "value": template}]
