"""Results of checks that a callback brings: what is stored, and what changes nothing."""

from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from altershield.api import names
from altershield.api.change_pod import ChangePodStatus, PodState
from altershield.api.check_results import CheckResult, CheckState
from altershield.api.check_specs import CheckSpec, HttpCheck, OnUnknown, Phase
from altershield.api.condition_types import Giver
from altershield.api.pod_verdicts import PodInfo
from altershield.api.policy import AppliedPolicy
from altershield.api.resources import CHANGE_PODS
from kube_base.access.errors import ConflictError, ServerError
from reconciler.batches.batch_reconciler import BatchReconciler
from reconciler.batches.check_callback_receiver import CheckCallbackReceiver
from reconciler.batches.metrics import BatchMetrics
from reconciler.checks.check import Availability, Fail, Pass, Result, Unknown
from reconciler.checks.identity import CheckRun
from reconciler.cluster import release as projection
from reconciler.cluster.caches import Caches
from reconciler.cluster.verdicts import failed_by
from reconciler.cluster.writer import Writer
from reconciler.endpoints.check_callback import CheckCallback
from reconciler.endpoints.endpoint_errors import EndpointError
from reconciler.machinery.metrics import Metrics
from tests.support.stub_api import StubApi, answer, serving
from tests.unit.altershield.releases import builders
from tests.unit.altershield.releases.builders import NOW
from tests.unit.reconciler import filled

pytestmark = pytest.mark.looptime

POST = Phase.POST
CHECKS = (
    CheckSpec("smoke", timeout_seconds=60, on_unknown=OnUnknown.HOLD, http=HttpCheck("http://a.b.svc")),
    CheckSpec("load", timeout_seconds=60, on_unknown=OnUnknown.PASS, http=HttpCheck("http://a.b.svc")),
)


class Http:
    """The check `http`, which only the leader asks."""

    availability = Availability.AVAILABLE
    repeatable = frozenset(Phase)


@dataclass
class World:
    api: StubApi
    receiver: CheckCallbackReceiver
    now: float = NOW + 5

    async def store(self, *checks: CheckResult, state: str = PodState.POST_SUBMITTED) -> None:
        """Put the batch into the API."""
        made = builders.change_pod(1, "sleep-a")
        found = ChangePodStatus(status=state, checks=checks, post_submit_time_unix=NOW, post_timeout_threshold=60)
        obj = msgspec.to_builtins(msgspec.structs.replace(made, status=found))
        await self.api.put(CHANGE_PODS, obj)

    async def receive(self, result: Result, check: str = "smoke", **changes: Any) -> bool:
        own = builders.change_pod(1).metadata
        run = CheckRun("default", own.name, own.uid, check, POST, NOW)._replace(**changes)
        return await self.receiver.receive(CheckCallback(run=run, result=result))

    @property
    def status(self) -> ChangePodStatus:
        (found,) = self.api.all(CHANGE_PODS)
        return msgspec.convert(found["status"], ChangePodStatus)

    def states(self) -> dict[str, str]:
        return {each.name: each.state for each in self.status.checks}

    def gets(self) -> int:
        return len([each for each in self.api.requests if each.method == "GET"])


def entry(name: str = "smoke", state: CheckState = CheckState.RUNNING, handle: str = "h") -> CheckResult:
    return CheckResult(name, POST, state, handle=handle, start_time_unix=NOW)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with serving() as (api, client):
        caches = Caches(client, names.SYSTEM_NAMESPACE)
        filled.put(caches, filled.namespace())
        release = builders.release()
        policy = AppliedPolicy(namespace="default", name="rules", generation=1, checks=CHECKS)
        release = msgspec.structs.replace(release, spec=msgspec.structs.replace(release.spec, policy=policy))
        caches.releases.observe(projection.read(msgspec.json.encode(release)))
        metrics = Metrics()
        batches = BatchReconciler(
            caches,
            Writer(client, caches, metrics),
            BatchMetrics(metrics.registry),
            lambda: NOW + 5,
            checks={"http": Http()},  # type: ignore[dict-item]
            pre_timeout=60,
            post_timeout=60,
        )
        yield World(api, CheckCallbackReceiver(client, batches))


async def unknown(receiving: Awaitable[bool]) -> None:
    """The callback is refused: no check has begun with its run."""
    with pytest.raises(EndpointError) as raised:
        await receiving
    assert (raised.value.code, raised.value.outcome) == (409, "unknown")


@pytest.mark.parametrize("handle", ["", "h"])
async def test_last_result_ends_the_batch(world: World, handle: str) -> None:
    await world.store(entry(handle=handle), entry("load", CheckState.PASSED))
    assert await world.receive(Pass("good")) is True
    assert world.status.status == PodState.EXECUTE_DONE
    assert [each.verdict for each in world.status.pod_results] == ["pass"]


async def test_failure_fails_the_batch_while_another_check_runs(world: World) -> None:
    await world.store(entry(), entry("load"))
    assert await world.receive(Fail("bad")) is True
    assert world.states() == {"smoke": "Failed", "load": "Unknown"}
    change_pod = builders.change_pod(1, "sleep-a", status=world.status)
    assert failed_by(world.status, change_pod) == Giver.CHECK


async def test_result_is_stored_while_another_check_has_to_be_asked_by_the_leader(world: World) -> None:
    """A replica that does not lead sends no requests. So it stores the result and nothing else."""
    await world.store(entry(), entry("load"))
    assert await world.receive(Pass()) is True
    assert world.states() == {"smoke": "Passed", "load": "Running"}
    assert world.status.status == PodState.POST_SUBMITTED


@pytest.mark.parametrize("state", [CheckState.PASSED, CheckState.FAILED])
async def test_check_with_a_result_keeps_it(world: World, state: CheckState) -> None:
    await world.store(entry(state=state), entry("load"))
    for result in (Pass(), Fail("no"), Unknown("?")):
        assert await world.receive(result) is False
    assert world.states()["smoke"] == state


async def test_result_of_an_earlier_run_of_the_check_changes_nothing(world: World) -> None:
    """The version was released again, with the same check once more."""
    await world.store(entry(), entry("load"))
    await unknown(world.receive(Pass(), started=NOW - 60))
    assert world.states()["smoke"] == "Running"
    assert await world.receive(Pass()) is True


async def test_check_that_has_not_begun_takes_no_result(world: World) -> None:
    await world.store(entry("load"))
    await unknown(world.receive(Pass()))
    await unknown(world.receive(Pass(), "other"))
    assert world.states() == {"load": "Running"}


async def test_unknown_ends_a_check_and_a_later_verdict_replaces_it(world: World) -> None:
    await world.store(entry(), entry("load", CheckState.PASSED))
    assert await world.receive(Unknown("no data")) is True
    assert world.states()["smoke"] == "Unknown"
    assert world.status.status != PodState.EXECUTE_DONE, "the batch is held"
    assert await world.receive(Unknown("no data")) is False
    assert await world.receive(Pass()) is True
    assert world.status.status == PodState.EXECUTE_DONE


async def test_failure_counts_after_the_batch_has_ended_without_a_result(world: World) -> None:
    await world.store(entry(state=CheckState.PASSED), entry("load", CheckState.UNKNOWN), state=PodState.EXECUTE_DONE)
    assert await world.receive(Fail("late"), "load") is True
    assert [(each.verdict, each.message) for each in world.status.pod_results] == [("unpass", "load: late")]


async def test_batch_with_a_verdict_of_a_person_is_not_changed(world: World) -> None:
    await world.store(entry(state=CheckState.UNKNOWN), state=PodState.EXECUTE_DONE)
    results = [msgspec.to_builtins(PodInfo(pod="sleep-a", uid="sleep-a-uid", verdict="pass"))]
    (stored,) = world.api.all(CHANGE_PODS)
    await world.api.put(CHANGE_PODS, {**stored, "status": {**stored["status"], "podResults": results}})
    assert await world.receive(Fail("late")) is False
    assert [each.verdict for each in world.status.pod_results] == ["pass"]


async def test_batch_that_is_unknown_deleted_or_created_again_takes_no_result(world: World) -> None:
    await unknown(world.receive(Pass()))
    await world.store(entry())
    await unknown(world.receive(Pass(), uid="other"))
    (stored,) = world.api.all(CHANGE_PODS)
    again = {**stored, "metadata": {**stored["metadata"], "uid": "new"}}
    await world.api.put(CHANGE_PODS, again)
    await unknown(world.receive(Pass()))
    await world.api.remove(CHANGE_PODS, stored["metadata"]["name"], "default")
    await unknown(world.receive(Pass()))


async def test_write_that_conflicts_is_repeated_with_the_newest_object(world: World) -> None:
    await world.store(entry(), entry("load"))
    world.api.fault(lambda request: request.method == "PATCH", answer(409, "Conflict"), times=4)
    assert await world.receive(Pass()) is True
    assert world.gets() == 5
    assert world.states()["smoke"] == "Passed"


async def test_write_that_conflicts_for_ever_is_an_error(world: World) -> None:
    await world.store(entry())
    world.api.fault(lambda request: request.method == "PATCH", answer(409, "Conflict"), times=100)
    with pytest.raises(ConflictError):
        await world.receive(Pass())


async def test_error_of_the_api_server_is_not_a_result(world: World) -> None:
    await world.store(entry())
    world.api.fault(lambda request: request.method == "PATCH", answer(500), times=100)
    with pytest.raises(ServerError):
        await world.receive(Pass())
    assert world.states() == {"smoke": "Running"}
