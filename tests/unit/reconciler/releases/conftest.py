"""Tests of releases run for each kind of workload: a test with the argument `kind` runs once for each of them."""

from collections.abc import AsyncIterator

import pytest

from reconciler.cluster.caches import Caches

from .cached import empty_caches
from .world import KINDS


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of the workload. A test that concerns fewer kinds lists them with `parametrize`."""
    return str(request.param)


@pytest.fixture
async def caches() -> AsyncIterator[Caches]:
    """Caches of the empty governed namespace `default`."""
    async with empty_caches() as found:
        yield found
