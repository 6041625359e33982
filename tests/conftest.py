"""Options of the whole suite, and the order of its tests."""

import contextlib
import gc
import os
import tempfile
from collections.abc import Generator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings

from kube_sandbox.garbage import collect_less_often
from tests.support.random_runs import LONG
from tests.support.simulated_time import simulated_time

# a machine that is busy with another test is no finding
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(LONG, settings.get_profile("busy"), max_examples=2000)
settings.load_profile("busy")

pytest_plugins = ["tests.support.reports", "tests.support.skipped"]

_GROUPS = (
    *("e2e", "chart", "policies", "docs", "faults", "checks", "stories", "availability"),
    *("crashes-1", "monitoring", "conformance", "crashes-0", "server", "rendering"),
)
"""Groups of tests that share a cluster, the longest first: a group that starts late keeps one worker busy at the end
while the others are idle. The tests of "checks", "crashes" and "faults" have clusters of their own, but wait for four
fifths of their time: they leave the cores to the groups that run beside them. The tests of "rendering" share
manifests."""

_GROUPED_HERE = {
    "tests/docs/test_blocks.py": "docs",
    "sandbox/tests/conformance/": "conformance",
    "tests/fault/test_reconciler_faults.py": "faults",
    "tests/fault/test_reconciler_history.py": "faults",
    "tests/fault/test_reconciler_staleness.py": "faults",
    "tests/fault/test_server_checks.py": "checks",
    "tests/chart/test_platform.py": "rendering",
    "tests/chart/test_rendering.py": "rendering",
    "tests/chart/test_values.py": "rendering",
    "tests/monitoring/test_chart.py": "rendering",
}
"""Groups of files and folders that have no mark of their own, by the beginning of their path."""

_NICENESS = 5

_MAX_ID = 200

# kubectl, promtool and the Helm engine need a fifth of their CPU time to collect garbage, and have much memory left
os.environ.setdefault("GOGC", "800")
# no test trusts the machine's authorities, which each process would load at its start, and each client in 20 ms, from
# the file that OpenSSL or a variable of the machine names
os.environ["SSL_CERT_FILE"] = os.devnull


def pytest_make_parametrize_id(val: object) -> str | None:
    """An id for a long text: pytest-xdist sends the id of each test from each worker, and some texts have megabytes."""
    return f"{len(val)}-long" if isinstance(val, (str, bytes)) and len(val) > _MAX_ID else None


def pytest_configure() -> None:
    gc.disable()  # until all tests are collected: the objects of the collection stay


def pytest_collection_finish() -> None:
    collect_less_often()  # a full collection takes 0.3 s with the objects of 9,000 tests
    gc.enable()


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist, which puts the groups into the tests' ids
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not (config.getoption("--kubeconfig") or os.environ.get("KUBEBUILDER_ASSETS")):
        deselected = [item for item in items if item.get_closest_marker("real_api_server")]
        items[:] = [item for item in items if item not in deselected]
        config.hook.pytest_deselected(items=deselected)
    for item in items:
        for path, group in _GROUPED_HERE.items():
            if item.nodeid.startswith(path):
                item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=_place)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Lower the worker's priority at its first test that is in no group. There are more workers than cores, because
    tests with a cluster mostly wait; they have deadlines, and other tests have none. A worker gets no group after
    that, because groups come first."""
    if "PYTEST_XDIST_WORKER" in os.environ and _place(item) == len(_GROUPS) and os.nice(0) < _NICENESS:
        os.nice(_NICENESS - os.nice(0))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Run a coroutine that is marked `looptime` in simulated time. Its fixtures run in real time."""
    if pyfuncitem.get_closest_marker("looptime") is None or not pytest_asyncio.is_async_test(pyfuncitem):
        return (yield)
    runner: Any = pyfuncitem.funcargs["_function_scoped_runner"]  # of pytest-asyncio; absent for another loop_scope
    with simulated_time(runner.get_loop()):
        return (yield)


@pytest.fixture(scope="session", autouse=True)
def temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Temporary files are in a directory of pytest, which deletes its directories some runs later: tests kill commands,
    which then delete nothing."""
    directory = str(tmp_path_factory.mktemp("tmp"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", directory)
        patch.setattr(tempfile, "tempdir", directory)
        yield


def _place(item: pytest.Item) -> int:
    mark = item.get_closest_marker("xdist_group")
    return _GROUPS.index(mark.args[0]) if mark is not None else len(_GROUPS)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kubernetes")
    with contextlib.suppress(ValueError):  # the sandbox's tests have the same options
        group.addoption("--kubeconfig", default=None, help="Run the end-to-end tests on this cluster.")
        group.addoption(
            "--simulate-nodes",
            action="store_true",
            help="With --kubeconfig: the cluster has no nodes; simulate them (and controllers, if they are missing).",
        )
