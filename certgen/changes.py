"""Watches the Secret and the webhook configurations for changes."""

import asyncio
import contextlib
import datetime

import msgspec

from certgen import webhook_configurations
from certgen.metrics import Metrics
from certgen.settings import Settings
from kube_base.access.client import Client
from kube_base.access.informer import Informer
from kube_base.meta import ObjectMeta
from kube_base.resources import SECRETS, Resource

_LONGEST_WAIT = datetime.timedelta(hours=1)  # clocks change and machines suspend; a check is cheap


class _Webhook(msgspec.Struct):
    """A webhook. It is only counted."""


class _Watched(msgspec.Struct):
    """The cached part of a watched object. It contains no keys: only the change matters."""

    metadata: ObjectMeta
    webhooks: list[_Webhook] | None = None


class Changes:
    """The changes of the Secret and of the webhook configurations. `informers` have to run."""

    def __init__(self, client: Client, settings: Settings, metrics: Metrics) -> None:
        self._client = client
        self._metrics = metrics
        self._changed = asyncio.Event()
        self.informers = (
            self._informer(SECRETS, settings.secret, settings.system_namespace),
            *(
                self._informer(resource, settings.webhook_configuration, "")
                for resource in webhook_configurations.KINDS
            ),
        )

    def clear(self) -> None:
        """Forget the changes so far. `wait` returns after the next one."""
        self._changed.clear()

    async def wait(self, at_most: datetime.timedelta) -> None:
        """Wait for a change, and no longer than an hour."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.1, min(at_most, _LONGEST_WAIT).total_seconds())):
                await self._changed.wait()

    def _informer(self, resource: Resource, name: str, namespace: str) -> Informer[_Watched]:
        def changed(_old: _Watched | None, new: _Watched | None) -> None:
            self._changed.set()
            if resource in webhook_configurations.KINDS:
                self._metrics.webhooks(resource, len(new.webhooks or ()) if new else 0)

        informer = Informer(
            self._client, resource, _Watched, namespace=namespace, field_selector=f"metadata.name={name}", resync=0
        )
        informer.add_handler(changed)
        return informer
