from collections.abc import Iterator

import pytest

from altershield.workloads import ADAPTERS

from .reviews import about_kind


@pytest.fixture(scope="module", params=[adapter.resource for adapter in ADAPTERS], ids=lambda each: each.plural)
def every_kind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run the tests of the module for each kind."""
    with about_kind(request.param):
        yield
