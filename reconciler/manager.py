"""The reconciler process: its caches run in every replica, its controllers run only in the leader."""

import asyncio
import contextlib
import logging
import secrets
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

from altershield.api.names import LEASE
from altershield.kube.client import Client
from altershield.kube.events import EventRecorder
from altershield.kube.lease import lead
from altershield.kube.server_clock import ServerClock, SlewedClock, steady_time
from altershield.process.certificate import Certificate
from altershield.process.health import Health, serving
from altershield.process.metrics import ProcessMetrics
from reconciler.batches.batch_reconciler import BatchReconciler
from reconciler.batches.callback_receiver import CallbackReceiver
from reconciler.batches.check_callback_receiver import CheckCallbackReceiver
from reconciler.batches.metrics import BatchMetrics
from reconciler.batches.runners import runners
from reconciler.batches.skipping import Skipper
from reconciler.batches.subject import BatchRoutes
from reconciler.budgets.budget_reconciler import BudgetReconciler
from reconciler.budgets.departures import Departures
from reconciler.budgets.subject import BudgetRoutes
from reconciler.checks.altershield_server import AlterShieldServer
from reconciler.checks.order_records import OrderRecords
from reconciler.cluster.caches import Caches
from reconciler.cluster.garbage import freeze_caches
from reconciler.cluster.informers import run_informers
from reconciler.cluster.metrics import DisruptionMetrics
from reconciler.cluster.writer import WRITES, Writer
from reconciler.endpoints.metrics import CallbackMetrics
from reconciler.endpoints.server import Endpoints, Settings
from reconciler.flow_control.flow_control_reconciler import FlowControlReconciler
from reconciler.flow_control.subject import FlowControlRoutes
from reconciler.generated_budgets.generated_budget_reconciler import GeneratedBudgetReconciler
from reconciler.generated_budgets.subject import GeneratedBudgetRoutes
from reconciler.machinery.metrics import Metrics
from reconciler.machinery.runner import Reconcile, work
from reconciler.namespaces import NamespaceReconciler, NamespaceRoutes
from reconciler.notifications.metrics import notifications
from reconciler.notifications.notifier import Delivery, Notifier
from reconciler.options import Options
from reconciler.orders.order_reconciler import OrderReconciler
from reconciler.orders.subject import OrderRoutes
from reconciler.outbound.outbound_client import Outbound
from reconciler.outbound.urls import refusal
from reconciler.policies.acceptance import any_url
from reconciler.policies.policy_reconciler import PolicyReconciler
from reconciler.policies.subject import PolicyRoutes
from reconciler.queues import Queues
from reconciler.receivers.file import unknown_receivers
from reconciler.releases.metrics import ReleaseMetrics
from reconciler.releases.pods.health import Timing
from reconciler.releases.reads.groups import PodGroupsCache
from reconciler.releases.reconciler import ReleaseReconciler
from reconciler.releases.subject import ReleaseRoutes
from reconciler.server.server_client import ServerClient
from reconciler.server.server_options import callback_url
from reconciler.server.token_file import TokenFile
from reconciler.settings import SettingRoutes, SettingsReconciler
from reconciler.state_metrics import StateMetrics

logger = logging.getLogger(__name__)

COMPONENT = "altershield"
"""The source component of the reconciler's Events."""

_WORKERS = 16  # per controller; a worker mostly waits for the API server
_NAMESPACE_WORKERS = 4  # each reads pages of objects
_CHECKING_WORKERS = 1024
"""Workers of each controller that also waits for calls to the servers of checks. Such a call may take seconds. A
waiting worker takes little memory, but a failed release is suspended late if its key has to wait for a free worker."""


class Manager:
    """One reconciler process.

    `server` is the client of the AlterShield server that verifies batches; None: there is no such server. `outbound` is
    the client for the URLs of policies; None: no request is sent to them. `delivery` has the receivers of
    notifications; None: no notification is sent. `clock` returns this machine's time in Unix seconds. The manager
    corrects this time by the API server's clock, which it reads from the responses.
    """

    def __init__(
        self,
        client: Client,
        options: Options,
        *,
        server: ServerClient | None = None,
        outbound: Outbound | None = None,
        delivery: Delivery | None = None,
        clock: Callable[[], float] = steady_time,
    ) -> None:
        self._client = client
        self._options = options
        self._identity = options.identity or f"{socket.gethostname()}_{secrets.token_hex(4)}"
        server_clock = ServerClock(clock)
        client.on_date(server_clock.update)
        release_clock = SlewedClock(server_clock, clock)
        clock = server_clock
        self.caches = Caches(client, options.system_namespace, namespace_selector=options.namespace_selector)
        self.queues = Queues()
        self.metrics = Metrics()
        self.metrics.expect_writes(WRITES)
        registry = self.metrics.registry
        disruptions, of_batches, sent = DisruptionMetrics(registry), BatchMetrics(registry), notifications(registry)
        self._callback_metrics = CallbackMetrics(registry)
        self._recorder = EventRecorder(client, COMPONENT)
        writer = Writer(client, self.caches, self.metrics)
        self._server_client, self._writer, self._clock = server, writer, clock
        orders = OrderRecords(self.caches.orders, writer, options.system_namespace)
        self._server = AlterShieldServer(server, self.caches, clock, orders.record) if server is not None else None
        url_rule = partial(refusal, allowed=outbound.allowed) if outbound is not None else any_url
        releases = ReleaseReconciler(
            client,
            self.caches,
            writer,
            self._recorder,
            ReleaseMetrics(registry),
            release_clock,
            timing=Timing(options.start_timeout, options.observe_seconds),
            batch_wait=options.batch_wait,
            history_limit=options.history_limit,
            server=self._server,
            url_rule=url_rule,
        )
        self._releases = releases
        departures = Departures(clock)
        self._route(releases.groups_cache, departures)
        self.metrics.observe(self.queues.by_name())
        registry.register(StateMetrics(self.caches))
        registry.register(ProcessMetrics("reconciler", client, self.caches.informers, self._recorder))
        self._settings = SettingsReconciler(self.caches, writer, self._recorder, clock)
        receivers = delivery.file if delivery is not None else None
        receiver_rule = partial(unknown_receivers, receivers, options.system_namespace)
        policies = PolicyReconciler(self.caches, writer, self._recorder, clock, url_rule, receiver_rule)
        flow_controls = FlowControlReconciler(client, self.caches, writer, self._recorder, disruptions, clock)
        self._notifier: Notifier | None = None
        if delivery is not None:
            enqueue = self.queues.notifications.add
            self._notifier = Notifier(
                self.caches, writer, sent, clock, delivery, enqueue, renewed=self._enqueue_policies
            )
            self.caches.releases.add_handler(self._notifier.on_release)
            self.caches.batches.add_handler(self._notifier.on_batch)
        self._namespaces = NamespaceReconciler(self.caches)
        batches = BatchReconciler(
            self.caches,
            writer,
            of_batches,
            clock,
            checks=runners(
                client,
                outbound,
                self._server,
                clock,
                system_namespace=options.system_namespace,
                observe=options.observe_seconds,
                callback_url=callback_url(options) if options.callback_port else None,
            ),
            pre_timeout=options.pre_timeout,
            post_timeout=options.post_timeout,
            skipper=Skipper(self._server, writer, of_batches, clock),
        )
        files = options.callback_tls_cert_file, options.callback_tls_private_key_file
        self._certificate = Certificate(files[0], files[1]) if files[0] is not None and files[1] is not None else None
        self._callbacks = CallbackReceiver(client, self.caches, batches, clock)
        self._check_callbacks = CheckCallbackReceiver(client, batches)
        self._controllers: dict[str, Reconcile[Any]] = {
            "settings": self._settings.reconcile,
            "policies": policies.reconcile,
            "flow-controls": flow_controls.reconcile,
            "batches": batches.reconcile,
            "releases": releases.reconcile,
            "budgets": BudgetReconciler(
                client, self.caches.budgets, writer, self._recorder, disruptions, departures, clock
            ).reconcile,
            "generated-budgets": GeneratedBudgetReconciler(client, self.caches, writer, self._recorder).reconcile,
            **({"notifications": self._notifier.reconcile} if self._notifier is not None else {}),
            **(
                {"orders": OrderReconciler(client, self.caches, writer, self._server).reconcile}
                if self._server is not None
                else {}
            ),
        }

    def _route(self, groups_cache: PodGroupsCache, departures: Departures) -> None:
        """Have each subject put its own keys into its queue."""
        caches, queues = self.caches, self.queues
        NamespaceRoutes(caches, queues.namespaces)
        SettingRoutes(caches, queues.settings)
        PolicyRoutes(caches, queues.policies)
        ReleaseRoutes(caches, queues.releases, groups_cache)
        BatchRoutes(caches, queues.batches)
        OrderRoutes(caches, queues.orders)
        BudgetRoutes(caches.budgets, queues.budgets, departures)
        GeneratedBudgetRoutes(caches, queues.generated_budgets)
        FlowControlRoutes(caches, queues.flow_controls)

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set. The Lease is released before this returns, so that another replica takes over at
        once.

        An error that ends a background task is raised.
        """
        if self._certificate is not None:
            self._certificate.reload()
        async with (
            serving(Health(self.metrics.registry, self._not_ready), self._options.metrics_port),
            self._callback_port(),
        ):
            background = [
                asyncio.create_task(run_informers(self.caches)),
                asyncio.create_task(self._recorder.run()),
                *([asyncio.create_task(self.caches.orders.run())] if self._server is not None else []),
                asyncio.create_task(self._reconcile_namespaces()),
                *([asyncio.create_task(self._certificate.follow())] if self._certificate is not None else []),
            ]
            freezing = asyncio.create_task(freeze_caches(self.caches))
            leading = asyncio.create_task(self._lead())
            stopping = asyncio.create_task(stop.wait())
            try:
                done, _ = await asyncio.wait((leading, stopping, *background), return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()  # only `stop` ends without an error
            finally:
                await _cancel(leading)  # first: reconciles under way need caches that are up to date
                await _cancel(stopping, freezing, *background)

    def _callback_port(self) -> contextlib.AbstractAsyncContextManager[object]:
        """The port for callbacks of an AlterShield server and of the receivers of `http` checks. Every replica has this
        port, because a callback arrives at any replica."""
        options = self._options
        if not options.callback_port:
            return contextlib.nullcontext()
        server = self._server_client.settings if self._server_client is not None else None
        token_file = server.token_file if server is not None else None
        settings = Settings(
            port=options.callback_port,
            host=options.callback_host,
            context=self._certificate.context if self._certificate is not None else None,
            platform=server.platform if server is not None else options.server_platform,
            token=TokenFile(token_file).current if token_file is not None else None,
        )
        return Endpoints(
            settings,
            self.caches,
            self._client,
            self._writer,
            self._callback_metrics,
            self._callbacks.receive,
            self._check_callbacks.receive,
            self._clock,
        )

    def _enqueue_policies(self) -> None:
        """Queue all policies after the file of receivers has changed: their conditions name receivers that do not
        exist."""
        for policy in self.caches.policies.all():
            self.queues.policies.add((policy.metadata.namespace, policy.metadata.name))

    async def _reconcile_namespaces(self) -> None:
        """Runs in every replica, because a replica that becomes the leader needs full caches."""
        work_on = self._namespaces.reconcile
        await work("namespaces", self.queues.namespaces, work_on, self.metrics, at_most=_NAMESPACE_WORKERS)

    async def _lead(self) -> None:
        """Wait until the caches are full, then take part in the leader election.

        A follower keeps its caches up to date, so that it takes over without listing objects.
        """
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
        """Run the controllers. The manager calls this while it holds the Lease."""
        for key in self._settings.required:
            self.queues.settings.add(key)
        self._releases.forget()  # another leader may have decided since an earlier term of this process
        queues = self.queues.by_name()
        self.metrics.leader.set(1)
        try:
            async with asyncio.TaskGroup() as group:
                if self._server is not None:
                    group.create_task(self._server.follow())
                if self._notifier is not None:
                    group.create_task(self._notifier.run())
                for name, reconcile in self._controllers.items():
                    workers = _CHECKING_WORKERS if name in ("batches", "releases") else _WORKERS
                    group.create_task(work(name, queues[name], reconcile, self.metrics, at_most=workers))
        finally:
            self.metrics.leader.set(0)

    def _not_ready(self) -> str:
        """Why the process is not ready: the caches that are not filled yet. Empty if it is ready."""
        missing = [informer.name for informer in self.caches.required if not informer.synced]
        return f"caches not filled yet: {', '.join(missing)}" if missing else ""


async def _cancel(*tasks: asyncio.Task[None] | asyncio.Task[bool]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
