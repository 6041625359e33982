"""What can be watched of certgen. Every series exists from the start, and no label is unbounded."""

import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge

from altershield import __version__
from certgen.plan import Reason
from certgen.publications import KINDS

_SERVING, _AUTHORITY = "serving", "authority"


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._expiry = Gauge(
            "altershield_stored_certificate_expiry_timestamp_seconds",
            "When the certificate in the Secret, and the CA that signed it, end to be valid; 0: there is none.",
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
        Gauge("altershield_build_info", "Always 1.", ["component", "version"], registry=self.registry).labels(
            "certgen", __version__
        ).set(1)
        for certificate in (_SERVING, _AUTHORITY):
            self._expiry.labels(certificate)
        for reason in Reason:
            self._writes.labels(reason.name.lower())
        for resource in KINDS:
            self._published.labels(resource.kind)

    def stored(self, serving: datetime.datetime | None, authority: datetime.datetime | None) -> None:
        self._expiry.labels(_SERVING).set(serving.timestamp() if serving else 0)
        self._expiry.labels(_AUTHORITY).set(authority.timestamp() if authority else 0)

    def wrote(self, reason: Reason) -> None:
        self._writes.labels(reason.name.lower()).inc()

    def published(self, kind: str) -> None:
        self._published.labels(kind).inc()

    def usable(self, usable: bool) -> None:
        self._unusable.set(not usable)
