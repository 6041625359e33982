"""A Prometheus that answers range queries, and the check that asks it."""

import email.utils
import json
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

from reconciler.checks.check import Check, PollAnswer, Subject
from reconciler.checks.prometheus_answers import MAX_ANSWER
from reconciler.checks.prometheus_check import PrometheusCheckRunner
from reconciler.outbound.credentials import Credentials
from reconciler.outbound.outbound_client import Reply
from reconciler.outbound.outbound_errors import CredentialsError
from tests.unit.reconciler.checks.subjects import STARTED, URL

Series = Callable[[str, float], float | str | None]
"""The value of a query at a time; None: no data."""


class Prometheus:
    """An Outbound that answers range queries."""

    def __init__(self, series: Series, *, behind: float = 0) -> None:
        self.series = series
        self.requests: list[dict[str, Any]] = []
        self.error: Exception | None = None
        self.date = behind

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        credentials: Credentials | None = None,
        timeout: float = 0,  # noqa: ASYNC109  (as the method that it stands for)
        limit: int = 0,
    ) -> Reply:
        del headers, timeout
        assert (method, url, limit) == ("POST", f"{URL}/api/v1/query_range", MAX_ANSWER)
        form = dict(urllib.parse.parse_qsl(body.decode(), strict_parsing=True))
        self.requests.append({**form, "credentials": credentials})
        if self.error is not None:
            raise self.error
        start, end, step = (float(form[name]) for name in ("start", "end", "step"))
        times = [start + number * step for number in range(int((end - start) / step) + 1)]
        values = [(time, str(self.series(form["query"], time))) for time in times]
        kept = [pair for pair in values if pair[1] != "None"]
        result = [{"metric": {}, "values": kept}] if kept else []
        answer = {"status": "success", "data": {"resultType": "matrix", "result": result}}
        return Reply(200, {"Date": email.utils.formatdate(NOW.time - self.date)}, json.dumps(answer).encode())


class Clock:
    time: float = STARTED

    def __call__(self) -> float:
        return self.time


NOW = Clock()


class Secrets:
    def __init__(self, credentials: Credentials | None = None) -> None:
        self._credentials = credentials
        self.reads: list[tuple[str, str]] = []

    async def read(self, namespace: str, name: str) -> Credentials:
        self.reads.append((namespace, name))
        if self._credentials is None:
            raise CredentialsError("the Secret policies/p does not exist")
        return self._credentials


def runner(prometheus: Prometheus, secrets: Secrets | None = None) -> PrometheusCheckRunner:
    return PrometheusCheckRunner(prometheus, secrets or Secrets(), NOW)  # type: ignore[arg-type]


async def poll(checks: Check, batch: Subject, after: float, *, last: bool = False) -> PollAnswer:
    NOW.time = STARTED + after
    return await checks.poll(batch, "queries", last=last)
