"""`python -m tests.monitoring.pictures`: create the pictures of the dashboards (docs/pictures) from live data.

The sandbox, AlterShield and a Prometheus that scrapes every second run for about a minute, with releases and an outage.
Needs `prometheus` on PATH.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

from dashboards.__main__ import boards
from dashboards.pictures import picture
from dashboards.series import STEP, Series
from tests.monitoring.live import watched
from tests.monitoring.prometheus import Prometheus
from tests.support.polling import eventually

ROOT = Path(__file__).parents[2]
DIRECTORY = ROOT / "docs" / "pictures"
RULES = ROOT / "charts" / "altershield" / "files" / "rules" / "altershield.yaml"


class Live:
    """Query results of a Prometheus for the time from `start`, in Unix seconds, until now."""

    def __init__(self, prometheus: Prometheus, start: float) -> None:
        self._get = prometheus.get
        self.start, self.end = start, time.time()
        self._variables = {
            "1h": "20s",  # the whole time is a minute
            "$__rate_interval": "8s",
            "$__range": f"{self.end - start:.0f}s",
            "$cluster": ".*",
            "$namespace": ".*",
            "$workload_namespace": ".*",
        }

    def between(self, query: str) -> list[Series]:
        span = {"start": str(self.start), "end": str(self.end), "step": str(STEP)}
        found = self._get("query_range", query=self._substituted(query), **span)["result"]
        return [Series(each["metric"], [(at, float(value)) for at, value in each["values"]]) for each in found]

    def now(self, query: str) -> list[Series]:
        found = self._get("query", query=self._substituted(query), time=str(self.end))["result"]
        return [Series(each["metric"], [(each["value"][0], float(each["value"][1]))]) for each in found]

    def _substituted(self, query: str) -> str:
        """The query with values for Grafana's variables."""
        for variable, value in self._variables.items():
            query = query.replace(variable, value)
        return query


def main() -> None:
    prometheus = shutil.which("prometheus")
    if prometheus is None:
        sys.exit("prometheus is not on PATH")
    with tempfile.TemporaryDirectory() as directory, watched(Path(directory), prometheus, RULES) as (processes, seen):
        # after the outage, the reconciler first repeats the writes that failed
        eventually(
            lambda: seen.value('altershield_release_entered_timestamp_seconds{by="health", state="Suspend"}'),
            "a suspension by health",
        )
        eventually(lambda: seen.value("altershield_release_stalled_timestamp_seconds"), "a stalled release")
        time.sleep(5)
        data = Live(seen, processes.since - 3)
        for board in boards():
            (DIRECTORY / f"dashboard-{board['uid'].removeprefix('altershield-')}.svg").write_text(picture(board, data))


if __name__ == "__main__":
    main()
