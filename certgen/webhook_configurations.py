"""Reads and writes the `caBundle` of the webhook configurations, which API servers trust.

They are written by server-side apply with a field manager that owns only these fields. So tools that apply the rest of
a configuration (Helm, Argo CD, Flux) do not revert them.
"""

import base64
import datetime
import functools
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from cryptography import x509

from altershield.api.managed_fields import ManagedMeta
from certgen import certificates
from kube_base.access.client import Client, PatchType
from kube_base.access.errors import NotFoundError
from kube_base.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource

FIELD_MANAGER = "altershield-certgen"
KINDS = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)


class _ClientConfig(msgspec.Struct, rename={"ca_bundle": "caBundle"}):
    ca_bundle: str | None = None


class _Webhook(msgspec.Struct, rename={"client_config": "clientConfig"}):
    name: str
    client_config: _ClientConfig = msgspec.field(default_factory=_ClientConfig)


class _WireConfiguration(msgspec.Struct):
    metadata: ManagedMeta
    webhooks: list[_Webhook] | None = None


@dataclass(frozen=True)
class WebhookConfiguration:
    """A webhook configuration with the bundles of its webhooks. `since` is when certgen last changed them; None if it
    is not known, which counts as now."""

    resource: Resource
    name: str
    version: str
    bundles: dict[str, bytes]
    """The `caBundle` of each webhook, by the webhook's name."""
    since: datetime.datetime | None

    @functools.cached_property
    def trusted(self) -> frozenset[x509.Certificate]:
        """The CAs that all webhooks of the configuration trust."""
        found = [_certificates(bundle) for bundle in self.bundles.values()]
        return frozenset.intersection(*found) if found else frozenset()

    def path(self, chain: Sequence[x509.Certificate], now: datetime.datetime) -> tuple[x509.Certificate, ...]:
        """The path from a serving certificate to a CA in all bundles; empty if API servers will not trust it."""
        return certificates.path(chain, self.trusted, now)

    def is_current(self, bundle: bytes) -> bool:
        """Whether certgen has written exactly `bundle` into every webhook."""
        return self.since is not None and all(each == bundle for each in self.bundles.values())


async def read(client: Client, name: str) -> list[WebhookConfiguration]:
    """The existing configurations called `name` that have webhooks."""
    found = []
    for resource in KINDS:
        try:
            configuration = await client.get(resource, name, as_=_WireConfiguration)
        except NotFoundError:
            continue
        if configuration.webhooks:
            found.append(_decoded(resource, configuration, configuration.webhooks))
    return found


async def publish(client: Client, configuration: WebhookConfiguration, bundle: bytes) -> None:
    """Write `bundle` into every webhook. ConflictError if the configuration has changed since it was read."""
    encoded = base64.b64encode(bundle).decode()
    applied = {
        "apiVersion": configuration.resource.api_version,
        "kind": configuration.resource.kind,
        # With the resourceVersion, a replica that has read an older Secret cannot overwrite a newer bundle.
        "metadata": {"name": configuration.name, "resourceVersion": configuration.version},
        "webhooks": [{"name": name, "clientConfig": {"caBundle": encoded}} for name in configuration.bundles],
    }
    await client.patch(
        configuration.resource,
        applied,
        configuration.name,
        type_=PatchType.APPLY,
        field_manager=FIELD_MANAGER,
        force=True,  # certgen owns the field, even if somebody else wrote it last
    )


def _decoded(
    resource: Resource, configuration: _WireConfiguration, webhooks: Sequence[_Webhook]
) -> WebhookConfiguration:
    metadata = configuration.metadata
    applied = metadata.applied_at(FIELD_MANAGER)
    since = None if applied is None else datetime.datetime.fromtimestamp(applied, datetime.UTC)
    bundles = {webhook.name: base64.b64decode(webhook.client_config.ca_bundle or "") for webhook in webhooks}
    # The API server updates the time when an apply of this manager changes a field.
    return WebhookConfiguration(resource, metadata.name, metadata.resource_version, bundles, since)


def _certificates(bundle: bytes) -> frozenset[x509.Certificate]:
    try:
        return frozenset(certificates.certificates(bundle))
    except ValueError:
        return frozenset()
