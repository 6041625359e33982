"""Which windows are reconciled when a window or a calendar changes."""

from typing import Any

import pytest

from altershield.api import names
from altershield.api.gates.windows import ReleaseWindow, ReleaseWindowSpec, ReleaseWindowStatus
from kube_base.access.queue import WorkQueue
from kube_base.meta import ObjectMeta, PartialObjectMeta
from reconciler.cluster.caches import Key
from reconciler.gates.calendar_files import CALENDARS, CalendarFile
from reconciler.gates.subject import WindowRoutes
from reconciler.gates.window_reconciler import WINDOWS
from tests.unit.reconciler.filled import empty_caches, namespace, put

from .specs import FROM_FILE, spec

SYSTEM = names.SYSTEM_NAMESPACE
WEEKEND = {"weekly": {"days": ["Sat", "Sun"]}}


def window(where: str, name: str, own: ReleaseWindowSpec, **status: Any) -> ReleaseWindow:
    return ReleaseWindow(ObjectMeta(name, where, resource_version="1"), own, ReleaseWindowStatus(**status))


async def drain(queue: WorkQueue[Key]) -> set[Key]:
    """The keys that wait now."""
    found = set()
    while queue.depth:
        key = await queue.get()
        queue.done(key)
        found.add(key)
    return found


async def test_calendar_queues_the_windows_of_its_namespace_that_name_it() -> None:
    async with empty_caches() as caches:
        queue: WorkQueue[Key] = WorkQueue()
        put(caches, namespace("shop"))
        WindowRoutes(caches, queue)
        for each in (
            window(SYSTEM, "weekend", spec(WEEKEND)),
            window(SYSTEM, "holidays", spec(FROM_FILE)),
            window(SYSTEM, "edited", spec(WEEKEND), accepted=spec(FROM_FILE)),
            window("shop", "elsewhere", spec(FROM_FILE)),
            window("ungoverned", "weekend", spec(WEEKEND)),
        ):
            caches[WINDOWS].observe(each)
        assert await drain(queue) == {
            *((SYSTEM, name) for name in ("weekend", "holidays", "edited")),
            ("shop", "elsewhere"),
        }
        caches[CALENDARS].observe(CalendarFile(PartialObjectMeta("holidays", SYSTEM, resource_version="1")))
        assert await drain(queue) == {(SYSTEM, "holidays"), (SYSTEM, "edited")}


@pytest.mark.parametrize("text", ["Mon", "Sun"])
async def test_window_queues_itself(text: str) -> None:
    async with empty_caches() as caches:
        queue: WorkQueue[Key] = WorkQueue()
        put(caches, namespace("shop"))
        WindowRoutes(caches, queue)
        caches[WINDOWS].observe(window("shop", "own", spec({"weekly": {"days": [text]}})))
        assert await drain(queue) == {("shop", "own")}
