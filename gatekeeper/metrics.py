"""What the gatekeeper counts. Every series exists at 0 from the start, and no label takes a value from a request."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from altershield import __version__
from gatekeeper.gates import OUTCOMES

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_OPERATIONS = ("CREATE", "UPDATE", "DELETE", "CONNECT")
_ERROR_CODES = (400, 405, 408, 413, 415, 500)
_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Metrics(Collector):
    """One registry with everything in it. Read when scraped: `certificate_expiry` gives a Unix time, `cache_ages`
    seconds per resource."""

    def __init__(
        self,
        *,
        certificate_expiry: Callable[[], float],
        cache_ages: Mapping[str, Callable[[], float]],
    ) -> None:
        self.in_flight = 0
        """Reviews being answered."""
        self._registry = CollectorRegistry()
        self._decisions = {
            (webhook, operation, *outcome): 0
            for webhook, outcomes in OUTCOMES.items()
            for operation in _OPERATIONS
            for outcome in outcomes
        }
        self._errors = {(webhook, str(code)): 0 for webhook in OUTCOMES for code in _ERROR_CODES}
        self._seconds = {webhook: [0] * (len(_SECONDS) + 1) for webhook in OUTCOMES}
        self._seconds_sum = dict.fromkeys(OUTCOMES, 0.0)
        self._registry.register(self)
        self._gauge("altershield_admission_in_flight", "Requests being answered.").set_function(lambda: self.in_flight)
        self._gauge(
            "altershield_certificate_expiry_timestamp_seconds", "When the serving certificate ends to be valid."
        ).set_function(certificate_expiry)
        ages = Gauge(
            "altershield_cache_age_seconds",
            "Seconds since the API server last sent news of a resource.",
            ["resource"],
            registry=self._registry,
        )
        for resource, age in cache_ages.items():
            ages.labels(resource).set_function(age)
        Gauge("altershield_build_info", "Always 1.", ["component", "version"], registry=self._registry).labels(
            "gatekeeper", __version__
        ).set(1)

    def decided(self, webhook: str, operation: str, decision: str, reason: str, seconds: float) -> None:
        self._decisions[webhook, operation, decision, reason] += 1
        self._seconds[webhook][bisect_left(_SECONDS, seconds)] += 1
        self._seconds_sum[webhook] += seconds

    def failed(self, webhook: str, code: int) -> None:
        """A request was answered with an HTTP error."""
        self._errors[webhook, str(code)] += 1

    def collect(self) -> Iterator[Metric]:
        """What is counted for every request, as plain numbers: the library's counters take a lock for each."""
        requests = CounterMetricFamily(
            "altershield_admission_requests",
            "Admission requests that were decided.",
            labels=["webhook", "operation", "decision", "reason"],
        )
        for series, count in self._decisions.items():
            requests.add_metric(series, count)
        yield requests
        errors = CounterMetricFamily(
            "altershield_admission_errors",
            "Admission requests that could not be decided, by the HTTP status they were answered with.",
            labels=["webhook", "code"],
        )
        for error, count in self._errors.items():
            errors.add_metric(error, count)
        yield errors
        duration = HistogramMetricFamily(
            "altershield_admission_duration_seconds",
            "From a request's header to its response.",
            labels=["webhook"],
        )
        bounds = [*map(floatToGoString, _SECONDS), "+Inf"]
        for webhook, counts in self._seconds.items():
            buckets = list(zip(bounds, accumulate(counts), strict=True))
            duration.add_metric([webhook], buckets, self._seconds_sum[webhook])
        yield duration

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, registry=self._registry)
