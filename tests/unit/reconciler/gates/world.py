"""A ReleaseWindow with its reconciler, without an API server and without a worker."""

import msgspec

from altershield.api import names
from altershield.api.condition_types import ConditionType
from altershield.api.gates.windows import ReleaseWindow, ReleaseWindowSpec, ReleaseWindowStatus
from altershield.api.meta import Condition, find_condition
from kube_base.access.events import RETRY, ObjectRef
from kube_base.meta import ObjectMeta, PartialObjectMeta
from reconciler.cluster.caches import Caches
from reconciler.gates import schedules, times
from reconciler.gates.calendar_files import CALENDARS, CalendarFile
from reconciler.gates.expansion import StoppedError
from reconciler.gates.problems import Problem, ScheduleError
from reconciler.gates.question import Request
from reconciler.gates.times import Times
from reconciler.gates.window_reconciler import WINDOWS, WindowReconciler
from tests.unit.reconciler.recording import Announcing

from .specs import at

NOW = at("2026-11-27 12:00")  # a Friday
SYSTEM = names.SYSTEM_NAMESPACE


class World(Announcing):
    """Stands for the writer, the recorder of Events and the worker. `where`: the namespace of the window."""

    def __init__(self, caches: Caches, where: str) -> None:
        super().__init__()
        self._caches = caches
        self.where = where
        self.now = float(NOW)
        self.writes = 0
        self.requests: list[Request] = []
        self.stopped = False
        self.events: list[tuple[str, str]] = []
        self.start()

    def start(self) -> None:
        """A process starts: it knows only what the cluster says."""
        own = WindowReconciler(self._caches, self, self, lambda: self.now, self._expand)  # type: ignore[arg-type]
        self._reconcile = own.reconcile

    async def _expand(self, request: Request, namespace: str) -> Times | Problem:
        assert namespace == self.where
        self.requests.append(request)
        if self.stopped:
            raise StoppedError("the worker was stopped")
        try:
            found = schedules.intervals(request.spec, request.texts, request.begin, request.end)
        except ScheduleError as error:
            return error.problem
        return times.bounded(found, request.end)

    async def save_status(self, _: object, window: ReleaseWindow, status: ReleaseWindowStatus) -> ReleaseWindow:
        self.writes += 1
        return self._put(msgspec.structs.replace(window, status=status))

    def event(self, regarding: ObjectRef, type_: str, reason: str, message: str) -> None:
        self.events.append((f"{type_} {reason}", message))

    def _put(self, window: ReleaseWindow) -> ReleaseWindow:
        known = self._caches[WINDOWS].get(self.where, "own")
        version = str(int(known.metadata.resource_version) + 1) if known is not None else "1"
        saved = msgspec.structs.replace(
            window, metadata=msgspec.structs.replace(window.metadata, resource_version=version)
        )
        self._caches[WINDOWS].observe(saved)
        return saved

    async def apply(self, new: ReleaseWindowSpec) -> float | None:
        known = self._caches[WINDOWS].get(self.where, "own")
        status = known.status if known is not None else ReleaseWindowStatus()
        generation = known.metadata.generation + 1 if known is not None else 1
        metadata = ObjectMeta(name="own", namespace=self.where, uid="u", generation=generation)
        self._put(ReleaseWindow(metadata, new, status))
        return await self.reconcile()

    async def reconcile(self) -> float | None:
        delay = await self._reconcile((self.where, "own"))
        return await self._reconcile((self.where, "own")) if delay == RETRY else delay  # the Event is written by then

    def publish(self, text: str, version: int = 1) -> None:
        metadata = PartialObjectMeta("holidays", SYSTEM, resource_version=str(version))
        self._caches[CALENDARS].observe(CalendarFile(metadata, {"cn.ics": text}))

    @property
    def status(self) -> ReleaseWindowStatus:
        found = self._caches[WINDOWS].get(self.where, "own")
        assert found is not None
        return found.status

    @property
    def accepted(self) -> Condition:
        found = find_condition(self.status.conditions, ConditionType.ACCEPTED)
        assert found is not None
        return found

    @property
    def intervals(self) -> list[tuple[str, str]]:
        return [(each.from_, each.to) for each in self.status.intervals]
