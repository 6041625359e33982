"""The process of the gatekeeper: its parts, its start and its shutdown."""

import asyncio
import logging

from altershield.errors import UsageError
from altershield.kube.client import Client
from altershield.process.certificate import Certificate
from altershield.process.health import serving
from altershield.process.listener import Listener
from altershield.process.signals import stop_event
from altershield.process.watchdog import watched
from gatekeeper import memory
from gatekeeper.journal import Journal
from gatekeeper.listers import CacheListers, caches
from gatekeeper.metrics import Metrics
from gatekeeper.options import Options
from gatekeeper.routes import routes
from gatekeeper.server import Gatekeeper

logger = logging.getLogger(__name__)

_LAST_SECONDS = 1.0


async def run(options: Options) -> None:
    """Serve until SIGTERM or SIGINT, then drain: report not ready at once, serve requests for the shutdown delay, and
    answer the requests in flight. A second signal ends the process at once. UsageError: the process cannot start."""
    stop = stop_event()
    async with await Client.connect(options.kubeconfig) as client:
        releases, config = caches(client, options.system_namespace)
        certificate = Certificate(options.tls_cert_file, options.tls_private_key_file, options.client_ca_file)
        served = routes()
        metrics = Metrics(certificate, served.values())
        metrics.observe(client, (releases, config), releases.has_namespace)

        def unready() -> list[str]:
            reasons = [certificate.unusable] if certificate.unusable else []
            waiting = [informer.resource.plural for informer in (releases, config) if not informer.synced]
            return reasons + [f"the cache of {resource} is not filled yet" for resource in waiting]

        listers = CacheListers(
            releases, config, reconciler=options.service_account, system_namespace=options.system_namespace
        )
        journal = Journal(metrics)
        gatekeeper = Gatekeeper(served, listers, metrics, journal, unready, client=options.client_name)
        tls = Listener(gatekeeper.admit, options.host, options.port, certificate.context)
        certificate.reload()
        memory.prepare()
        try:
            await tls.start()
        except OSError as error:
            raise UsageError(f"cannot listen: {error}; choose another address with --host or --port") from error
        health = serving(gatekeeper.health, options.metrics_port, options.host)
        async with health as metrics_port, watched():
            logger.info("listening", extra={"port": tls.port, "metrics_port": metrics_port, "server": client.server})
            async with asyncio.TaskGroup() as group:
                followers = [group.create_task(work) for work in (releases.run(), config.run(), certificate.follow())]
                await stop.wait()
                gatekeeper.drain()
                logger.info("shutting down", extra={"serving_on_seconds": options.shutdown_delay})
                await asyncio.sleep(options.shutdown_delay)
                await tls.refuse_connections()
                logger.info("draining", extra={"in_flight": metrics.in_flight})
                # for requests on connections that were opened just before
                await asyncio.sleep(min(options.shutdown_delay, _LAST_SECONDS))
                # wait first: when aiohttp stops, it ignores the rest of a review that is in flight
                await gatekeeper.finish()
                await tls.stop()
                journal.flush()
                for follower in followers:
                    follower.cancel()
