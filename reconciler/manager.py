"""Puts the reconciler together: caches for everybody, controllers for whoever leads."""

import asyncio
import logging
import secrets
import socket
import time
from collections.abc import Callable
from typing import Any

from altershield.api.names import LEASE
from altershield.kube.client import Client
from altershield.kube.events import EventRecorder
from altershield.kube.lease import lead
from altershield.kube.server_clock import ServerClock
from altershield.process.health import serving
from reconciler.batches.batch_reconciler import BatchReconciler, Server
from reconciler.machinery.caches import Caches
from reconciler.machinery.garbage import freeze_caches
from reconciler.machinery.informers import run_informers
from reconciler.machinery.metrics import Metrics
from reconciler.machinery.runner import Reconcile, work
from reconciler.machinery.writer import Writer
from reconciler.namespaces import NamespaceReconciler
from reconciler.options import Options
from reconciler.releases.health import Timing
from reconciler.releases.release_reconciler import ReleaseReconciler
from reconciler.routes import Queues, Routes
from reconciler.settings import SettingsReconciler

logger = logging.getLogger(__name__)

COMPONENT = "altershield"
"""Whose Events they are."""

_WORKERS = 16  # per controller; most of their time goes into waiting for the API server


class Manager:
    """One reconciler. `clock` is our own, in Unix seconds; it is corrected by the API server's."""

    def __init__(
        self,
        client: Client,
        options: Options,
        *,
        server: Server | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._options = options
        self._identity = options.identity or f"{socket.gethostname()}_{secrets.token_hex(4)}"
        server_clock = ServerClock(clock)
        client.on_date(server_clock.update)
        clock = server_clock
        self.caches = Caches(client, options.system_namespace)
        self.queues = Queues()
        self.metrics = Metrics()
        self._recorder = EventRecorder(client, COMPONENT)
        writer = Writer(client, self.caches, self.metrics)
        releases = ReleaseReconciler(
            client,
            self.caches,
            writer,
            self._recorder,
            self.metrics,
            clock,
            timing=Timing(options.start_timeout, options.observe_seconds),
            batch_wait=options.batch_wait,
        )
        Routes(self.caches, self.queues, releases.groups_cache)
        self.metrics.observe(client, self.caches, self.queues.by_name(), self._recorder)
        self._settings = SettingsReconciler(self.caches, writer, self._recorder, clock)
        self._namespaces = NamespaceReconciler(self.caches)
        self._controllers: dict[str, Reconcile[Any]] = {
            "settings": self._settings.reconcile,
            "batches": BatchReconciler(
                self.caches,
                writer,
                self.metrics,
                clock,
                server=server,
                pre_timeout=options.pre_timeout,
                post_timeout=options.post_timeout,
            ).reconcile,
            "releases": releases.reconcile,
        }

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set. The lease is released before this returns, so that another one goes on at once."""
        async with serving(self._options.metrics_port, self.metrics.registry, self._not_ready):
            background = [
                asyncio.create_task(run_informers(self.caches)),
                asyncio.create_task(self._recorder.run()),
                asyncio.create_task(self._reconcile_namespaces()),
            ]
            freezing = asyncio.create_task(freeze_caches(self.caches))
            leading = asyncio.create_task(self._lead())
            stopping = asyncio.create_task(stop.wait())
            try:
                done, _ = await asyncio.wait((leading, stopping, *background), return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()  # nothing but the signal to stop ends without an error
            finally:
                await _cancel(leading)  # while the caches still follow: what is under way ends in order
                await _cancel(stopping, freezing, *background)

    async def _reconcile_namespaces(self) -> None:
        """Whether we lead or not: whoever does needs full caches."""
        await work("namespaces", self.queues.namespaces, self._namespaces.reconcile, self.metrics)

    async def _lead(self) -> None:
        """Lead only with full caches; a follower keeps them, so that taking over costs no listing."""
        for informer in self.caches.required:
            await informer.wait_synced()
        await lead(
            self._client,
            name=LEASE,
            namespace=self._options.system_namespace,
            identity=self._identity,
            lease_duration=self._options.lease_duration,
            on_started=self._work,
        )

    async def _work(self) -> None:
        for key in self._settings.required:
            self.queues.settings.add(key)
        queues = self.queues.by_name()
        self.metrics.leader.set(1)
        try:
            async with asyncio.TaskGroup() as group:
                for name, reconcile in self._controllers.items():
                    for _ in range(_WORKERS):
                        group.create_task(work(name, queues[name], reconcile, self.metrics))
        finally:
            self.metrics.leader.set(0)

    def _not_ready(self) -> str:
        missing = [informer.name for informer in self.caches.required if not informer.synced]
        return f"not yet listed: {', '.join(missing)}" if missing else ""


async def _cancel(*tasks: asyncio.Task[None] | asyncio.Task[bool]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
