"""Queries to a running Prometheus, and the selectors in PromQL."""

import json
import math
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from altershield.api.change_workload import WorkloadState

_SELECTOR = re.compile(r"\b((?:altershield|apiserver)_\w+|ALERTS|up)\b(\{[^}]*\})?")
_STATE = re.compile(r'\bstate!?=~?"([^"]*)",? ?')


class Prometheus:
    def __init__(self, url: str) -> None:
        self._url = url

    def get(self, path: str, **parameters: str) -> Any:
        """The `data` of a response. AssertionError if Prometheus returns an error."""
        url = f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310  (ours)
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # Prometheus is starting
                raise
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def value(self, query: str) -> float | None:
        """The first value of an instant query. None if there is no series, or Prometheus is not up yet."""
        try:
            result = self.get("query", query=query)["result"]
        except urllib.error.URLError:
            return None
        return float(result[0]["value"][1]) if result else None

    def numbers(self, query: str, seconds: int, *, instant: bool) -> list[float]:
        """All values that a panel shows: of an instant query, or of a range query over the last `seconds`."""
        if instant:
            result = self.get("query", query=query)["result"]
            samples = [series["value"] for series in result]
        else:
            now = time.time()
            samples = self.between(query, now - seconds, now, step=2)
        return [number for _, value in samples if not math.isnan(number := float(value))]

    def between(self, query: str, start: float, end: float, *, step: int) -> list[list[Any]]:
        """The samples (time, value) of all series of a range query from `start` to `end`, every `step` seconds."""
        data = self.get("query_range", query=query, start=str(start), end=str(end), step=str(step))
        return [sample for series in data["result"] for sample in series["values"]]

    def matches(self, selector: str) -> bool:
        """Whether Prometheus has ever had such a series. For releases, a matcher on `state` is only checked for known
        states, because a release may pass through a state between two scrapes."""
        if selector.startswith("altershield_release"):
            state = _STATE.search(selector)
            assert state is None or set(state[1].split("|")) <= set(WorkloadState)
            selector = _STATE.sub("", selector)
        return bool(self.get("series", **{"match[]": selector}))


def selectors(expression: str) -> set[str]:
    """The selectors of series in a PromQL expression."""
    return {match[0] for match in _SELECTOR.finditer(expression)}
