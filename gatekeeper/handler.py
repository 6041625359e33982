"""Handlers: functions with the type that they read and the outcomes that they declare."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic

from gatekeeper.listers import Listers
from gatekeeper.request import Request, T
from gatekeeper.response import Outcome, Response

Function = Callable[[Request[T], Listers], Response]
AsyncFunction = Callable[[Request[T], Listers], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Handler(Generic[T]):
    """A handler. `reads` is the type that the objects of a request are decoded into."""

    name: str
    function: Callable[[Request[T], Listers], Any]
    reads: type[T]
    outcomes: tuple[Outcome, ...]
    does_io: bool
    seconds: float
    """The time for I/O, less than the timeout of the webhook. The handlers of a request share the longest one."""


def handler(
    *, reads: type[T], outcomes: tuple[Outcome, ...] = (), seconds: float = 1.0
) -> Callable[[Function[T] | AsyncFunction[T]], Handler[T]]:
    """Make a handler from a function `(request, listers) -> response`.

    The function is pure. An `async` function may do I/O, and its docstring must give the reason. After `seconds`
    the request fails with status 500. The function must change nothing if `request.dry_run` is true.
    """

    def made(function: Function[T] | AsyncFunction[T]) -> Handler[T]:
        does_io = inspect.iscoroutinefunction(function)
        if does_io and not function.__doc__:
            raise TypeError(f"{function.__module__}.{function.__name__} does I/O: its docstring must say why")
        return Handler(function.__name__, function, reads, outcomes, does_io, seconds)

    return made
