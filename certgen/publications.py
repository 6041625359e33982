"""The `caBundle` of the webhook configurations: what the API servers trust, and since when.

Written by server-side apply under a field manager of our own, which owns these fields and no others: whoever
applies the rest of a configuration (Helm, Argo CD, Flux) neither sees nor undoes them.
"""

import base64
import datetime
import functools
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from cryptography import x509

from altershield.api.managed_fields import ManagedMeta
from altershield.api.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from altershield.kube.client import Client, PatchType
from altershield.kube.errors import NotFoundError
from certgen import certificates

FIELD_MANAGER = "altershield-certgen"
KINDS = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)


class _ClientConfig(msgspec.Struct, rename={"ca_bundle": "caBundle"}):
    ca_bundle: str | None = None


class _Webhook(msgspec.Struct, rename={"client_config": "clientConfig"}):
    name: str
    client_config: _ClientConfig = msgspec.field(default_factory=_ClientConfig)


class _Configuration(msgspec.Struct):
    metadata: ManagedMeta
    webhooks: list[_Webhook] | None = None


@dataclass(frozen=True)
class Publication:
    """One webhook configuration: which CAs all of its webhooks trust, and since when they do (None: as far as we
    know, only since now)."""

    resource: Resource
    name: str
    version: str
    bundles: dict[str, bytes]
    """By webhook, as they stand there."""
    since: datetime.datetime | None

    @functools.cached_property
    def trusted(self) -> frozenset[x509.Certificate]:
        held = [_readable(bundle) for bundle in self.bundles.values()]
        return frozenset.intersection(*held) if held else frozenset()

    def path(self, chain: Sequence[x509.Certificate], now: datetime.datetime) -> tuple[x509.Certificate, ...]:
        """From a serving certificate to a CA that API servers trust here; empty: they will refuse it."""
        return certificates.path(chain, self.trusted, now)

    def is_of(self, bundle: bytes) -> bool:
        """Whether every webhook holds exactly `bundle`, and by our doing."""
        return self.since is not None and all(held == bundle for held in self.bundles.values())


async def read(client: Client, name: str) -> list[Publication]:
    """The configurations called `name` that exist and have webhooks."""
    found = []
    for resource in KINDS:
        try:
            configuration = await client.get(resource, name, as_=_Configuration)
        except NotFoundError:
            continue
        if configuration.webhooks:
            found.append(_publication(resource, configuration, configuration.webhooks))
    return found


async def publish(client: Client, publication: Publication, bundle: bytes) -> None:
    """Put `bundle` into every webhook; ConflictError where the configuration changed since it was read."""
    encoded = base64.b64encode(bundle).decode()
    applied = {
        "apiVersion": publication.resource.api_version,
        "kind": publication.resource.kind,
        # The version keeps a replica that knows an older Secret from undoing what a newer one needs.
        "metadata": {"name": publication.name, "resourceVersion": publication.version},
        "webhooks": [{"name": name, "clientConfig": {"caBundle": encoded}} for name in publication.bundles],
    }
    await client.patch(
        publication.resource,
        applied,
        publication.name,
        type_=PatchType.APPLY,
        field_manager=FIELD_MANAGER,
        force=True,  # the field is ours, whoever wrote it last
    )


def _publication(resource: Resource, configuration: _Configuration, webhooks: Sequence[_Webhook]) -> Publication:
    metadata = configuration.metadata
    applied = metadata.applied_at(FIELD_MANAGER)
    since = None if applied is None else datetime.datetime.fromtimestamp(applied, datetime.UTC)
    bundles = {webhook.name: base64.b64decode(webhook.client_config.ca_bundle or "") for webhook in webhooks}
    # The API server moves the time whenever an apply of this manager changes a field.
    return Publication(resource, metadata.name, metadata.resource_version, bundles, since)


def _readable(bundle: bytes) -> frozenset[x509.Certificate]:
    try:
        return frozenset(certificates.certificates(bundle))
    except ValueError:
        return frozenset()
