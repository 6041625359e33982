"""Traces the walk of one request or one event through the files of the product.

A *walk* is the sequence of the files in which functions of `altershield`, `gatekeeper`, `kube_base` and `reconciler`
are called, from the first call to the last. A file has its place in the list where it is entered first. To read a
property or to make a value is no call: in the code it looks like a field.

A call belongs to a walk by its task, not by its file:

- The task that receives the request or the event belongs to the walk, and each task that it starts.
- A worker belongs to it from the moment at which it takes the key that the walk has queued, until it asks for the next
  key.
- A cache calls the handlers of all controllers. Of these, a handler belongs to the walk if it queues a key in the queue
  that the walk follows.

So the Lease, the writing of Events, metrics that are scraped, timers that work for many requests, and other controllers
are not part of a walk.

A *turn back* is a call into a file further up the list than the file that calls, if the walk goes on from there into
another file. A plain return to the caller is no call. A call that ends in the file that it enters asks for a value, and
turns nothing back.
"""

import asyncio
import contextlib
import contextvars
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from kube_base.access.cache import Cache
from kube_base.access.queue import WorkQueue

ROOT = Path(__file__).parents[2]

_PACKAGES = ("altershield", "gatekeeper", "kube_base", "reconciler")
_CALLS_HANDLERS = Cache._call.__code__
_ADDS = WorkQueue.add.__code__
_TAKES = WorkQueue.get.__code__
_STARTS_TASK = asyncio.BaseEventLoop.create_task.__code__


@dataclass(eq=False)
class Call:
    """The call of a function."""

    file: str
    """Where the function is."""
    caller: str
    """The file that calls, or that started the task. Empty for the first call of a task of a worker."""
    parent: "Call | None" = None
    """The call of the product within which this one is made."""
    handler: FrameType | None = None
    """The handler of a cache within which this call is made."""


@dataclass(eq=False)
class Walk:
    """One walk."""

    calls: list[Call] = field(default_factory=list)
    following: set[FrameType] = field(default_factory=set)
    """The handlers of caches that queued a key in the queue that the walk follows."""
    taken: bool = False
    """Whether a worker has taken its key."""
    ended: bool = False

    def own(self) -> list[Call]:
        return [each for each in self.calls if each.handler is None or each.handler in self.following]

    def files(self) -> list[str]:
        """The files, in the order in which they are entered first."""
        found: dict[str, None] = {}
        for each in self.own():
            found |= dict.fromkeys(file for file in (each.caller, each.file) if file)
        return list(found)

    def turns(self) -> list[tuple[str, str]]:
        """The turns back: the file that is called, and the file that calls it. Each pair once."""
        place = {file: number for number, file in enumerate(self.files())}
        going_on: set[Call] = set()
        own = self.own()
        for each in own:
            above = each.parent
            while above is not None:
                if above.file != each.file:
                    going_on.add(above)
                above = above.parent
        pairs = ((each.file, each.caller) for each in own if each.caller and each in going_on)
        return sorted(
            {pair for pair in pairs if place[pair[0]] < place[pair[1]]}, key=lambda p: (place[p[0]], place[p[1]])
        )


@contextlib.contextmanager
def traced(begins: Callable[[FrameType], bool], follows: WorkQueue[Any] | None = None) -> Iterator[list[Walk]]:
    """The walks inside the `with` block. A walk begins where `begins` is true for a function that is called or goes on.
    `follows`: the queue through which it goes to a worker."""
    tracer = _Tracer(begins, follows)
    before = sys.getprofile()
    sys.setprofile(tracer.note)
    try:
        yield tracer.walks
    finally:
        sys.setprofile(before)


class _Tracer:
    def __init__(self, begins: Callable[[FrameType], bool], follows: WorkQueue[Any] | None) -> None:
        self.walks: list[Walk] = []
        self._begins = begins
        self._follows = follows
        self._queued: dict[Any, Walk] = {}
        self._frames: dict[FrameType, Call] = {}
        self._walk: contextvars.ContextVar[Walk | None] = contextvars.ContextVar("walk", default=None)
        self._starter: contextvars.ContextVar[str] = contextvars.ContextVar("starter", default="")

    def note(self, frame: FrameType, event: str, result: Any) -> None:
        """The profile function."""
        if event == "return" and frame.f_code is _TAKES and result is not None:
            if frame.f_locals["self"] is self._follows:
                self._take(result)
        elif event == "call" and frame.f_code is _STARTS_TASK:
            self._starter.set(next(map(_file, _above(frame)), ""))
        elif event == "call" and _file(frame):
            self._called(frame)

    def _take(self, key: Any) -> None:
        walk = self._queued.pop(key, None)
        self._walk.set(walk)
        self._starter.set("")
        if walk is not None:
            walk.taken = True

    def _called(self, frame: FrameType) -> None:
        if self._begins(frame):
            self.walks.append(Walk())
            self._walk.set(self.walks[-1])
            self._starter.set("")
        elif not is_start(frame):
            return
        walk = self._walk.get()
        if frame.f_code is _TAKES:
            self._walk.set(None)
            if walk is not None:
                walk.ended = walk.taken
            return
        if walk is None or walk.ended or asyncio.current_task() is None or _looks_like_a_field(frame):
            return
        above = list(_above(frame))
        handler = _handler(frame)
        parent = next((self._frames[each] for each in above if each in self._frames), None)
        call = Call(_file(frame), _file(above[0]) if above else self._starter.get(), parent, handler)
        self._frames[frame] = call
        walk.calls.append(call)
        if frame.f_code is _ADDS and frame.f_locals["self"] is self._follows:
            self._queued.setdefault(frame.f_locals["key"], walk)
            if handler is not None:
                walk.following.add(handler)


def _above(frame: FrameType) -> Iterator[FrameType]:
    """The frames of the product that wait for this one, the innermost first."""
    above = frame.f_back
    while above is not None:
        if _file(above):
            yield above
        above = above.f_back


def _handler(frame: FrameType) -> FrameType | None:
    """The outermost handler of a cache within which this frame runs, or None."""
    found, inner = None, frame
    while inner.f_back is not None:
        if inner.f_back.f_code is _CALLS_HANDLERS:
            found = inner
        inner = inner.f_back
    return found


def _file(frame: FrameType) -> str:
    """The file of a function of the product; empty for another function."""
    return _file_of(frame.f_code)


@functools.cache
def _file_of(code: CodeType) -> str:
    path = Path(code.co_filename)
    inside = path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in _PACKAGES
    return path.relative_to(ROOT).as_posix() if inside else ""


def is_start(frame: FrameType) -> bool:
    """Whether the function begins. Python also reports the places where a coroutine or a generator goes on: the
    argument of their instruction RESUME is not 0."""
    return frame.f_code.co_code[frame.f_lasti + 1] & 3 == 0


def _looks_like_a_field(frame: FrameType) -> bool:
    """Whether the function is a property, or makes a value: a constructor, or the default of a field."""
    code = frame.f_code
    if code.co_name in ("__init__", "__post_init__"):
        return True
    if code.co_name == "<lambda>":
        return "<locals>" not in code.co_qualname and "." in code.co_qualname
    if code.co_argcount != 1:
        return False
    found = inspect.getattr_static(type(frame.f_locals.get(code.co_varnames[0])), code.co_name, None)
    return isinstance(found, property | functools.cached_property)
