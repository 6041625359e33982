"""What a handler is: a function with the type that it reads and the outcomes that it can lead to."""

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
    """A handler as the registry names it. `reads` is the type that the objects of a request are decoded into."""

    name: str
    function: Callable[[Request[T], Listers], Any]
    reads: type[T]
    outcomes: tuple[Outcome, ...]
    does_io: bool


def handler(
    *, reads: type[T], outcomes: tuple[Outcome, ...] = ()
) -> Callable[[Function[T] | AsyncFunction[T]], Handler[T]]:
    """Make a handler of a function `(request, listers) -> response`.

    A function is pure. An `async` function may do I/O: its docstring says why it must. It gets a second, after which
    the request fails as for a bug of ours, and it has no effect if `request.dry_run` is true.
    """

    def made(function: Function[T] | AsyncFunction[T]) -> Handler[T]:
        does_io = inspect.iscoroutinefunction(function)
        if does_io and not function.__doc__:
            raise TypeError(f"{function.__module__}.{function.__name__} does I/O: its docstring must say why")
        return Handler(function.__name__, function, reads, outcomes, does_io)

    return made
