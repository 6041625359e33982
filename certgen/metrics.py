"""What can be watched of certgen. Every series exists from the start, and no label is unbounded."""

from collections.abc import Iterable
from typing import Any

from cryptography import x509
from prometheus_client import CollectorRegistry, Counter, Gauge

from altershield.api.resources import Resource
from altershield.kube.client import Client
from altershield.kube.informer import Informer
from altershield.process.metrics import ProcessMetrics
from certgen.plan import Reason
from certgen.publications import KINDS

_SERVING, _AUTHORITY = "serving", "authority"


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._expiry = Gauge(
            "altershield_stored_certificate_expiry_timestamp_seconds",
            "When the certificate in the Secret, and the CA that vouches for it (of several, the one that ends first), "
            "end to be valid; 0: there is none, or none that certgen knows.",
            ["certificate"],
            registry=self.registry,
        )
        self._lifetime = Gauge(
            "altershield_stored_certificate_lifetime_seconds",
            "For how long these are valid from first to last; 0: there is none.",
            ["certificate"],
            registry=self.registry,
        )
        self._writes = Counter(
            "altershield_certificate_writes",
            "Writes of the Secret, by why it was written.",
            ["reason"],
            registry=self.registry,
        )
        self._published = Counter(
            "altershield_ca_bundle_writes",
            "Writes of the CAs into webhook configurations; many mean that somebody else writes them too.",
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
            "Webhooks in the release's configuration, as last seen; 0: it is missing, empty, or has not been read yet.",
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
        """Show what these know, too. Once."""
        self.registry.register(ProcessMetrics("certgen", client, informers))

    def stored(self, serving: x509.Certificate | None, authority: x509.Certificate | None) -> None:
        """The serving certificate that is in the Secret, and the CA that vouches for it."""
        self._show(_SERVING, serving)
        self._show(_AUTHORITY, authority)

    def wrote(self, reason: Reason) -> None:
        self._writes.labels(reason.name.lower()).inc()

    def published(self, kind: str) -> None:
        self._published.labels(kind).inc()

    def usable(self, usable: bool) -> None:
        self._unusable.set(not usable)

    def webhooks(self, resource: Resource, count: int) -> None:
        """How many there are in the configuration of that kind."""
        self._webhooks.labels(resource.plural).set(count)

    def _show(self, name: str, certificate: x509.Certificate | None) -> None:
        begin = certificate.not_valid_before_utc.timestamp() if certificate else 0.0
        end = certificate.not_valid_after_utc.timestamp() if certificate else 0.0
        self._expiry.labels(name).set(end)
        self._lifetime.labels(name).set(end - begin)
