"""What can be watched of a gatekeeper. Every series exists from the start; no label takes a value from a request."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from altershield.kube.client import Client
from altershield.kube.informer import Informer
from altershield.metrics import Shared
from gatekeeper.gates import OUTCOMES
from gatekeeper.gates.bypass import BYPASSES, RECONCILER
from gatekeeper.tls import Certificate

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_OPERATIONS = ("CREATE", "UPDATE", "DELETE", "CONNECT")
_ERROR_CODES = (400, 403, 405, 408, 413, 415, 500)
_ACTORS = ("serviceaccount", "user")
_SERVICE_ACCOUNTS = "system:serviceaccount:"
_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Metrics(Collector):
    """One registry with everything in it. `certificate` is the one that is being served."""

    def __init__(self, certificate: Certificate) -> None:
        self.in_flight = 0
        """Reviews being answered."""
        self.registry = CollectorRegistry()
        self._decisions = {
            (webhook, operation, *outcome): 0
            for webhook, outcomes in OUTCOMES.items()
            for operation in _OPERATIONS
            for outcome in outcomes
        }
        self._bypasses = {
            (bypass, actor): 0 for bypass in BYPASSES for actor in ((RECONCILER,) if bypass == RECONCILER else _ACTORS)
        }
        self._errors = {(webhook, str(code)): 0 for webhook in OUTCOMES for code in _ERROR_CODES}
        self._seconds = {webhook: [0] * (len(_SECONDS) + 1) for webhook in OUTCOMES}
        self._seconds_sum = dict.fromkeys(OUTCOMES, 0.0)
        self.registry.register(self)
        self._gauge("altershield_admission_in_flight", "Requests being answered.").set_function(lambda: self.in_flight)
        self._gauge(
            "altershield_certificate_expiry_timestamp_seconds",
            "When the certificate that is being served ends to be valid; 0: there is none.",
        ).set_function(lambda: certificate.expires)
        self._gauge(
            "altershield_certificate_lifetime_seconds",
            "For how long the certificate that is being served is valid from first to last; 0: there is none.",
        ).set_function(lambda: certificate.lifetime)

    def observe(self, client: Client, informers: Iterable[Informer[Any]]) -> None:
        """Show what these know, too. Once."""
        self.registry.register(Shared("gatekeeper", client, informers))

    def decided(self, webhook: str, operation: str, decision: str, reason: str, user: str, seconds: float) -> None:
        """A request of `user`, which may be any text, took `seconds` to decide."""
        self._decisions[webhook, operation, decision, reason] += 1
        if reason in BYPASSES:
            self._bypasses[reason, _actor(reason, user)] += 1
        self._seconds[webhook][bisect_left(_SECONDS, seconds)] += 1
        self._seconds_sum[webhook] += seconds

    def failed(self, webhook: str, code: int) -> None:
        """A request was answered with an HTTP error."""
        self._errors[webhook, str(code)] += 1

    def collect(self) -> Iterator[Metric]:
        """What is counted for every request, as plain numbers: the library's counters take a lock for each."""
        yield _counter(
            "altershield_admission_requests",
            "Admission requests that were decided.",
            ["webhook", "operation", "decision", "reason"],
            self._decisions.items(),
        )
        yield _counter(
            "altershield_admission_bypasses",
            "Releases let through that would have been denied, by what let them pass and by the kind of user.",
            ["bypass", "actor"],
            self._bypasses.items(),
        )
        yield _counter(
            "altershield_admission_errors",
            "Admission requests that could not be decided, by the HTTP status they were answered with.",
            ["webhook", "code"],
            self._errors.items(),
        )
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
        return generate_latest(self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, registry=self.registry)


def _actor(bypass: str, user: str) -> str:
    """The kind of user. That it was the reconciler, the gate has found out."""
    if bypass == RECONCILER:
        return RECONCILER
    return "serviceaccount" if user.startswith(_SERVICE_ACCOUNTS) else "user"


def _counter(
    name: str, text: str, labels: list[str], series: Iterable[tuple[tuple[str, ...], int]]
) -> CounterMetricFamily:
    """One family; each series is the values of its labels and its count."""
    family = CounterMetricFamily(name, text, labels=labels)
    for values, count in series:
        family.add_metric(values, count)
    return family
