"""The metrics of a gatekeeper. Every series exists from the start, except for the denials of a namespace.

No label has a value from a request, with one exception: `namespace`, if the cache has ChangeWorkloads of it.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from altershield.admission.registration import Operation
from altershield.process.certificate import Certificate
from altershield.process.metrics import MAX_NAMESPACES, OTHER_NAMESPACES, NamespaceLabels, ProcessMetrics
from gatekeeper.response import PASSED, Actor, Decision, Outcome, Reason
from gatekeeper.routes import Route
from kube_base.access.client import Client
from kube_base.access.informer import Informer

_OTHER = "OTHER"  # an operation that has no handler
_ERROR_CODES = (400, 403, 405, 408, 413, 415, 500, 503)
_DRY_RUN = {False: "false", True: "true"}
_SERVICE_ACCOUNTS = "system:serviceaccount:"
_PASSED = Outcome(PASSED.decision, PASSED.reason)
_UNDECLARED = Outcome(Decision.ALLOWED, Reason.UNDECLARED)
_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Metrics(Collector):
    """All metrics in one registry. `certificate` is the serving certificate."""

    def __init__(self, certificate: Certificate, routes: Iterable[Route]) -> None:
        self.in_flight = 0
        """The reviews that are being answered."""
        self.registry = CollectorRegistry()
        outcomes = {route.webhook: (_PASSED, _UNDECLARED, *route.outcomes) for route in routes}
        names = [webhook.name for webhook in outcomes]
        self._decisions: dict[tuple[str, ...], int] = {
            (webhook.name, operation, outcome.decision, outcome.reason, dry_run): 0
            for webhook, found in outcomes.items()
            for operation in (*webhook.operations, _OTHER)
            for outcome in (found if operation != _OTHER else (_PASSED, _UNDECLARED))
            for dry_run in _DRY_RUN.values()
        }
        self._bypasses: dict[tuple[str, ...], int] = {
            (outcome.reason, actor): 0
            for found in outcomes.values()
            for outcome in found
            for actor in outcome.bypassed_by
        }
        self._operations = {webhook.name: frozenset(webhook.operations) for webhook in outcomes}
        self._denials: dict[tuple[str, ...], int] = {
            (OTHER_NAMESPACES, outcome.reason): 0
            for found in outcomes.values()
            for outcome in found
            if outcome.decision == Decision.DENIED
        }
        self._namespaces = NamespaceLabels()
        self._known: Callable[[str], bool] = lambda namespace: False
        self._errors = {(name, str(code)): 0 for name in names for code in _ERROR_CODES}
        self._seconds = {name: [0] * (len(_SECONDS) + 1) for name in names}
        self._seconds_sum = dict.fromkeys(names, 0.0)
        self.registry.register(self)
        self._gauge("altershield_admission_in_flight", "Requests being answered.").set_function(lambda: self.in_flight)
        self._gauge(
            "altershield_certificate_expiry_timestamp_seconds",
            "Unix time at which the serving certificate expires; 0: there is none.",
        ).set_function(lambda: certificate.expires)
        self._gauge(
            "altershield_certificate_lifetime_seconds",
            "Seconds from the start to the end of the serving certificate's validity; 0: there is none.",
        ).set_function(lambda: certificate.lifetime)

    def observe(
        self,
        client: Client,
        informers: Iterable[Informer[Any]],
        known: Callable[[str], bool] = lambda namespace: False,
    ) -> None:
        """Add the metrics of the client and the informers. Call this once. Only namespaces for which `known` is true
        become values of a label."""
        self._known = known
        self.registry.register(ProcessMetrics("gatekeeper", client, informers))

    def decided(
        self,
        webhook: str,
        operation: Operation,
        decision: Decision,
        reason: StrEnum,
        user: str,
        seconds: float,
        *,
        dry_run: bool,
    ) -> bool:
        """Count a decision that took `seconds`. `user` may be any text. False: the handlers of the webhook do not
        declare this outcome, and it is counted as `undeclared`."""
        counted = operation if operation in self._operations[webhook] else _OTHER
        key = (webhook, counted, decision, reason, _DRY_RUN[dry_run])
        declared = key in self._decisions
        if not declared:
            key = (webhook, counted, Decision.ALLOWED, Reason.UNDECLARED, _DRY_RUN[dry_run])
        self._decisions[key] += 1
        self._seconds[webhook][bisect_left(_SECONDS, seconds)] += 1
        self._seconds_sum[webhook] += seconds
        if not dry_run:
            self._count_bypass(reason, user)
        return declared

    def _count_bypass(self, reason: StrEnum, user: str) -> None:
        for actor in (Actor.SERVICE_ACCOUNT if user.startswith(_SERVICE_ACCOUNTS) else Actor.USER, Actor.RECONCILER):
            if (reason, actor) in self._bypasses:
                self._bypasses[reason, actor] += 1
                break

    def denied(self, namespace: str, reason: StrEnum) -> None:
        """Count a denial by its namespace, which may be any text: a caller that is no API server can name one without
        a ChangeWorkload."""
        value = self._namespaces.value(namespace, trusted=self._known)
        if (OTHER_NAMESPACES, reason) in self._denials:
            self._denials[value, reason] = self._denials.get((value, reason), 0) + 1

    def failed(self, webhook: str, code: int) -> None:
        """Count a request that was answered with an HTTP error."""
        self._errors[webhook, str(code)] += 1

    def collect(self) -> Iterator[Metric]:
        """The metrics that change with each request. They are plain numbers, because counters of the library lock."""
        yield _counter(
            "altershield_admission_requests",
            "Admission requests that the gatekeeper decided, with dry runs.",
            ["webhook", "operation", "decision", "reason", "dry_run"],
            self._decisions.items(),
        )
        yield _counter(
            "altershield_admission_bypasses",
            "Releases that a handler would deny but that passed, by the reason and by the kind of user. Dry runs are "
            "not counted.",
            ["bypass", "actor"],
            self._bypasses.items(),
        )
        yield _counter(
            "altershield_admission_denials",
            "Denials, by the workload's namespace. `(other)`: namespaces without a ChangeWorkload, and those after the "
            f"first {MAX_NAMESPACES}. Dry runs are not counted.",
            ["namespace", "reason"],
            self._denials.items(),
        )
        yield _counter(
            "altershield_admission_errors",
            "Admission requests that the gatekeeper could not decide, by the HTTP status of the answer.",
            ["webhook", "code"],
            self._errors.items(),
        )
        duration = HistogramMetricFamily(
            "altershield_admission_duration_seconds",
            "Seconds from the header of a request to its response.",
            labels=["webhook"],
        )
        bounds = [*map(floatToGoString, _SECONDS), "+Inf"]
        for webhook, counts in self._seconds.items():
            buckets = list(zip(bounds, accumulate(counts), strict=True))
            duration.add_metric([webhook], buckets, self._seconds_sum[webhook])
        yield duration

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, registry=self.registry)


def _counter(
    name: str, text: str, labels: list[str], series: Iterable[tuple[tuple[str, ...], int]]
) -> CounterMetricFamily:
    """One metric. `series` are the values of its labels, and the count."""
    family = CounterMetricFamily(name, text, labels=labels)
    for values, count in series:
        family.add_metric(values, count)
    return family
