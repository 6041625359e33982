"""How gatekeepers count deletions in the status of PodDeletionFlowControls: shared writes, conflicts, errors."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from altershield.api.flow_control import BreakerMode, Mode, OnError, PodDeletionFlowControl
from altershield.api.resources import POD_DELETION_FLOW_CONTROLS
from altershield.api.selectors import Selector
from altershield.flow_control import breaker as breakers
from altershield.flow_control.deletion import Deletion, Operation
from gatekeeper.records.flow_controls import CountedFlowControls, Decided
from kube_base.access.errors import ConflictError, NotFoundError, ServerError
from tests.unit.altershield.flow_control.builders import NOW, deletion, policy

pytestmark = pytest.mark.looptime


@dataclass
class Api:
    """An API server with policies. A request takes `seconds`."""

    stored: dict[str, PodDeletionFlowControl] = field(default_factory=dict)
    seconds: float = 0.01
    error: Exception | None = None
    puts: int = 0
    gets: int = 0

    @classmethod
    def of(cls, *policies: PodDeletionFlowControl, seconds: float = 0.01) -> "Api":
        api = cls(seconds=seconds)
        api.put(*policies)
        return api

    def put(self, *policies: PodDeletionFlowControl) -> None:
        for each in policies:
            old = self.stored.get(each.metadata.name)
            version = str(int(old.metadata.resource_version) + 1 if old is not None else 1)
            metadata = msgspec.structs.replace(each.metadata, resource_version=version)
            self.stored[each.metadata.name] = msgspec.structs.replace(each, metadata=metadata)

    async def get(self, resource: Any, name: str, namespace: str = "", *, as_: Any) -> PodDeletionFlowControl:
        self.gets += 1
        return await self._stored(name)

    async def replace(
        self, resource: Any, obj: PodDeletionFlowControl, name: str, *_: Any, **__: Any
    ) -> PodDeletionFlowControl:
        self.puts += 1
        if obj.metadata.resource_version != (await self._stored(name)).metadata.resource_version:
            raise ConflictError("changed", code=409)
        self.put(obj)
        return self.stored[name]

    async def _stored(self, name: str) -> PodDeletionFlowControl:
        await asyncio.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        if name not in self.stored:
            raise NotFoundError("gone", code=404)
        return self.stored[name]

    def used(self, name: str = "guard") -> int:
        return self.stored[name].status.windows[0].used if self.stored[name].status.windows else 0


class Cache:
    """An informer whose watch never brings anything."""

    synced = True
    resource = POD_DELETION_FLOW_CONTROLS

    def __init__(self, api: Api) -> None:
        self._objects = dict(api.stored)

    def __len__(self) -> int:
        return len(self._objects)

    def all(self) -> list[PodDeletionFlowControl]:
        return list(self._objects.values())

    def get(self, namespace: str, name: str) -> PodDeletionFlowControl | None:
        return self._objects.get(name)

    def observe(self, obj: PodDeletionFlowControl) -> None:
        self._objects[obj.metadata.name] = obj


def gatekeeper(api: Api, clock: Callable[[], float] = lambda: NOW) -> CountedFlowControls:
    cache: Any = Cache(api)
    return CountedFlowControls(api, cache, cache, lambda namespace: {"team": "shop"}, clock)  # type: ignore[arg-type]


def uids(number: int, first: int = 0) -> list[Deletion]:
    return [deletion(f"u{each}", operation=Operation.EVICT) for each in range(first, first + number)]


async def decide(controls: CountedFlowControls, *deletions: Deletion) -> list[Decided]:
    found = await asyncio.gather(*(controls.decide(each, 3.0) for each in deletions))
    assert None not in found
    return [each for each in found if each is not None]


async def test_400_deletions_through_three_gatekeepers_take_exactly_the_free_slots_in_few_writes() -> None:
    api = Api.of(policy("1h/120"))
    gatekeepers = [gatekeeper(api) for _ in range(3)]
    everyone = uids(400)
    parts = [everyone[number::3] for number in range(3)]
    answers = await asyncio.gather(*(decide(each, *part) for each, part in zip(gatekeepers, parts, strict=True)))
    refused = [answer for part in answers for answer in part if answer.refusal]
    assert (len(refused), api.used(), any(each.busy for each in refused)) == (280, 120, False)
    assert len(api.stored["guard"].status.pending) == 120
    assert api.puts <= 12


async def test_doubled_requests_for_one_pod_count_once_in_all_gatekeepers() -> None:
    api = Api.of(policy("1h/5"))
    answers = await asyncio.gather(*(decide(gatekeeper(api), *[deletion("a")] * 4) for _ in range(3)))
    assert {answer.refusal for part in answers for answer in part} == {""}
    assert api.used() == 1


async def test_deletion_that_one_policy_refuses_is_not_counted_in_the_others() -> None:
    api = Api.of(policy("1h/5", name="a"), policy("1h/5", name="b"))
    late = gatekeeper(api)
    await decide(gatekeeper(api), *uids(5))
    (refused,) = await decide(late, deletion("late"))  # its cache has counted nothing yet
    assert "b: 5 of 5" in refused.refusal or "a: 5 of 5" in refused.refusal
    assert (api.used("a"), api.used("b")) == (5, 5)
    assert "late" not in api.stored["a"].status.pending
    one = Api.of(policy("1h/5", name="a"), policy("1h/1", name="b"))
    stale = gatekeeper(one)
    await decide(gatekeeper(one), deletion("first"))
    (refused,) = await decide(stale, deletion("second"))
    assert refused.policy == "b"
    await asyncio.sleep(0.1)
    assert (one.used("a"), one.used("b")) == (1, 1)


async def test_refusal_by_an_old_cache_is_read_again_at_most_once_a_second() -> None:
    api = Api.of(policy("1h/1", breaker=BreakerMode.MANUAL))
    controls = gatekeeper(api)
    answers = await decide(controls, deletion("a"), deletion("b"))
    assert [bool(each.refusal) for each in answers] == [False, True]
    assert api.stored["guard"].status.breaker.state == "Open"
    await asyncio.sleep(2)
    stored = api.stored["guard"]
    reset = msgspec.structs.replace(stored.status, breaker=breakers.reset_by("ann", NOW))
    raised = policy("1h/2", breaker=BreakerMode.MANUAL)
    api.put(msgspec.structs.replace(stored, spec=raised.spec, status=reset))  # the watch does not bring it
    (passed,) = await decide(controls, deletion("c"))
    assert passed.refusal == ""
    gets = api.gets
    for _ in range(5):
        await decide(controls, deletion("d"))
    assert api.gets - gets <= 1


@pytest.mark.parametrize("on_error", list(OnError))
async def test_on_error_decides_about_deletions_that_cannot_be_counted(on_error: OnError) -> None:
    api = Api.of(policy("1h/5", on_error=on_error))
    for api.error, api.seconds in ((ServerError("down", code=500), 0.01), (None, 60.0)):
        controls = gatekeeper(api)
        began = asyncio.get_running_loop().time()
        (found,) = await decide(controls, deletion("a"))
        assert asyncio.get_running_loop().time() - began <= 3.1
        if on_error == OnError.DENY:
            assert found.refusal == "PodDeletionFlowControl guard is busy with other requests: try again"
            assert found.busy
        else:
            assert "is not counted (onError: Allow)" in str(found.hints[0])
        (exempt,) = await decide(controls, deletion("b", exempt=True))
        assert exempt.refusal == ""


async def test_refused_deletions_are_written_soon_and_together() -> None:
    api = Api.of(policy("1h/0"))
    controls = gatekeeper(api)
    for number in range(30):
        await decide(controls, deletion(f"u{number}"))
    assert api.puts == 0
    await asyncio.sleep(10)
    assert api.puts == 1
    assert len(api.stored["guard"].status.last_denied) == 20


async def test_deletion_that_is_refused_in_a_write_or_as_a_dry_run_is_not_written_again() -> None:
    api = Api.of(policy("1h/1"))
    controls = gatekeeper(api)
    answers = await decide(controls, deletion("a"), deletion("b"), deletion("c", dry_run=True))
    assert [bool(each.refusal) for each in answers] == [False, True, True]
    await decide(controls, deletion("c", dry_run=True))
    await asyncio.sleep(10)
    assert [(each.name, each.count) for each in api.stored["guard"].status.last_denied] == [("web-b", 1)]
    assert api.puts == 1


async def test_dry_runs_write_nothing_and_deleted_or_other_policies_decide_nothing() -> None:
    api = Api.of(policy("1h/1"))
    controls = gatekeeper(api)
    assert not controls.would_refuse(deletion("a", dry_run=True))
    (found,) = await decide(controls, deletion("a", dry_run=True))
    assert (found.refusal, api.puts) == ("", 0)
    del api.stored["guard"]
    (found,) = await decide(controls, deletion("a"))
    assert found.refusal == ""
    other = Api.of(policy("1h/0", namespace_selector=Selector({"team": "bank"})))
    assert await gatekeeper(other).decide(deletion("a"), 3.0) is None
    assert gatekeeper(other).decide_unread("shop/web") is not None


@pytest.mark.parametrize("covers", [True, False])
async def test_policy_that_was_created_again_decides_only_about_what_it_covers(covers: bool) -> None:
    api = Api.of(policy("1h/5"))
    controls = gatekeeper(api)
    api.put(policy("1h/0", namespace_selector=Selector({"team": "shop" if covers else "bank"})))
    (found,) = await decide(controls, deletion("a"))
    assert bool(found.refusal) == covers
    assert api.used() == 0


@pytest.mark.parametrize("synced", [(True, True), (True, False), (False, True)])
def test_caches_are_filled_when_those_of_policies_and_namespaces_are(synced: tuple[bool, bool]) -> None:
    api: Any = Api()
    policies: Any = Cache(api)
    namespaces: Any = Cache(api)
    policies.synced, namespaces.synced = synced
    assert CountedFlowControls(api, policies, namespaces, lambda namespace: {}, lambda: NOW).filled == all(synced)


@pytest.mark.parametrize(
    ("spec", "refused"), [({}, True), ({"mode": Mode.WARN}, False), ({"on_error": OnError.ALLOW}, False)]
)
async def test_pod_that_cannot_be_read_or_counted_is_kept_only_by_an_enforced_policy_that_denies_on_errors(
    spec: dict[str, Any], refused: bool
) -> None:
    api = Api.of(policy("1h/5", **{"on_error": OnError.DENY, **spec}))
    controls = gatekeeper(api)
    assert (controls.decide_unread("shop/web") is not None) == refused
    api.error = ServerError("down", code=500)
    (found,) = await decide(controls, deletion("a"))
    assert bool(found.refusal) == refused


async def test_deletion_whose_time_is_up_is_refused_and_not_counted_afterwards() -> None:
    api = Api.of(policy("1h/5", on_error=OnError.DENY), seconds=2.0)
    controls = gatekeeper(api)
    first = asyncio.create_task(controls.decide(deletion("a"), 3.0))
    await asyncio.sleep(0.1)
    began = asyncio.get_running_loop().time()
    found = await controls.decide(deletion("b"), 0.5)
    assert asyncio.get_running_loop().time() - began == pytest.approx(0.5, abs=0.1)
    assert found is not None
    assert found.busy
    await first
    await asyncio.sleep(5)
    assert (api.used(), set(api.stored["guard"].status.pending)) == (1, {"a"})


async def test_memory_of_refused_deletions_that_wait_to_be_written_is_bounded() -> None:
    api = Api.of(policy("1h/0"))
    controls = gatekeeper(api)
    await decide(controls, *uids(150))
    assert len(controls._denied["guard"]) == 100
