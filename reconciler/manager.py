"""The reconciler process. Caches run in every replica. Controllers run in the leader, except those with
`in_every_replica`."""

import asyncio
import contextlib
import secrets
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from altershield.api.names import LEASE
from altershield.process.certificate import Certificate
from altershield.process.health import Health, serving
from altershield.process.metrics import ProcessMetrics
from kube_base.access.client import Client
from kube_base.access.events import EventRecorder
from kube_base.access.lease import lead
from kube_base.access.queue import WorkQueue
from kube_base.access.server_clock import ServerClock, SlewedClock, steady_time
from reconciler.batches.subject import BATCHES
from reconciler.budgets.subject import BUDGETS
from reconciler.checks.altershield_server import AlterShieldServer
from reconciler.checks.order_records import OrderRecords
from reconciler.cluster.acceptance import AcceptanceMetrics
from reconciler.cluster.caches import Caches
from reconciler.cluster.garbage import freeze_caches
from reconciler.cluster.informers import run_informers
from reconciler.cluster.metrics import DisruptionMetrics
from reconciler.cluster.turns import Turns
from reconciler.cluster.writer import Writer
from reconciler.endpoints.metrics import CallbackMetrics
from reconciler.endpoints.server import Endpoints, Settings
from reconciler.field_guards import GUARDS
from reconciler.flow_control.subject import FLOW_CONTROLS
from reconciler.freezes import FREEZES
from reconciler.gates.subject import RELEASE_WINDOWS
from reconciler.generated_budgets.subject import GENERATED_BUDGETS
from reconciler.holds.subject import HOLDS
from reconciler.limits.subject import RELEASE_LIMITS
from reconciler.machinery.metrics import Metrics
from reconciler.machinery.runner import work
from reconciler.namespaces import NAMESPACES
from reconciler.notifications.subject import NOTIFICATIONS
from reconciler.options import Options
from reconciler.orders.subject import ORDERS
from reconciler.outbound.outbound_client import Outbound
from reconciler.overrides import OVERRIDES
from reconciler.policies.subject import POLICIES
from reconciler.receivers.file import Delivery
from reconciler.releases.subject import RELEASES
from reconciler.server.server_client import ServerClient
from reconciler.server.token_file import TokenFile
from reconciler.settings import SETTINGS
from reconciler.subject import C, Controller, Parts, Subject

SUBJECTS: tuple[Subject[Any], ...] = (
    NAMESPACES,  # first: the caches learn that a namespace is governed before other subjects do
    RELEASES,
    HOLDS,
    BATCHES,
    ORDERS,
    SETTINGS,
    POLICIES,
    FREEZES,
    OVERRIDES,
    RELEASE_WINDOWS,
    RELEASE_LIMITS,
    GUARDS,
    FLOW_CONTROLS,
    BUDGETS,
    GENERATED_BUDGETS,
    NOTIFICATIONS,
)
"""All subjects, in the order in which they start and get the events of the caches."""

COMPONENT = "altershield"
"""The source component of the reconciler's Events."""


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
        self._client, self._options, self._server_client = client, options, server
        self._identity = options.identity or f"{socket.gethostname()}_{secrets.token_hex(4)}"
        self._clock = ServerClock(clock)
        client.on_date(self._clock.update)
        self.caches = Caches(
            client,
            options.system_namespace,
            namespace_selector=options.namespace_selector,
            watches=[watch for subject in SUBJECTS for watch in subject.watches],
        )
        self.queues: dict[str, WorkQueue[Any]] = {subject.name: WorkQueue() for subject in SUBJECTS}
        self.metrics = Metrics()
        self.metrics.observe(self.queues)
        self.metrics.expect_writes(each for subject in SUBJECTS for each in subject.writes)
        self._recorder = EventRecorder(client, COMPONENT)
        self._writer = Writer(client, self.caches, self.metrics)
        self._server: AlterShieldServer | None = None
        if server is not None:
            orders = OrderRecords(self.caches.orders, self._writer, options.system_namespace)
            self._server = AlterShieldServer(server, self.caches, self._clock, orders.record)
        registry = self.metrics.registry
        parts = Parts[Any](
            client=client,
            caches=self.caches,
            queue=WorkQueue(),  # each subject gets its own one below
            writer=self._writer,
            recorder=self._recorder,
            registry=registry,
            disruptions=DisruptionMetrics(registry),
            acceptance=AcceptanceMetrics(registry),
            turns=Turns(),
            clock=self._clock,
            slewed_clock=SlewedClock(self._clock, clock),
            options=options,
            server=self._server,
            outbound=outbound,
            delivery=delivery,
        )
        started = {each: each.start(replace(parts, queue=self.queues[each.name])) for each in SUBJECTS}
        self._controllers: dict[Subject[Any], Controller[Any]] = {
            subject: controller for subject, controller in started.items() if controller is not None
        }
        registry.register(ProcessMetrics("reconciler", client, self.caches.informers, self._recorder))
        self._callbacks = CallbackMetrics(registry)
        files = options.callback_tls_cert_file, options.callback_tls_private_key_file
        self._certificate = Certificate(files[0], files[1]) if files[0] is not None and files[1] is not None else None

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
                # a new leader must know the orders that another leader has closed
                *([asyncio.create_task(self.caches.orders.run())] if self._server is not None else []),
                *(
                    asyncio.create_task(self._reconcile(subject, controller))
                    for subject, controller in self._controllers.items()
                    if subject.in_every_replica
                ),
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
        batches = self._controller(BATCHES)
        return Endpoints(
            settings,
            self.caches,
            self._client,
            self._writer,
            self._callbacks,
            batches.receive,
            batches.receive_result,
            self._clock,
        )

    def _controller(self, subject: Subject[C]) -> C:
        found: C = self._controllers[subject]  # type: ignore[assignment]
        return found

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
        leaders = {each: controller for each, controller in self._controllers.items() if not each.in_every_replica}
        for controller in leaders.values():
            if controller.on_lead is not None:
                controller.on_lead()
        self.metrics.leader.set(1)
        try:
            async with asyncio.TaskGroup() as group:
                if self._server is not None:
                    group.create_task(self._server.follow())
                for subject, controller in leaders.items():
                    if controller.task is not None:
                        group.create_task(controller.task())
                    group.create_task(self._reconcile(subject, controller))
        finally:
            self.metrics.leader.set(0)

    async def _reconcile(self, subject: Subject[Any], controller: Controller[Any]) -> None:
        queue = self.queues[subject.name]
        await work(subject.name, queue, controller.reconcile, self.metrics, at_most=subject.workers)

    def _not_ready(self) -> str:
        """Why the process is not ready: the caches that are not filled yet. Empty if it is ready."""
        missing = [informer.name for informer in self.caches.required if not informer.synced]
        return f"caches not filled yet: {', '.join(missing)}" if missing else ""


async def _cancel(*tasks: asyncio.Task[None] | asyncio.Task[bool]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
