"""Which batch a callback of an AlterShield server is about, and what of it is stored."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import msgspec
import pytest

from altershield.api.change_pod import ChangePod, ChangePodStatus, PodState
from altershield.api.check_results import MAX_FAILED_RULES, CheckResult, CheckState
from altershield.api.check_specs import Phase
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition
from kube_base.access.errors import ConflictError
from reconciler.batches.callback_receiver import CallbackReceiver
from reconciler.batches.nodes import Reception, awaits_node, refusal
from reconciler.checks.check import Fail, Pass
from reconciler.cluster.batch import Batch, project
from reconciler.cluster.orders import CLOSED, order_id
from reconciler.cluster.verdicts import verified
from reconciler.endpoints import callback_endpoint
from reconciler.endpoints.callback import Callback, CheckType, Rule
from reconciler.endpoints.endpoint_errors import EndpointError
from reconciler.server.answers import ServerVerdict
from reconciler.server.messages import Stage
from tests.unit.altershield.releases.builders import change_pod, release

Handler = Callable[[Batch | None, Batch | None], None]


pytestmark = pytest.mark.looptime


class World:
    """The caches, the API server and the controller of ChangePods, as far as the receiver uses them."""

    def __init__(self, *change_pods: ChangePod) -> None:
        self.stored = {each.metadata.name: each for each in change_pods}
        self.received: list[tuple[str, str, Pass | Fail]] = []
        self.release = release()
        self.handlers: list[Handler] = []
        self.batches = self
        world = cast(Any, self)
        self.receiver = CallbackReceiver(world, world, world, time.time)

    def add_handler(self, handler: Handler) -> None:
        self.handlers.append(handler)

    def store(self, new: ChangePod) -> None:
        old = project(self.stored[new.metadata.name])
        self.stored[new.metadata.name] = new
        for handler in self.handlers:
            handler(old, project(new))

    def delete(self, name: str) -> None:
        old = project(self.stored.pop(name))
        for handler in self.handlers:
            handler(old, None)

    def batch_of_node(self, node: str) -> Batch | None:
        found = [each for each in self.stored.values() if each.status.change_pod_id == node]
        return project(found[0]) if found else None

    def release_of_uid(self, _: str) -> Any:
        return self.release

    def batches_of(self, _: Any) -> list[Batch]:
        return [project(each) for each in self.stored.values()]

    def awaits_node(self, found: ChangePod, begun_by: float) -> bool:
        return awaits_node(found.status, "server", begun_by)

    async def get(self, _: Any, name: str, *__: Any, **___: Any) -> ChangePod:
        return self.stored[name]

    async def receive(self, found: ChangePod, order: str, node: str, phase: Phase, result: Pass | Fail) -> Reception:
        refused = refusal(found.status, self.release, "server", order, node, phase, passes=isinstance(result, Pass))
        if refused is None:
            self.received.append((found.metadata.name, node, result))
        return refused or Reception.STORED


def rule(number: int, *, verdict: str = "FAIL", skippable: bool = True, skipped: bool = False, began: int = 7) -> Rule:
    return Rule(
        execution=f"execution-{number}",
        rule=f"rule-{number}",
        name="",
        owner="sre",
        status="SUCCESS",
        verdict=verdict,
        message="no",
        skippable=skippable,
        skipped=skipped,
        began=began,
    )


def callback(node: str, *rules: Rule, verdict: ServerVerdict = ServerVerdict.FAIL) -> Callback:
    return Callback(
        check_type=CheckType.BATCH,
        order=order_id(release()),
        node=node,
        stage=Stage.PRE,
        verdict=verdict,
        message="",
        rules=rules,
        rollback=False,
        sent=0.0,
    )


def batch(number: int, node: str, **entry: Any) -> ChangePod:
    check = CheckResult("server", Phase.PRE, **{"state": CheckState.RUNNING, **entry})
    return change_pod(number, "a", status=ChangePodStatus(checks=(check,), change_pod_id=node))


async def test_unknown_node_belongs_to_the_only_batch_that_has_none() -> None:
    world = World(batch(1, ""))
    await world.receiver.receive(callback("new"))
    assert [node for _, node, _ in world.received] == ["new"]


async def test_batches_of_a_large_release_that_were_not_started_do_not_hide_the_batch_that_has_no_node() -> None:
    waiting = [change_pod(number, "a") for number in range(2, 50)]
    done = ChangePodStatus(status=PodState.EXECUTE_DONE)
    unchecked = [change_pod(number, "a", status=done) for number in range(50, 100)]
    unchecked = [
        msgspec.structs.replace(each, status=msgspec.structs.replace(done, conditions=(verified(done, each, None),)))
        for each in unchecked
    ]
    world = World(batch(1, ""), *waiting, *unchecked)
    await world.receiver.receive(callback("new"))
    assert [(name, node) for name, node, _ in world.received] == [(batch(1, "").metadata.name, "new")]


async def test_checks_that_began_after_the_callback_do_not_hide_the_batch_that_has_no_node() -> None:
    later = int(time.time()) + 30
    world = World(batch(1, ""), *(batch(number, "", start_time_unix=later) for number in range(2, 50)))
    await world.receiver.receive(callback("new"))
    assert [(name, node) for name, node, _ in world.received] == [(batch(1, "").metadata.name, "new")]


async def test_node_of_one_of_two_batches_that_have_none_is_not_guessed() -> None:
    world = World(batch(1, ""), batch(2, ""))
    assert await refused(world, callback("new")) == (404, "unknown")


async def test_node_that_is_stored_while_the_batches_without_one_are_read_is_found_at_once() -> None:
    done = batch(1, "", state=CheckState.UNKNOWN)
    ended = msgspec.structs.replace(done.status, status=PodState.EXECUTE_DONE)
    ended = msgspec.structs.replace(ended, conditions=(verified(ended, done, None),))
    world = World(msgspec.structs.replace(done, status=ended), batch(2, ""))
    live = world.get

    async def get(*arguments: Any, **options: Any) -> ChangePod:
        world.store(batch(2, "node", handle="node"))
        return await live(*arguments, **options)

    world.get = get  # type: ignore[method-assign]
    async with asyncio.timeout(5):
        await world.receiver.receive(callback("node"))
    assert [node for _, node, _ in world.received] == ["node"]


async def test_result_is_stored_after_the_cache_has_the_release() -> None:
    """The cache of a replica may be seconds behind, and the server sends a result once."""
    world = World(batch(1, "node", handle="node"))
    loop = asyncio.get_running_loop()
    began = loop.time()
    store = world.receive

    async def receive(*arguments: Any) -> Reception:
        if loop.time() < began + 10:
            raise ConflictError("the cache does not have the ChangeWorkload yet", code=409)
        return await store(*arguments)

    world.receive = receive  # type: ignore[method-assign]
    await world.receiver.receive(callback("node"))
    assert len(world.received) == 1


async def test_node_of_a_deleted_batch_does_not_belong_to_the_batch_that_has_none() -> None:
    old = batch(1, "old")
    world = World(old, batch(2, ""))
    world.delete(old.metadata.name)
    assert await refused(world, callback("old")) == (404, "unknown")


OTHER_ORDERS = {
    "another release": order_id(release(uid="another")),
    "an earlier release of this version": order_id(release()).replace("/1/", "/0/"),
    "no release": "prod/web/42",
}


async def refused(world: World, of: Callback) -> tuple[int, str]:
    """How a callback is refused. Nothing is stored."""
    with pytest.raises(EndpointError) as raised:
        await world.receiver.receive(of)
    assert world.received == []
    return raised.value.code, raised.value.outcome


@pytest.mark.parametrize("order", OTHER_ORDERS.values(), ids=OTHER_ORDERS)
@pytest.mark.parametrize("node", ["node", "unknown"])
async def test_callback_that_names_another_order_is_refused(order: str, node: str) -> None:
    world = World(batch(1, "node", handle="node"), batch(2, ""))
    assert await refused(world, replace(callback(node), order=order)) == (404, "unknown")


async def test_callback_about_an_unknown_node_is_refused_while_the_server_waits_for_the_answer() -> None:
    world = World(batch(1, "node", handle="node"))
    began = asyncio.get_running_loop().time()
    assert await refused(world, callback("unknown")) == (404, "unknown")
    assert asyncio.get_running_loop().time() - began < callback_endpoint._RECEIVE_SECONDS


@pytest.mark.parametrize("check_type", [CheckType.ORDER, CheckType.ACTION])
async def test_callback_about_a_check_that_altershield_starts_nowhere_is_refused(check_type: CheckType) -> None:
    world = World(batch(1, "node", handle="node"))
    assert await refused(world, replace(callback("node"), check_type=check_type)) == (404, "unknown")


async def test_other_verdict_on_a_check_that_is_over_is_refused() -> None:
    world = World(batch(1, "node", handle="node", state=CheckState.PASSED))
    assert await refused(world, callback("node")) == (409, "late")


async def test_verdict_that_comes_twice_changes_nothing() -> None:
    world = World(batch(1, "node", handle="node", state=CheckState.FAILED))
    await world.receiver.receive(callback("node"))
    assert world.received == []


async def test_callback_about_a_closed_order_is_refused() -> None:
    world = World(batch(1, "node", handle="node"))
    closed = Condition(ConditionType.REPORTED, "True", CLOSED)
    status = msgspec.structs.replace(world.release.status, conditions=(closed,))
    world.release = msgspec.structs.replace(world.release, status=status)
    assert await refused(world, callback("node")) == (409, "late")


async def test_node_that_the_batch_has_no_longer_is_refused() -> None:
    """The cache of the replica is behind: the batch has another node now."""
    world = World(batch(1, "node", handle="node"))
    live = world.get

    async def get(*arguments: Any, **options: Any) -> ChangePod:
        world.stored[batch(1, "").metadata.name] = batch(1, "newer", handle="newer")
        return await live(*arguments, **options)

    world.get = get  # type: ignore[method-assign]
    assert await refused(world, callback("node")) == (404, "unknown")


async def test_callback_waits_until_the_server_has_answered_that_the_check_is_repeated() -> None:
    waiting = batch(1, "node", repeated=True)
    world = World(waiting)
    name = waiting.metadata.name
    answered = batch(1, "node", repeated=True, handle="node")
    seen: list[str] = []
    live = world.get

    async def get(*arguments: Any, **options: Any) -> ChangePod:
        found = await live(*arguments, **options)
        seen.append(found.status.checks[0].handle)
        world.stored[name] = answered
        return found

    world.get = get  # type: ignore[method-assign]
    await world.receiver.receive(callback("node"))
    assert (seen, len(world.received)) == (["", "node"], 1)


async def test_failed_rules_are_bounded_and_those_that_may_not_be_ignored_are_kept() -> None:
    world = World(batch(1, "node", handle="node"))
    rules = [rule(each) for each in range(40)]
    rules += [rule(40, skippable=False), rule(41, verdict="PASS", began=9), rule(42, skipped=True, began=9)]
    await world.receiver.receive(callback("node", *rules))
    ((_, _, result),) = world.received
    assert isinstance(result, Fail)
    assert (len(result.rules), result.newest_rule) == (MAX_FAILED_RULES, 7)
    assert (result.rules[0].id, result.rules[0].ignorable) == ("execution-40", False)
    assert all(each.ignorable for each in result.rules[1:])
    assert msgspec.to_builtins(result.rules[1])["name"] == "rule-0"


async def test_rule_that_still_runs_does_not_date_a_pass() -> None:
    world = World(batch(1, "node", handle="node"))
    rules = [rule(1, verdict="PASS", began=3), rule(2, verdict="NONE", began=5)]
    await world.receiver.receive(callback("node", *rules, verdict=ServerVerdict.PASS))
    assert world.received[0][2] == Pass("", newest_rule=3)
