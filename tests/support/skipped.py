"""A pytest plugin: says once for each reason how many tests were skipped, where pytest names each place."""

import collections

import pytest

from tests.support.tools import HAS_HELM


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in lines([each.longrepr[2] for each in terminalreporter.stats.get("skipped", [])]):
        terminalreporter.write_line(line)
    if not HAS_HELM:
        terminalreporter.write_line("left out: the tests of the chart; helm-python-sdk has wheels only for x86-64")


def lines(reasons: list[str]) -> list[str]:
    """One line for each reason. The reasons are those of pytest's reports, one for each test."""
    found = collections.Counter(each.removeprefix("Skipped: ") for each in reasons)
    return [f"{number} skipped: {reason}" for reason, number in sorted(found.items())]
