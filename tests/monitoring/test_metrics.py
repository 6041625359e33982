"""promtool checks the metrics that each component exposes."""

import pytest
from prometheus_client import generate_latest

from docs.pages.metrics import registries

from .conftest import Promtool


@pytest.mark.parametrize("component", ["gatekeeper", "reconciler", "certgen"])
async def test_promtool_accepts_all_metrics(promtool: Promtool, component: str) -> None:
    async with registries() as found:
        exposition = generate_latest(found[component]).decode()

    assert promtool("check", "metrics", stdin=exposition) == ""
