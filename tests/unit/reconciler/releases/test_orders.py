"""The records of open orders: when the order of a release is closed, and when it is not."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import msgspec
import pytest

from altershield.api import labels, names
from altershield.api.change_workload import ChangeWorkload, ChangeWorkloadStatus
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition
from altershield.api.resources import CHANGE_WORKLOADS
from kube_base.resources import CONFIG_MAPS
from reconciler.checks.order_records import OrderRecords
from reconciler.cluster import release as projection
from reconciler.cluster.caches import Caches
from reconciler.cluster.open_orders import record_name
from reconciler.cluster.orders import CLOSED, order_id
from reconciler.cluster.writer import Writer
from reconciler.machinery.metrics import Metrics
from reconciler.orders.order_reconciler import OrderReconciler
from reconciler.releases.writes.reports import RETRY_SECONDS
from reconciler.server.messages import FinishState
from reconciler.server.server_errors import AlterShieldServerError, RejectedError, UnavailableError
from tests.support.stub_api import StubApi, answer, serving
from tests.unit.altershield.releases.builders import release
from tests.unit.reconciler import filled

KEY = (names.SYSTEM_NAMESPACE, record_name(release()))


@dataclass
class Server:
    enabled: bool = True
    error: AlterShieldServerError | None = None
    closed: list[tuple[str, FinishState]] = field(default_factory=list)

    async def report(self, release: ChangeWorkload) -> None: ...
    async def close(self, release: ChangeWorkload, state: FinishState, message: str) -> None: ...

    async def close_order(self, order: str, state: FinishState, message: str) -> None:
        self.closed.append((order, state))
        if self.error is not None:
            raise self.error


@dataclass
class World:
    api: StubApi
    caches: Caches
    records: OrderRecords
    reconciler: OrderReconciler
    server: Server

    async def reconcile(self) -> float | None:
        return await self.reconciler.reconcile(KEY)

    def cache(self, found: ChangeWorkload) -> None:
        self.caches.releases.observe(projection.read(msgspec.json.encode(found)))

    @property
    def recorded(self) -> bool:
        return bool(self.api.all(CONFIG_MAPS))


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A release whose order is recorded. It exists, and the caches do not have it."""
    async with serving() as (api, client):
        caches = Caches(client, names.SYSTEM_NAMESPACE)
        filled.put(caches, filled.namespace())
        writer = Writer(client, caches, Metrics())
        server = Server()
        world = World(
            api,
            caches,
            OrderRecords(caches.orders, writer, names.SYSTEM_NAMESPACE),
            OrderReconciler(client, caches, writer, server),
            server,
        )
        await world.api.put(CHANGE_WORKLOADS, msgspec.to_builtins(release()))
        await world.records.record(release())
        yield world


CANCELLED = [(order_id(release()), FinishState.CANCEL)]


def again(generation: int = 5) -> ChangeWorkload:
    """The same version, released again."""
    found = release()
    return msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, workload_generation=generation))


async def test_order_is_recorded_once(world: World) -> None:
    await world.records.record(release())
    world.caches.orders._cache.drop(KEY, 100)
    await world.records.record(release())
    (stored,) = world.api.all(CONFIG_MAPS)
    assert stored["data"]["order"] == order_id(release())
    assert stored["metadata"]["labels"][labels.ORDER] == labels.ORDER_OPEN


async def test_order_that_cannot_be_recorded_is_not_created(world: World) -> None:
    world.api.fault(lambda request: request.method == "POST", answer(403, "Forbidden"), times=1)
    with pytest.raises(UnavailableError, match="cannot be recorded in the ConfigMap") as raised:
        await world.records.record(again())
    assert raised.value.delivered is False


async def test_order_of_a_release_that_goes_on_stays_open_also_while_the_caches_are_behind(world: World) -> None:
    assert await world.reconcile() == 1.0, "the caches do not have the release"
    world.cache(again(0))
    assert await world.reconcile() == 1.0, "the caches have an earlier release of the version"
    newer = msgspec.structs.replace(release().metadata, resource_version="2")
    world.cache(msgspec.structs.replace(release(), metadata=newer))
    assert await world.reconcile() is None
    world.caches.begin_filling("default")
    assert await world.reconcile() == 1.0
    assert (world.server.closed, world.recorded) == ([], True)


async def test_order_is_cancelled_if_its_release_is_gone_superseded_or_not_governed(world: World) -> None:
    await world.api.remove(CHANGE_WORKLOADS, release().metadata.name, "default")
    assert await world.reconcile() is None
    assert (world.server.closed, world.recorded) == (CANCELLED, False)


async def test_order_is_cancelled_if_another_release_has_the_name(world: World) -> None:
    other = msgspec.structs.replace(release(), metadata=msgspec.structs.replace(release().metadata, uid="other"))
    await world.api.put(CHANGE_WORKLOADS, msgspec.to_builtins(other))
    world.cache(other)
    await world.reconcile()
    assert (world.server.closed, world.recorded) == (CANCELLED, False)


async def test_order_is_cancelled_if_the_version_was_released_again(world: World) -> None:
    await world.api.put(CHANGE_WORKLOADS, msgspec.to_builtins(again()))
    world.cache(again())
    await world.reconcile()
    assert (world.server.closed, world.recorded) == (CANCELLED, False)


async def test_order_is_cancelled_if_the_namespace_is_not_governed(world: World) -> None:
    world.caches.namespaces._cache.drop(("", "default"), 100)
    await world.reconcile()
    assert (world.server.closed, world.recorded) == (CANCELLED, False)


async def test_record_of_an_order_that_is_closed_is_deleted(world: World) -> None:
    status = ChangeWorkloadStatus(conditions=(Condition(ConditionType.REPORTED, "True", CLOSED),))
    world.cache(msgspec.structs.replace(release(), status=status))
    await world.reconcile()
    assert (world.server.closed, world.recorded) == ([], False)


@pytest.mark.parametrize(
    ("error", "delay", "recorded"),
    [
        (UnavailableError("no answer", delivered=False), RETRY_SECONDS, True),
        (RejectedError("bad signature", code="102", text=""), RETRY_SECONDS, True),
        (RejectedError("no such order", code="101", text=""), None, False),
    ],
)
async def test_close_is_repeated_unless_the_server_would_refuse_it_again(
    world: World, error: AlterShieldServerError, delay: float | None, recorded: bool
) -> None:
    await world.api.remove(CHANGE_WORKLOADS, release().metadata.name, "default")
    world.server.error = error
    assert await world.reconcile() == delay
    assert world.recorded is recorded


async def test_change_of_a_release_queues_the_records_of_its_orders(world: World) -> None:
    world.cache(release())
    assert [each.key for each in world.caches.orders_of(release())] == [KEY]
