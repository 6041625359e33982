"""Tests of releases run for each kind of workload: a test with the argument `kind` runs once for each of them."""

import pytest

from .world import KINDS


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of the workload. A test that concerns fewer kinds lists them with `parametrize`."""
    return str(request.param)
