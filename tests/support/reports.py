"""A pytest plugin: no garbage is collected while pytest makes a report.

For a traceback, pytest parses the file of the test. CPython before 3.11.8 raises SystemError ("AST constructor
recursion depth mismatch") where a finalizer parses in the middle of that, and pytest ends. A finalizer parses when it
logs an exception, as that of a task does whose exception nobody read.
"""

import gc
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, object, object]:
    collects = gc.isenabled()
    gc.disable()
    try:
        return (yield)
    finally:
        if collects:
            gc.enable()
