"""How a subject of the reconciler is declared, and what it gets when it starts.

A subject is a value of the type `Subject`, in `reconciler/NAME/subject.py` or `reconciler/NAME.py`. `manager.py` lists
the subjects and starts them.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from prometheus_client import CollectorRegistry

from altershield.api.kinds import Kind
from altershield.api.rights import Right
from kube_base.access.client import Client
from kube_base.access.events import EventRecorder
from kube_base.access.informer import Informer
from kube_base.access.objects import key_of
from kube_base.access.queue import WorkQueue
from kube_base.resources import Resource
from reconciler.checks.altershield_server import AlterShieldServer
from reconciler.cluster.acceptance import AcceptanceMetrics
from reconciler.cluster.caches import Caches
from reconciler.cluster.metrics import DisruptionMetrics
from reconciler.cluster.turns import Turns
from reconciler.cluster.watch import Watch
from reconciler.cluster.writer import Writer
from reconciler.machinery.runner import K, Reconcile
from reconciler.options import Options
from reconciler.outbound.outbound_client import Outbound
from reconciler.outbound.urls import AllowedHosts
from reconciler.receivers.file import Delivery

CHECKING_WORKERS = 1024
"""Workers of a subject that also waits for calls to the servers of checks. Such a call may take seconds. A waiting
worker takes little memory, but a failed release is suspended late if its key has to wait for a free worker."""


@dataclass(frozen=True, kw_only=True)
class Parts(Generic[K]):
    """What a subject gets when it starts."""

    client: Client
    caches: Caches
    queue: WorkQueue[K]
    """Its own queue. Handlers of the caches put keys into it."""
    writer: Writer
    recorder: EventRecorder
    registry: CollectorRegistry
    disruptions: DisruptionMetrics
    acceptance: AcceptanceMetrics
    turns: Turns
    clock: Callable[[], float]
    """Unix seconds by the API server's clock."""
    slewed_clock: Callable[[], float]
    """The same time, but it never jumps: for decisions that compare times which they have stored."""
    options: Options
    server: AlterShieldServer | None
    """None: no AlterShield server is configured."""
    outbound: Outbound | None
    """The client for the URLs of policies; None: no request is sent to them."""
    delivery: Delivery | None
    """The receivers of notifications and the client for them; None: no notification is sent."""

    def queue_changes_of(self, informer: Informer[Any]) -> None:
        """Queue the namespace and name of each object that is created or changed, for a subject whose keys they are."""

        def changed(old: object, new: Any) -> None:
            if new is not None:
                self.queue.add(key_of(new.metadata))  # type: ignore[arg-type]  # K is this kind of keys

        informer.add_handler(changed)

    @property
    def allowed_hosts(self) -> AllowedHosts | None:
        """The hosts that the URLs of policies may name. None: no URL is requested."""
        return self.outbound.allowed if self.outbound is not None else None


@dataclass(frozen=True, kw_only=True)
class Controller(Generic[K]):
    """A subject that has started."""

    reconcile: Reconcile[K]
    on_lead: Callable[[], None] | None = None
    """Called when this process becomes the leader, before the first reconcile."""
    task: Callable[[], Coroutine[Any, Any, None]] | None = None
    """Runs while this process is the leader."""


C = TypeVar("C", bound=Controller[Any])


@dataclass(frozen=True)
class Subject(Generic[C]):
    """A subject."""

    name: str
    """The name of its queue in metrics and logs."""
    start: Callable[[Parts[Any]], C | None]
    """Called in every replica, before the caches are filled. It adds the handlers that put keys into the queue. None:
    this process has nothing to reconcile, because an option is not set."""
    kinds: tuple[Kind, ...] = ()
    """The kinds that it adds to the cluster: their CustomResourceDefinitions are installed, and users may read them."""
    rights: tuple[Right, ...] = ()
    """What it may do in all namespaces, in addition to what all subjects need (`command/install/rbac.py`)."""
    watches: tuple[Watch[Any], ...] = ()
    """What only this subject follows; `caches[watch]` is the informer."""
    writes: tuple[tuple[Resource, tuple[str, ...]], ...] = ()
    """The verbs of its writes, for metrics: every series exists from the start."""
    workers: int = 16
    """How many keys are reconciled at the same time, at most. A worker mostly waits for the API server."""
    in_every_replica: bool = False
    """Whether it also reconciles in replicas that are not the leader."""
