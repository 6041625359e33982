import ast
import gc
import inspect
import traceback

import pytest


class Garbage:
    """Only a garbage collection frees it. It then formats an exception, as a task does whose exception nobody read."""

    def __init__(self) -> None:
        self.itself = self
        try:
            int("no number") + 1
        except ValueError as error:
            self.error = error

    def __del__(self) -> None:
        traceback.format_exception(self.error)


class Parser:
    """Makes a report as pytest does for a test that failed, while there is much garbage."""

    def pytest_runtest_makereport(self) -> None:
        source = inspect.getsource(inspect)
        for _ in range(10):
            for _ in range(20):
                Garbage()
            ast.parse(source)


def test_report_is_made_although_finalizers_parse(request: pytest.FixtureRequest) -> None:
    plugins = request.config.pluginmanager
    parser = plugins.register(Parser())
    before = gc.get_threshold()
    gc.set_threshold(50, 2, 2)
    try:
        call = pytest.CallInfo.from_call(lambda: None, "call")
        assert request.node.ihook.pytest_runtest_makereport(item=request.node, call=call).passed
    finally:
        gc.set_threshold(*before)
        plugins.unregister(name=parser)
