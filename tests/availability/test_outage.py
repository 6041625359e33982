"""An outage of the API server."""

from pathlib import Path

import pytest

from bench.questions.outage import measure

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("availability")]

SECONDS = 4.0


async def test_gatekeepers_serve_from_caches_in_an_outage_and_list_again_only_after_expiry(
    cluster: Path, tmp_path: Path
) -> None:
    result = await measure(cluster, tmp_path, SECONDS, print)

    print(result)
    assert result.wrong == ()
    assert result.admissions > 0
    assert min(result.ages) >= SECONDS - 1, "the metrics must show the age of the caches"
    assert any("cache" in reason for reason in result.newcomer), "a gatekeeper with empty caches must not be ready"
    assert result.watches >= result.followed
    assert result.relists == {}, "watches must resume without lists"
    assert sum(result.relists_expired.values()) >= result.listed, "each resource must be listed"
    assert result.most_relists <= 2, "once for each cache: those of budgets have pods and workloads too"
