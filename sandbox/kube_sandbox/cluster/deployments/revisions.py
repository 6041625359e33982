"""The revisions of a Deployment: which ReplicaSet is the new one, and the history in annotations. Pure functions.

`kubectl rollout history` and `kubectl rollout undo` read `deployment.kubernetes.io/revision`. The rules are those of
pkg/controller/deployment/util.
"""

from collections.abc import Iterable, Sequence

from kube_sandbox.cluster import templates
from kube_sandbox.cluster.deployments import rollout
from kube_sandbox.cluster.kinds import NO_LIMIT, Deployment, ReplicaSet

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"

_NOT_COPIED = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        REVISION_HISTORY,
        rollout.DESIRED_REPLICAS,
        rollout.MAX_REPLICAS,
        "deprecated.deployment.rollback.to",
    }
)
_MAX_HISTORY = 2000  # characters


def revision(annotations: dict[str, str]) -> int:
    text = annotations.get(REVISION, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def split(deployment: Deployment, replica_sets: Iterable[ReplicaSet]) -> tuple[ReplicaSet | None, list[ReplicaSet]]:
    """The ReplicaSet of the current template (the oldest, if there are several), and the others."""
    ordered = sorted(replica_sets, key=lambda rs: (rs.metadata.creation_timestamp or "", rs.metadata.name))
    template = deployment.spec.template
    new = next((rs for rs in ordered if templates.equal(rs.spec.template, template)), None)
    return new, [rs for rs in ordered if rs is not new]


def annotations(deployment: Deployment, present: dict[str, str], old: Sequence[ReplicaSet]) -> dict[str, str]:
    """The annotations of the new ReplicaSet, which has `present` now: those of the Deployment, and its revision. The
    revision is one more than the highest other one. A reused ReplicaSet keeps its former revisions as history."""
    copied = {key: value for key, value in deployment.metadata.annotations.items() if key not in _NOT_COPIED}
    wanted = {**present, **copied}
    newest = max((revision(rs.metadata.annotations) for rs in old), default=0) + 1
    if revision(present) >= newest:
        return wanted
    wanted[REVISION] = str(newest)
    if REVISION in present:
        wanted[REVISION_HISTORY] = _appended(present.get(REVISION_HISTORY, ""), present[REVISION])
    return wanted


def expendable(deployment: Deployment, old: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """The old ReplicaSets to delete: without pods and beyond revisionHistoryLimit, oldest first."""
    limit = deployment.spec.revision_history_limit
    if limit is None or limit == NO_LIMIT:
        return []
    alive = [rs for rs in old if rs.metadata.deletion_timestamp is None]
    alive.sort(key=lambda rs: (revision(rs.metadata.annotations), rs.metadata.creation_timestamp or ""))
    return [
        rs
        for rs in alive[: max(0, len(alive) - limit)]
        if rs.spec.replicas == rs.status.replicas == 0 and rs.metadata.generation <= rs.status.observed_generation
    ]


def _appended(history: str, number: str) -> str:
    numbers = [*(history.split(",") if history else []), number]
    while len(",".join(numbers)) > _MAX_HISTORY:
        numbers.pop(0)
    return ",".join(numbers)
