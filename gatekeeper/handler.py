"""Handlers: functions with the type that they read and the outcomes that they declare."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic

from gatekeeper.listers import Listers
from gatekeeper.request import Request, T
from gatekeeper.response import Outcome, Response

Function = Callable[[Request[T], Listers], Response | Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Handler(Generic[T]):
    """A handler. `reads` is the type that the objects of a request are decoded into."""

    name: str
    function: Function[T]
    reads: type[T]
    outcomes: tuple[Outcome, ...]
    seconds: float
    """The time for I/O, less than the timeout of the webhook. The handlers of a request share the longest one. 0: the
    handler does none."""

    @property
    def does_io(self) -> bool:
        return self.seconds > 0


def handler(
    *, reads: type[T], outcomes: tuple[Outcome, ...] = (), seconds: float = 0.0
) -> Callable[[Function[T]], Handler[T]]:
    """Make a handler from a function `(request, listers) -> response`.

    The function is pure. With `seconds`, it may do I/O, and its docstring must give the reason: then it is `async`, or
    returns an awaitable where it has to do I/O and a response where it has not. After `seconds` the request fails with
    status 500. The function must change nothing if `request.dry_run` is true.
    """

    def made(function: Function[T]) -> Handler[T]:
        name = f"{function.__module__}.{function.__name__}"
        if inspect.iscoroutinefunction(function) and not seconds:
            raise TypeError(f"{name} is async: give the handler the seconds that its I/O may take")
        if seconds and not function.__doc__:
            raise TypeError(f"{name} does I/O: its docstring must say why")
        return Handler(function.__name__, function, reads, outcomes, seconds)

    return made
