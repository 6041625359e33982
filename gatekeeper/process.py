"""The process of the gatekeeper: its parts, its start and its shutdown."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from altershield.api.flow_control import PodDeletionFlowControl
from altershield.api.gates.overrides import ReleaseOverride
from altershield.api.resources import DEFENSE_POLICIES, POD_DELETION_FLOW_CONTROLS, RELEASE_OVERRIDES
from altershield.budget_caches.caches import BudgetCaches
from altershield.gates.admissions import RecentAdmissions
from altershield.gates.cached import CachedGates, Stored, reader
from altershield.gates.judge import GATES
from altershield.gates.limits import LIMITS
from altershield.policies.stored import Policy
from altershield.policies.stored import read as read_policy
from altershield.process.certificate import Certificate
from altershield.process.health import serving
from altershield.process.listener import Listener
from altershield.process.signals import stop_event
from altershield.process.watchdog import watched
from gatekeeper.budgets.judge import Judge
from gatekeeper.intake import memory
from gatekeeper.journal import Journal
from gatekeeper.listers import CacheListers, caches
from gatekeeper.live import LiveReads
from gatekeeper.metrics import Metrics
from gatekeeper.options import Options
from gatekeeper.policies import CachedPolicies
from gatekeeper.records.flow_controls import CountedFlowControls
from gatekeeper.records.overrides import RecordedOverrides
from gatekeeper.routes import routes
from gatekeeper.server import Gatekeeper
from kube_base.access.client import Client
from kube_base.access.informer import Informer
from kube_base.access.server_clock import ServerClock
from kube_base.errors import UsageError
from kube_base.meta import ObjectMeta
from kube_base.resources import NAMESPACES

logger = logging.getLogger(__name__)

_LAST_SECONDS = 1.0  # for requests on connections that were opened just before the port closed
_FILLING = 60.0
"""The maximum number of seconds for which a process waits for the caches of budgets and flow controls before it is
ready. Releases must not depend on these caches. Until they are filled, the failure policy decides about disruptions of
pods."""
_DECISIONS = 16  # requests to the API server at the same time, for decisions


class _Namespace(msgspec.Struct, frozen=True):
    """The projection of a Namespace."""

    metadata: ObjectMeta


class _Readiness:
    """Whether the process is ready. `always`: the caches that it needs at any time; `informers`: these and the caches
    of budgets and flow controls, for which it waits after its start."""

    def __init__(
        self,
        certificate: Certificate,
        always: Sequence[Informer[Any]],
        informers: Sequence[Informer[Any]],
        budgets: BudgetCaches,
    ) -> None:
        self._certificate = certificate
        self._always = always
        self._informers = informers
        self._budgets = budgets
        self._filling_until = asyncio.get_running_loop().time() + _FILLING

    def lacks(self) -> list[str]:
        """Why the process is not ready; empty if it is."""
        needed = self._always
        if asyncio.get_running_loop().time() < self._filling_until:
            needed = (*self._informers, *self._budgets.begun_informers)
        waiting = [informer.resource.plural for informer in needed if not informer.synced]
        if not waiting:
            self._filling_until = 0.0  # the first budget of a cluster must not make all gatekeepers unready
        reasons = [self._certificate.unusable] if self._certificate.unusable else []
        return reasons + [f"the cache of {resource} is not filled yet" for resource in waiting]


def _is_terminating(namespaces: Informer[_Namespace], name: str) -> bool:
    found = namespaces.get("", name)
    return found is not None and found.metadata.deletion_timestamp is not None


def _labels_of(namespaces: Informer[_Namespace], name: str) -> Mapping[str, str]:
    found = namespaces.get("", name)
    return found.metadata.labels if found is not None else {}


async def run(options: Options) -> None:
    """Serve until SIGTERM or SIGINT, then drain: report not ready at once, serve requests for the shutdown delay, and
    answer the requests in flight. A second signal ends the process at once. UsageError: the process cannot start."""
    stop = stop_event()
    async with (
        await Client.connect(options.kubeconfig) as client,
        client.with_own_connections(max_in_flight=_DECISIONS) as reads,
    ):
        releases, config = caches(client, options.system_namespace)
        namespaces = Informer(client, NAMESPACES, _Namespace, metadata_only=True, resync=0)
        # webhooks decide which namespaces are governed: API servers do not ask about others
        budgets = BudgetCaches(reads, lambda namespace: True, partial(_is_terminating, namespaces))
        policies = Informer(client, DEFENSE_POLICIES, Policy, read=read_policy, resync=0)
        gates = {each: Informer(client, each.resource, Stored, read=reader(each), resync=0) for each in GATES}
        controls = Informer(client, POD_DELETION_FLOW_CONTROLS, PodDeletionFlowControl, resync=0)
        overrides = Informer(client, RELEASE_OVERRIDES, ReleaseOverride, resync=0)
        clock = ServerClock()
        reads.on_date(clock.update)
        always: tuple[Informer[Any], ...] = (releases, config, policies, *gates.values(), overrides, namespaces)
        informers = (*always, controls, *budgets.required)
        certificate = Certificate(options.tls_cert_file, options.tls_private_key_file, options.client_ca_file)
        served = routes()
        metrics = Metrics(certificate, served.values())
        metrics.observe(client, (*informers, *budgets.counted_informers), releases.has_namespace)
        readiness = _Readiness(certificate, always, informers, budgets)
        in_force = CachedGates(gates, namespaces, options.system_namespace, lambda _, each: each.in_force)
        listers = CacheListers(
            releases,
            config,
            live=LiveReads(reads),
            budgets=Judge(reads, budgets, clock),
            flow_controls=CountedFlowControls(reads, controls, namespaces, partial(_labels_of, namespaces), clock),
            policies=CachedPolicies(policies, options.system_namespace),
            gates=in_force,
            admissions=RecentAdmissions(in_force, gates[LIMITS]),
            overrides=RecordedOverrides(reads, overrides, options.system_namespace, clock),
            reconciler=options.service_account,
            system_namespace=options.system_namespace,
        )
        journal = Journal(metrics)
        gatekeeper = Gatekeeper(served, listers, metrics, journal, readiness.lacks, client=options.client_name)
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
                own = (each.run() for each in (*always, controls))
                works = (*own, budgets.run(), certificate.follow())
                followers = [group.create_task(work) for work in works]
                await stop.wait()
                await _drain(gatekeeper, tls, metrics, options.shutdown_delay)
                journal.flush()
                for follower in followers:
                    follower.cancel()


async def _drain(gatekeeper: Gatekeeper, tls: Listener, metrics: Metrics, delay: float) -> None:
    """Report not ready, serve for `delay` seconds, then answer the requests in flight."""
    gatekeeper.drain()
    logger.info("shutting down", extra={"serving_on_seconds": delay})
    await asyncio.sleep(delay)
    await tls.refuse_connections()
    logger.info("draining", extra={"in_flight": metrics.in_flight})
    await asyncio.sleep(min(delay, _LAST_SECONDS))
    # wait first: when aiohttp stops, it ignores the rest of a review that is in flight
    await gatekeeper.finish()
    await tls.stop()
