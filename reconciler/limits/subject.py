"""The subject of ReleaseLimits. A limit is reconciled when it changes, when a release that may count for it does, and
when the freeze of its fuse does."""

from altershield.api import resources
from altershield.api.gates.freezes import ReleaseFreeze
from altershield.api.gates.limits import KIND, ReleaseLimit
from altershield.api.names import service_account_user
from altershield.api.rights import Right
from kube_base.access.objects import key_of
from kube_base.access.queue import WorkQueue
from reconciler.cluster.caches import Caches, Key
from reconciler.cluster.gates import FREEZES, LIMITS
from reconciler.cluster.gauges import Gauges
from reconciler.cluster.release import Release
from reconciler.limits.labels import Labels
from reconciler.limits.metrics import families
from reconciler.limits.reconciler import COUNTED, LimitReconciler, index_values
from reconciler.subject import Controller, Parts, Subject

_NAMESPACE = "namespace"


class LimitRoutes:
    """Handlers for the events of the caches. `old` is None for a new object, `new` is None for a deleted one."""

    def __init__(self, caches: Caches, queue: WorkQueue[Key], labels: Labels) -> None:
        self._caches = caches
        self._queue = queue
        self._labels = labels
        caches.releases.add_index(COUNTED, index_values)
        caches[LIMITS].add_index(_NAMESPACE, lambda each: (each.metadata.namespace,))
        caches[LIMITS].add_handler(self._limit)
        caches[FREEZES].add_handler(self._freeze)
        caches.releases.add_handler(self._release)

    def _limit(self, old: ReleaseLimit | None, new: ReleaseLimit | None) -> None:
        limit = new or old
        if limit is not None:
            self._queue.add(key_of(limit.metadata))

    def _freeze(self, old: ReleaseFreeze | None, new: ReleaseFreeze | None) -> None:
        freeze = new or old
        if freeze is not None and freeze.spec.fuse is not None:
            self._queue.add((freeze.metadata.namespace, freeze.spec.fuse.limit))

    def _release(self, old: Release | None, new: Release | None) -> None:
        release = new or old
        if release is None or (old is not None and new is not None and _counts(old) == _counts(new)):
            return
        if new is None:
            self._labels.forget(release)
        for namespace in {release.metadata.namespace, self._caches.system_namespace}:
            for limit in self._caches[LIMITS].by_index(_NAMESPACE, namespace):
                self._queue.add(key_of(limit.metadata))


def _counts(release: Release) -> tuple[object, ...]:
    """What decides whether and how a release counts."""
    return (*index_values(release), release.metadata.uid, release.spec.create_time_unix, release.status.rollout.phase)


def start(parts: Parts[Key]) -> Controller[Key]:
    labels = Labels(parts.client)
    LimitRoutes(parts.caches, parts.queue, labels)
    informer = parts.caches[LIMITS]
    parts.acceptance.count(resources.RELEASE_LIMITS.kind, informer.all)
    parts.registry.register(Gauges(lambda: families(informer.all())))
    limits = LimitReconciler(
        parts.client,
        parts.caches,
        parts.writer,
        parts.recorder,
        parts.clock,
        labels=labels,
        turns=parts.turns,
        user=service_account_user(parts.options.system_namespace),
    )

    def begin_to_lead() -> None:
        parts.turns.clear()
        for limit in informer.all():
            parts.queue.add(key_of(limit.metadata))

    return Controller(reconcile=limits.reconcile, on_lead=begin_to_lead)


RELEASE_LIMITS = Subject(
    "release-limits",
    start,
    kinds=(KIND,),
    rights=(
        Right((resources.RELEASE_LIMITS,), "list watch"),
        Right((resources.RELEASE_LIMITS,), "patch", "status"),
        Right(
            (resources.RELEASE_FREEZES,),
            "get create",
            why="The freeze of a fuse, and whether it exists.",
        ),
    ),
    watches=(LIMITS,),
    writes=((resources.RELEASE_LIMITS, ("patch status",)), (resources.RELEASE_FREEZES, ("create",))),
    workers=4,
)
