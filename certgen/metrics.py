"""The metrics of certgen. All series exist from the start, and all labels have a fixed set of values."""

from collections.abc import Iterable
from typing import Any

from cryptography import x509
from prometheus_client import CollectorRegistry, Counter, Gauge

from altershield.process.metrics import ProcessMetrics
from certgen.plan import Reason
from certgen.webhook_configurations import KINDS
from kube_base.access.client import Client
from kube_base.access.informer import Informer
from kube_base.resources import Resource

_SERVING, _AUTHORITY = "serving", "authority"


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._expiry = Gauge(
            "altershield_stored_certificate_expiry_timestamp_seconds",
            "When the certificate in the Secret and its CA expire (of several CAs, the one that expires first); 0: "
            "there is none, or certgen does not know it.",
            ["certificate"],
            registry=self.registry,
        )
        self._lifetime = Gauge(
            "altershield_stored_certificate_lifetime_seconds",
            "The lengths of the validity periods of the certificate in the Secret and of its CA; 0: there is none.",
            ["certificate"],
            registry=self.registry,
        )
        self._writes = Counter(
            "altershield_certificate_writes",
            "Writes of the Secret, by reason.",
            ["reason"],
            registry=self.registry,
        )
        self._published = Counter(
            "altershield_ca_bundle_writes",
            "Writes of the CAs into webhook configurations; many writes mean that another client changes them, too.",
            ["kind"],
            registry=self.registry,
        )
        self._unusable = Gauge(
            "altershield_certificate_unusable",
            "1 while the Secret's certificate cannot be used or the CAs cannot be published; the log says why.",
            registry=self.registry,
        )
        self._webhooks = Gauge(
            "altershield_webhooks",
            "Webhooks in the release's webhook configuration; 0: it is missing, empty, or not read yet.",
            ["resource"],
            registry=self.registry,
        )
        for certificate in (_SERVING, _AUTHORITY):
            self._show(certificate, None)
        for reason in Reason:
            self._writes.labels(reason.name.lower())
        for resource in KINDS:
            self._published.labels(resource.kind)
            self.webhooks(resource, 0)

    def observe(self, client: Client, informers: Iterable[Informer[Any]]) -> None:
        """Add the metrics of the client and the informers. Call it once."""
        self.registry.register(ProcessMetrics("certgen", client, informers))

    def stored(self, serving: x509.Certificate | None, authority: x509.Certificate | None) -> None:
        """Set the expiry of the serving certificate in the Secret, and of its CA."""
        self._show(_SERVING, serving)
        self._show(_AUTHORITY, authority)

    def wrote(self, reason: Reason) -> None:
        self._writes.labels(reason.name.lower()).inc()

    def published(self, kind: str) -> None:
        self._published.labels(kind).inc()

    def usable(self, usable: bool) -> None:
        self._unusable.set(not usable)

    def webhooks(self, resource: Resource, count: int) -> None:
        """Set the number of webhooks in the configuration of this kind."""
        self._webhooks.labels(resource.plural).set(count)

    def _show(self, name: str, certificate: x509.Certificate | None) -> None:
        begin = certificate.not_valid_before_utc.timestamp() if certificate else 0.0
        end = certificate.not_valid_after_utc.timestamp() if certificate else 0.0
        self._expiry.labels(name).set(end)
        self._lifetime.labels(name).set(end - begin)
