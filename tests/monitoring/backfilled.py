"""A Prometheus with the data of a release that began in the past."""

import contextlib
import json
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from kube_base.processes import free_ports
from tests.monitoring.prometheus import Prometheus
from tests.support.polling import eventually
from tests.support.processes import running

SECONDS = 900
"""How long the data is, from 5 minutes before the release."""

_STEP = 5
NEW, OLD = ("sleep-7d4b9-abcde", "sleep-7d4b9-fghij"), ("sleep-5c6f8-abcde", "sleep-5c6f8-fghij")

Value = Callable[[int], float | None]
"""The value so many seconds after the release; None: there is none."""


def counter(rate: float) -> Value:
    return lambda after: rate * (after + 300)


def series() -> dict[str, Value]:
    """New pods answer 10 requests in a second, of which 10 % fail in the second half and 1 % in the first; 2 % take
    longer than 0.5 s. Old pods have 1 % errors, and none takes longer than 0.1 s."""
    found: dict[str, Value] = {}

    def http(pod: str, code: str) -> str:
        return f'http_requests_total{{namespace="default",pod="{pod}",code="{code}"}}'

    def latency(pod: str, part: str) -> str:
        return f'http_request_duration_seconds_{part}{{namespace="default",pod="{pod}"'

    for pod in NEW + OLD:
        new = pod in NEW
        found[http(pod, "200")] = counter(10)
        found[http(pod, "500")] = (
            (lambda after: 0.1 * min(after, 300) + 1.0 * max(0, after - 300) + 30) if new else counter(0.1)
        )
        for le, share in (("0.1", 0.9 if new else 1.0), ("0.5", 0.98 if new else 1.0), ("+Inf", 1.0)):
            found[f'{latency(pod, "bucket")},le="{le}"}}'] = counter(10 * share)
        found[f"{latency(pod, 'count')}}}"] = counter(10)
        found[f'up{{namespace="default",pod="{pod}"}}'] = lambda after: 1
        found[f'queue_consumers{{namespace="default",pod="{pod}"}}'] = lambda after: 3
    for pod in NEW:
        found[f'broken{{pod="{pod}"}}'] = lambda after: math.nan if after < 60 else 1
        found[f'idle_total{{pod="{pod}"}}'] = lambda after: 5
        found[f'late{{pod="{pod}"}}'] = lambda after: None if after < 60 else 1
        found[f'two{{pod="{pod}"}}'] = lambda after: 1
    return found


def open_metrics(started: int) -> str:
    """The series in OpenMetrics' format, with times."""
    lines = []
    for name, value in series().items():
        for after in range(-300, SECONDS - 300, _STEP):
            number = value(after)
            if number is not None:
                lines.append(f"{name} {'NaN' if math.isnan(number) else number} {started + after}")
    return "\n".join([*lines, "# EOF", ""])


@contextlib.contextmanager
def backfilled(
    directory: Path, prometheus: str, promtool: Callable[..., str], *arguments: str
) -> Iterator[tuple[str, int]]:
    """The URL of the Prometheus, and the time of the release in Unix seconds."""
    started = int(time.time()) - SECONDS - 600
    data = directory / "data"
    (directory / "data.om").write_text(open_metrics(started))
    promtool("tsdb", "create-blocks-from", "openmetrics", directory / "data.om", data)
    with serving(directory, prometheus, {}, f"--storage.tsdb.path={data}", *arguments) as url:
        yield url, started


@contextlib.contextmanager
def serving(
    directory: Path, prometheus: str, configuration: dict[str, object], *arguments: str, answers: bool = True
) -> Iterator[str]:
    """The URL of a Prometheus with this configuration (JSON is YAML). `answers`: wait until it answers."""
    (port,) = free_ports(1)
    file = directory / "prometheus.yaml"
    file.write_text(json.dumps(configuration))
    command = [prometheus, f"--config.file={file}", f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
    with running([*command, *arguments], directory / "prometheus.log", {}):
        url = f"http://127.0.0.1:{port}"
        if answers:
            eventually(lambda: Prometheus(url).value("vector(1)"), "Prometheus to answer")
        yield url
