"""The reconcilers of windows, freezes, limits and overrides. They are killed between two writes and started again."""

from collections.abc import Callable
from typing import Any

import msgspec

from altershield.api.names import SYSTEM_NAMESPACE, service_account_user
from altershield.api.resources import (
    CHANGE_WORKLOADS,
    RELEASE_FREEZES,
    RELEASE_LIMITS,
    RELEASE_WINDOWS,
)
from kube_base.access.client import Client
from kube_base.access.events import RETRY, ObjectRef
from kube_base.resources import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES
from reconciler.cluster import release as projection
from reconciler.cluster.caches import Caches, Key
from reconciler.cluster.gates import FREEZES, LIMITS, WINDOWS
from reconciler.cluster.turns import Turns
from reconciler.freezes import FreezeReconciler
from reconciler.gates import schedules, times
from reconciler.gates.calendar_files import CALENDARS
from reconciler.gates.problems import Problem, ScheduleError
from reconciler.gates.question import Request
from reconciler.gates.subject import WindowRoutes
from reconciler.gates.times import Times
from reconciler.gates.window_reconciler import WindowReconciler
from reconciler.limits.labels import Labels
from reconciler.limits.reconciler import LimitReconciler
from reconciler.limits.subject import LimitRoutes
from reconciler.manager import SUBJECTS
from tests.support.workloads import BY_NAME
from tests.unit.reconciler.recording import Announcing

from .api import Api, Killed, Watching

_MOST = 500  # reconciles until the reconcilers have to be at rest


class Queue:
    """The keys of one subject: those that are to be reconciled now, and those that are later."""

    def __init__(self) -> None:
        self.now: dict[Key, None] = {}
        self.later: dict[Key, float] = {}

    def add(self, key: Key) -> None:
        self.now[key] = None


class Recorder(Announcing):
    """The Events outlive the reconciler."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[tuple[str, str]] = []

    def event(self, regarding: ObjectRef, type_: str, reason: str, message: str) -> None:
        self.events.append((reason, message))


class Reconcilers:
    def __init__(self, api: Api, client: Client, clock: Callable[[], float], run: Callable[[Any], Any]) -> None:
        self._api = api
        self._client = client
        self._clock = clock
        self._run = run
        self.recorder = Recorder()
        self.start()

    def start(self) -> None:
        """A process begins: it knows only what the API server has."""
        watches = [each for subject in SUBJECTS for each in subject.watches]
        caches = Caches(self._client, SYSTEM_NAMESPACE, watches=watches)
        self._queues = {name: Queue() for name in ("windows", "limits", "freezes")}
        api, clock = self._api, self._clock
        labels = Labels(api)  # type: ignore[arg-type]
        WindowRoutes(caches, self._queues["windows"])  # type: ignore[arg-type]
        LimitRoutes(caches, self._queues["limits"], labels)  # type: ignore[arg-type]
        caches[FREEZES].add_handler(self._freeze)
        arguments: Any = (caches, api, self.recorder, clock)
        self._reconcile = {
            "windows": WindowReconciler(*arguments, _expand).reconcile,
            "limits": LimitReconciler(
                api,  # type: ignore[arg-type]
                *arguments,
                labels=labels,
                turns=Turns(),
                user=service_account_user(SYSTEM_NAMESPACE),
            ).reconcile,
            "freezes": FreezeReconciler(caches, api, clock).reconcile,  # type: ignore[arg-type]
        }
        read = BY_NAME["Deployment"].read
        self.watching = Watching(
            api,
            {
                NAMESPACES.plural: (caches.namespaces, lambda each: each),
                RELEASE_WINDOWS.plural: (caches[WINDOWS], lambda each: each),
                CONFIG_MAPS.plural: (caches[CALENDARS], lambda each: each),
                RELEASE_FREEZES.plural: (caches[FREEZES], lambda each: each),
                RELEASE_LIMITS.plural: (caches[LIMITS], lambda each: each),
                DEPLOYMENTS.plural: (
                    caches.workloads[DEPLOYMENTS.group_kind],
                    lambda each: read(msgspec.json.encode(each)),
                ),
                CHANGE_WORKLOADS.plural: (
                    caches.releases,
                    lambda each: projection.read(msgspec.json.encode(each)),
                ),
            },
        )
        self.watching.follow([NAMESPACES.plural])

    def _freeze(self, old: Any, new: Any) -> None:
        own = (new or old).metadata
        self._queues["freezes"].add((own.namespace, own.name))

    def next(self) -> float | None:
        """When the next key is due, Unix seconds."""
        return min((at for queue in self._queues.values() for at in queue.later.values()), default=None)

    def settle(self) -> None:
        """Reconcile until nothing is due. After a kill, another process goes on."""
        for _ in range(_MOST):
            self.watching.follow()
            due = next(((name, key) for name, queue in self._queues.items() for key in self._due(queue)), None)
            if due is None:
                return
            try:
                self._once(*due)
            except Killed:
                self._api.writes_left = None
                self.start()
        raise AssertionError(f"the reconcilers never come to rest: {due}")

    def _due(self, queue: Queue) -> list[Key]:
        return [*queue.now, *(key for key, at in queue.later.items() if at <= self._clock())]

    def _once(self, name: str, key: Key) -> None:
        queue = self._queues[name]
        queue.now.pop(key, None)
        queue.later.pop(key, None)
        delay = self._run(self._reconcile[name](key))
        if delay == RETRY:
            delay = self._run(self._reconcile[name](key))
        if delay is not None:
            queue.later[key] = self._clock() + max(delay, 0.0)


async def _expand(request: Request, namespace: str) -> Times | Problem:
    try:
        found = schedules.intervals(request.spec, request.texts, request.begin, request.end)
    except ScheduleError as error:
        return error.problem
    return times.bounded(found, request.end)
