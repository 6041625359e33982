"""The library that evaluates CEL, without its command line, whose libraries take a quarter of a second to import."""

import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType

_COMMAND = "cel.cli"


@contextlib.contextmanager
def _without_command() -> Iterator[None]:
    """An empty module stands for the command line, which the library imports, while the library is imported."""
    if "cel" in sys.modules:
        yield
        return
    sys.modules[_COMMAND] = ModuleType(_COMMAND)
    try:
        yield
    finally:
        del sys.modules[_COMMAND]


with _without_command():
    import cel
    from cel.stdlib import add_stdlib_to_context

__all__ = ["add_stdlib_to_context", "cel"]
