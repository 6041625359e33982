"""Creates two objects in each namespace: the ServiceAccount `default`, without which kube-apiserver admits no pod, and
the ConfigMap `kube-root-ca.crt` with the CA of the API server."""

import contextlib
from pathlib import Path

from kube_base import resources
from kube_base.access.errors import AlreadyExistsError
from kube_base.access.queue import WorkQueue
from kube_sandbox.cluster.caches import Caches
from kube_sandbox.cluster.kinds import Bare
from kube_sandbox.cluster.work import work

_ACCOUNT = "default"
_ROOT_CA = "kube-root-ca.crt"
_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of "
    "Kubernetes clusters."
)


class ServiceAccounts:
    def __init__(self, caches: Caches) -> None:
        self._client = caches.client
        self._namespaces = caches.namespaces
        self._accounts = caches.service_accounts
        self._config_maps = caches.config_maps
        authority = caches.client.configuration.ssl_ca_cert
        self._authority = Path(authority).read_text() if authority else ""
        self._queue: WorkQueue[str] = WorkQueue()
        caches.namespaces.add_handler(self._namespace_changed)
        caches.service_accounts.add_handler(self._content_changed)
        caches.config_maps.add_handler(self._content_changed)

    async def run(self) -> None:
        await work(self._queue, self._sync, workers=2)

    def _namespace_changed(self, old: Bare | None, new: Bare | None) -> None:
        if new is not None:
            self._queue.add(new.metadata.name)

    def _content_changed(self, old: Bare | None, new: Bare | None) -> None:
        if new is None and old is not None and old.metadata.name in (_ACCOUNT, _ROOT_CA):
            self._queue.add(old.metadata.namespace)

    async def _sync(self, namespace: str) -> None:
        found = self._namespaces.get("", namespace)
        if found is None or found.metadata.deletion_timestamp is not None:
            return
        if self._accounts.get(namespace, _ACCOUNT) is None:
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": _ACCOUNT}}
            with contextlib.suppress(AlreadyExistsError):
                await self._client.create(resources.SERVICE_ACCOUNTS, account, namespace)
        if self._authority and self._config_maps.get(namespace, _ROOT_CA) is None:
            config_map = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": _ROOT_CA,
                    "annotations": {"kubernetes.io/description": _DESCRIPTION},
                },
                "data": {"ca.crt": self._authority},
            }
            with contextlib.suppress(AlreadyExistsError):
                await self._client.create(resources.CONFIG_MAPS, config_map, namespace)
