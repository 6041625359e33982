"""Metrics of the callback port."""

from prometheus_client import CollectorRegistry, Counter

from reconciler.endpoints.outcome import CallbackOutcome


class CallbackMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.callbacks = Counter(
            "altershield_callbacks",
            "Callbacks of an AlterShield server, by outcome.",
            ["outcome"],
            registry=registry,
        )
        self.check_callbacks = Counter(
            "altershield_check_callbacks",
            "Callbacks about `http` checks of DefensePolicies, by outcome.",
            ["outcome"],
            registry=registry,
        )
        for ended in CallbackOutcome:
            self.callbacks.labels(ended)
            self.check_callbacks.labels(ended)
