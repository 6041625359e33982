"""The process: everything is put together here, runs until a signal, and ends in order."""

import asyncio
import logging
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from altershield.errors import UsageError
from altershield.kube.client import Client
from gatekeeper import memory
from gatekeeper.journal import Journal
from gatekeeper.listener import Listener
from gatekeeper.listers import CacheListers, caches
from gatekeeper.metrics import Metrics
from gatekeeper.routes import routes
from gatekeeper.server import Gatekeeper
from gatekeeper.tls import Certificate

logger = logging.getLogger(__name__)

_LAST_SECONDS = 1.0
_PLAIN_CONNECTIONS = 64


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line sets; `service_account` is the user name of the reconciler's."""

    kubeconfig: str | None
    host: str
    port: int
    metrics_port: int
    tls_cert_file: Path
    tls_private_key_file: Path
    client_ca_file: Path | None
    client_name: str
    shutdown_delay: float
    service_account: str
    system_namespace: str


async def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT, then drain: unready at once, serve on for the shutdown delay, finish what is
    in flight. A second signal ends the process where it is. UsageError where it cannot start."""
    stop = _stop_signal()
    async with await Client.connect(settings.kubeconfig) as client:
        records, config = caches(client, settings.system_namespace)
        certificate = Certificate(settings.tls_cert_file, settings.tls_private_key_file, settings.client_ca_file)
        served = routes()
        metrics = Metrics(certificate, served.values())
        metrics.observe(client, (records, config))

        def unready() -> list[str]:
            reasons = [] if certificate.loaded else ["there is no serving certificate yet"]
            waiting = [informer.resource.plural for informer in (records, config) if not informer.synced]
            return reasons + [f"the cache of {resource} is not filled yet" for resource in waiting]

        listers = CacheListers(
            records, config, reconciler=settings.service_account, system_namespace=settings.system_namespace
        )
        journal = Journal(metrics)
        gatekeeper = Gatekeeper(served, listers, metrics, journal, unready, client=settings.client_name)
        plain = Listener(gatekeeper.observe, settings.host, settings.metrics_port, connections=_PLAIN_CONNECTIONS)
        tls = Listener(gatekeeper.admit, settings.host, settings.port, certificate.context)
        certificate.reload()
        try:
            await plain.start()
            await tls.start()
        except OSError as error:
            raise UsageError(f"cannot listen: {error}; choose others with --host, --port, --metrics-port") from error
        memory.prepare()
        logger.info("listening", extra={"port": tls.port, "metrics_port": plain.port, "server": client.server})

        async with asyncio.TaskGroup() as group:
            followers = [group.create_task(work) for work in (records.run(), config.run(), certificate.follow())]
            await stop.wait()
            gatekeeper.drain()
            logger.info("shutting down", extra={"serving_on_seconds": settings.shutdown_delay})
            await asyncio.sleep(settings.shutdown_delay)
            await tls.refuse_connections()
            logger.info("draining", extra={"in_flight": metrics.in_flight})
            # for requests on connections that were made in the last moment
            await asyncio.sleep(min(settings.shutdown_delay, _LAST_SECONDS))
            # aiohttp, told to stop, would ignore what is still coming of a review that is in flight
            await gatekeeper.finish()
            await tls.stop()
            await plain.stop()
            journal.flush()
            for follower in followers:
                follower.cancel()


def _stop_signal() -> asyncio.Event:
    stop = asyncio.Event()

    def on_signal() -> None:
        if stop.is_set():
            logging.shutdown()
            os._exit(1)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)
    return stop
