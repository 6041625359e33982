"""The script: which checks fail, and its paths over HTTP."""

from typing import Any

import msgspec
import pytest

from kube_sandbox.altershield_server import chance, script
from kube_sandbox.altershield_server.script import Case, Script, StageScript
from kube_sandbox.altershield_server.vocabulary import Call, Stage
from support.altershield import Caller


def verdicts(chosen: Script, batch: int = 0) -> list[str]:
    names = [f"order-{number}" for number in range(1000)]
    return [script.plan(chosen, Stage.POST, name, (name,), batch).verdict for name in names]


def test_share_of_the_checks_fails_as_the_seed_says() -> None:
    chosen = Script(seed=1, post=StageScript(fail_share=0.1))
    first = verdicts(chosen)
    assert 60 <= first.count("fail") <= 140
    assert first == verdicts(chosen)
    assert first != verdicts(chosen, batch=1)
    chosen.seed = 2
    assert first != verdicts(chosen)


def test_share_of_0_fails_none_and_of_1_all() -> None:
    assert set(verdicts(Script())) == {"pass"}
    assert set(verdicts(Script(post=StageScript(fail_share=1.0)))) == {"fail"}


def test_delay_is_in_its_range_and_differs() -> None:
    chosen = Script(post=StageScript(delay=(0.2, 5.0)))
    delays = [script.plan(chosen, Stage.POST, f"order-{number}", (), 0).delay for number in range(200)]
    assert all(0.2 <= delay < 5.0 for delay in delays)
    assert len({*delays}) == 200


def test_first_case_that_matches_decides() -> None:
    failing, stuck = StageScript(verdict="fail"), StageScript(verdict="stuck")
    chosen = Script(
        cases=[
            Case(order="shop/*", batch=1, check=failing),
            Case(order="web", stage=Stage.PRE, check=stuck),
            Case(order="shop/*", check=StageScript(verdict="never")),
        ]
    )

    def verdict(stage: Stage, batch: int, *names: str) -> str:
        return script.plan(chosen, stage, names[0], names, batch).verdict

    assert verdict(Stage.POST, 1, "shop/1", "web") == "fail"
    assert verdict(Stage.PRE, 0, "shop/1", "web") == "stuck"
    assert verdict(Stage.POST, 0, "shop/1", "web") == "never"
    assert verdict(Stage.POST, 0, "other", "title") == "pass"


async def test_case_selects_an_order_by_its_id_its_title_or_its_application(caller: Caller) -> None:
    await caller.create_order(changeApps=["web", None])
    await caller.start_batch()
    (node,) = caller.server.nodes.values()
    assert node.order.names == ("prod/web/42", "web: release 42", "web")


def test_fractions_are_evenly_distributed() -> None:
    numbers = [chance.fraction(3, "key", number) for number in range(10_000)]
    assert all(0 <= number < 1 for number in numbers)
    assert abs(sum(numbers) / len(numbers) - 0.5) < 0.02


async def put(caller: Caller, body: Any) -> tuple[int, Any]:
    async with caller.session.put(f"{caller.server.url}/sandbox/script", json=body) as response:
        return response.status, await response.json()


async def get(caller: Caller, path: str) -> Any:
    async with caller.session.get(f"{caller.server.url}/sandbox/{path}") as response:
        return await response.json()


async def test_script_is_replaced_over_http(caller: Caller) -> None:
    caller.server.script.seed = 9
    body = {
        "post": {"verdict": "fail", "delay": [0, 0.5], "rules": [{"name": "error rate", "msg": "5 %"}]},
        "cases": [{"order": "web*", "stage": "PRE", "check": {"verdict": "never"}}],
        "faults": [{"kind": "http", "calls": ["poll"], "times": 2}],
        "callbacks": {"lose": 0.5},
    }
    status, answer = await put(caller, body)
    assert status == 200
    assert answer == await get(caller, "script")
    chosen = caller.server.script
    assert (chosen.seed, chosen.post.verdict, chosen.post.delay) == (0, "fail", (0.0, 0.5))
    assert (chosen.faults[0].calls, chosen.callbacks.lose) == ([Call.POLL], 0.5)
    assert msgspec.convert(answer, Script) == chosen


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"unknown": 1},
        {"post": {"fail_share": 2}},
        {"post": {"delay": [-1, 0]}},
        {"post": {"rules": [{}] * 101}},
        {"faults": [{"kind": "explode"}]},
        {"faults": [{"kind": "http", "status": 200}]},
        {"cases": [{"check": {"verdict": "x" * 257}}]},
    ],
)
async def test_invalid_script_is_refused_and_the_present_one_stays(caller: Caller, body: Any) -> None:
    before = caller.server.script
    status, answer = await put(caller, body)
    assert (status, caller.server.script) == (400, before)
    assert answer["error"]


async def test_calls_and_callbacks_are_listed_over_http(caller: Caller) -> None:
    await caller.create_order()
    node = await caller.start_batch()
    await caller.code(Call.CREATE_ORDER)
    await caller.server.settled()
    calls = (await get(caller, "calls"))["items"]
    assert [(each["number"], each["call"], each["status"], each["code"]) for each in calls] == [
        (1, "create_order", 200, "000"),
        (2, "start_batch", 200, "000"),
        (3, "create_order", 200, "106"),
    ]
    assert calls[1]["body"]["batchNo"] == 0
    assert [each["number"] for each in (await get(caller, "calls?after=1&call=create_order"))["items"]] == [3]
    assert "error" in await get(caller, "calls?after=x")
    (callback,) = (await get(caller, "callbacks"))["items"]
    assert (callback["node"], callback["stage"], callback["status"]) == (node, "PRE", 200)
    (listed,) = (await get(caller, "nodes"))["items"]
    assert (listed["id"], listed["state"], listed["pre"]["passed"]) == (node, "PRE_AOP_FINISH", True)
    async with caller.session.delete(f"{caller.server.url}/sandbox/calls"):
        assert (await get(caller, "calls"))["items"] == []
    await caller.start_batch()
    assert caller.server.calls[0].number == 4


async def test_recorded_calls_are_bounded_and_contain_no_signature(caller: Caller) -> None:
    assert caller.server.calls.maxlen == caller.server.callbacks.maxlen == 10_000
    await caller.create_order()
    (call,) = caller.server.calls.of(Call.CREATE_ORDER)
    assert (call.signed, call.platform, call.order) == (True, "kubernetes", "prod/web/42")
    assert not any("Sign" in key for key in call.body)


async def test_only_the_ids_of_a_large_body_are_recorded(caller: Caller) -> None:
    await caller.create_order()
    await caller.start_batch(effectiveTargetLocations=["x" * 70_000])
    assert caller.server.calls[-1].body == {"bizExecOrderId": "prod/web/42", "batchNo": 0}
    assert (await caller.raw(Call.CREATE_ORDER, b" " * 2_000_000))[0] == 413
    assert caller.server.calls[-1].status == 413
