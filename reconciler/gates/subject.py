"""The subject of ReleaseWindows. A window is reconciled when it changes, when its calendar does, when it opens or
closes, and before its times run out."""

from altershield.api import resources
from altershield.api.gates.windows import KIND, ReleaseWindow
from altershield.api.rights import Right
from kube_base.access.objects import key_of
from kube_base.access.queue import WorkQueue
from reconciler.cluster.caches import Caches, Key
from reconciler.cluster.gates import WINDOWS
from reconciler.cluster.gauges import Gauges
from reconciler.gates.calendar_files import CALENDARS, CalendarFile, calendars_of
from reconciler.gates.expansion import Expansion
from reconciler.gates.metrics import families
from reconciler.gates.window_reconciler import WindowReconciler
from reconciler.subject import Controller, Parts, Subject


class WindowRoutes:
    """Handlers for the events of the caches. `old` is None for a new object, `new` is None for a deleted one."""

    def __init__(self, caches: Caches, queue: WorkQueue[Key]) -> None:
        self._caches = caches
        self._queue = queue
        caches[WINDOWS].add_handler(self._window)
        caches[CALENDARS].add_handler(self._calendar)

    def _window(self, old: ReleaseWindow | None, new: ReleaseWindow | None) -> None:
        window = new or old
        if window is not None:
            self._queue.add(key_of(window.metadata))

    def _calendar(self, old: CalendarFile | None, new: CalendarFile | None) -> None:
        file = new or old
        if file is None or old is new:
            return
        for window in self._caches[WINDOWS].all():
            named = {each.config_map for spec in (window.spec, window.status.accepted) for each in calendars_of(spec)}
            if window.metadata.namespace == file.metadata.namespace and file.metadata.name in named:
                self._queue.add(key_of(window.metadata))


def start(parts: Parts[Key]) -> Controller[Key]:
    WindowRoutes(parts.caches, parts.queue)
    informer = parts.caches[WINDOWS]
    parts.acceptance.count(resources.RELEASE_WINDOWS.kind, informer.all)
    parts.registry.register(Gauges(lambda: families(informer.all(), parts.caches.system_namespace, parts.clock())))
    windows = WindowReconciler(parts.caches, parts.writer, parts.recorder, parts.clock, Expansion())
    return Controller(reconcile=windows.reconcile)


RELEASE_WINDOWS = Subject(
    "release-windows",
    start,
    kinds=(KIND,),
    rights=(Right((resources.RELEASE_WINDOWS,), "list watch"), Right((resources.RELEASE_WINDOWS,), "patch", "status")),
    watches=(WINDOWS, CALENDARS),
    writes=((resources.RELEASE_WINDOWS, ("patch status",)),),
    workers=1024,  # those that wait for a calendar must not keep others from being reconciled
)
