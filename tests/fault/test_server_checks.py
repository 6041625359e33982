"""Releases that an AlterShield server checks, with a server that behaves as the published one."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from altershield.api.check_specs import CheckSpec, OnUnknown, ServerCheck
from altershield.api.resources import CHANGE_WORKLOADS
from altershield.releases import history
from kube_base.processes import free_ports
from kube_sandbox.altershield_server.script import (
    CallbackScript,
    Case,
    Fault,
    FaultKind,
    RuleScript,
    Script,
    StageScript,
)
from kube_sandbox.altershield_server.server import AlterShieldServer
from kube_sandbox.altershield_server.vocabulary import Call, Code, Stage
from reconciler.batches import skipping
from reconciler.server.server_settings import Settings
from tests.fault.killing import Killer
from tests.fault.reconciler_cluster import Cluster, GoOn, running_cluster, version
from tests.fault.releases import apply_check, batches, condition, release, until_state

TOKEN = "altershield-operator"
V1, V2 = version("v1"), version("v2")
TIMEOUT = 4
UNHURRIED = 15
"""Seconds for a check whose failure only a poll at its deadline tells: a busy machine must not make it late, because a
check that did not end in time counts as passed."""


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        yield cluster


@contextlib.asynccontextmanager
async def checked(
    cluster: Cluster,
    directory: Path,
    script: Script,
    *,
    callbacks: bool = False,
    seconds: int = TIMEOUT,
    start_timeout: float = 3.0,
) -> AsyncIterator[AlterShieldServer]:
    """A server, and a reconciler that has it check all batches. With `callbacks`, the server sends verdicts to it."""
    token = directory / "token"
    token.write_text(TOKEN)
    port = free_ports(1)[0] if callbacks else 0
    url = f"http://127.0.0.1:{port}/openapi/altershield/callback" if port else None
    async with AlterShieldServer(token=TOKEN, script=script, callback_url=url) as server:
        settings = Settings(url=server.url, token_file=token)
        async with cluster.reconciler(
            server=settings, check_timeout=seconds, callback_port=port, start_timeout=start_timeout
        ):
            yield server


def called(server: AlterShieldServer, call: Call) -> int:
    return len(server.calls.of(call))


async def kept_checks(cluster: Cluster) -> list[tuple[str, str, str]]:
    """The name, the phase and the state of each check in the history of the only version."""
    (entry,) = await cluster.all(history.RESOURCE)
    return [(each.name, each.phase, each.state) for each in history.read(msgspec.json.encode(entry)).record.checks]


async def test_release_that_the_server_passes_succeeds_and_its_order_is_closed(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with checked(cluster, tmp_path, Script(), seconds=60) as server:
        await cluster.release(V1)
        found = await until_state(cluster, V1, "Success")
        assert condition(found, "Reported") == ("True", "OrderCreated")
        assert condition(found, "Checked") == ("True", "AllChecked")
        assert {each["status"]["message"] for each in await batches(cluster)} == {"PostFinish"}
        assert await kept_checks(cluster) == [("server", "Post", "Passed"), ("server", "Pre", "Passed")]

        async def closed() -> bool:
            found = await cluster.get(CHANGE_WORKLOADS, release(V1))
            return found is not None and condition(found, "Reported") == ("True", "OrderClosed")

        await cluster.until(closed, "the order closed")
        assert (called(server, Call.CREATE_ORDER), called(server, Call.START_BATCH)) == (1, 2)
        assert called(server, Call.CLOSE_ORDER) == 1


@pytest.mark.parametrize("stage", ["pre", "post"])
async def test_release_that_the_server_fails_is_suspended(cluster: Cluster, tmp_path: Path, stage: str) -> None:
    script = Script(**{stage: StageScript(verdict="fail")})
    async with checked(cluster, tmp_path, script, seconds=UNHURRIED):
        await cluster.release(V1)
        found = await until_state(cluster, V1, "Suspend")
        assert condition(found, "Verified") == ("False", "FailedByServer")
        assert ("server", stage.capitalize(), "Failed") in await kept_checks(cluster)


@pytest.mark.parametrize(("stage", "message"), [("pre", "PreTimeout"), ("post", "PostTimeout")])
async def test_check_that_does_not_end_counts_as_passed_and_is_visible(
    cluster: Cluster, tmp_path: Path, stage: str, message: str
) -> None:
    """A poll says `fail` while a check is running. This is no verdict."""
    async with checked(cluster, tmp_path, Script(**{stage: StageScript(verdict="never")})):
        await cluster.release(V1)
        assert condition(await until_state(cluster, V1, "Success"), "Checked") == ("False", "NotChecked")
        for each in await batches(cluster):
            assert each["status"]["message"] == message
            assert condition(each, "Verified") == ("True", "NotChecked")


async def test_release_that_the_server_refuses_fails_and_the_next_one_is_verified(
    cluster: Cluster, tmp_path: Path
) -> None:
    script = Script(faults=[Fault(kind=FaultKind.REFUSE, calls=[Call.CREATE_ORDER], times=1, message="no such scene")])
    async with checked(cluster, tmp_path, script) as server:
        await cluster.release(V1)
        found = await until_state(cluster, V1, "Failed")
        assert condition(found, "Reported") == ("False", "OrderRefused")
        assert "no such scene" in next(
            each["message"] for each in found["status"]["conditions"] if each["type"] == "Reported"
        )
        assert called(server, Call.CREATE_ORDER) == 1
        await cluster.release(V2)
        await until_state(cluster, V2, "Success")


async def test_server_that_is_down_does_not_hold_up_a_release(cluster: Cluster, tmp_path: Path) -> None:
    async with checked(cluster, tmp_path, Script(down=True)):
        await cluster.release(V1)
        found = await until_state(cluster, V1, "Success")
        assert condition(found, "Reported")[0] == "Unknown"
        assert {each["status"]["message"] for each in await batches(cluster)} == {"PreFailed"}


async def test_start_of_a_batch_is_not_repeated_if_its_answer_is_lost(cluster: Cluster, tmp_path: Path) -> None:
    """Each start that arrives creates another node and another check."""
    lost = Fault(kind=FaultKind.DROP, calls=[Call.START_BATCH], processed=True)
    async with checked(cluster, tmp_path, Script(faults=[lost])) as server:
        await cluster.release(V1)
        await until_state(cluster, V1, "Success")
        assert {each["status"]["message"] for each in await batches(cluster)} == {"PreFailed"}
        assert called(server, Call.START_BATCH) == 2  # one for each of the two batches


@pytest.mark.parametrize("verdict", ["fail", "pass"])
async def test_callback_tells_the_node_of_a_batch_whose_start_was_not_answered(
    cluster: Cluster, tmp_path: Path, verdict: str
) -> None:
    lost = Fault(kind=FaultKind.DROP, calls=[Call.START_BATCH], processed=True, times=1)
    script = Script(faults=[lost], cases=[Case(batch=1, check=StageScript(verdict=verdict, delay=(1, 1)))])
    async with checked(cluster, tmp_path, script, callbacks=True, seconds=600):
        await cluster.release(V1)
        await until_state(cluster, V1, "Suspend" if verdict == "fail" else "Success")
        results = [
            result["verdict"] for each in await batches(cluster) for result in each["status"].get("podResults", [])
        ]
        assert ("unpass" in results) == (verdict == "fail")


RULE = RuleScript(name="error rate", owner="sre", msg="12 % of requests fail")


@pytest.mark.parametrize("stage", ["pre", "post"])
async def test_failure_that_a_callback_tells_suspends_at_once_and_names_the_rule(
    cluster: Cluster, tmp_path: Path, stage: str
) -> None:
    script = Script(**{stage: StageScript(verdict="fail", rules=[RULE])})
    async with checked(cluster, tmp_path, script, callbacks=True, seconds=600):
        await cluster.release(V1)
        found = await until_state(cluster, V1, "Suspend")
        assert {pod["message"] for pod in found["status"]["defenseCheckFailPods"]} == {
            "error rate (sre): 12 % of requests fail"
        }


async def test_callback_that_names_another_order_or_node_is_refused_and_changes_nothing(
    cluster: Cluster, tmp_path: Path
) -> None:
    script = Script(pre=StageScript(verdict="never"))
    async with checked(cluster, tmp_path, script, callbacks=True, seconds=600) as server:
        await cluster.release(V1)

        async def started() -> bool:
            found = await batches(cluster)
            return len(found) == 2 and all(each.get("status", {}).get("changePodId") for each in found)

        await cluster.until(started, "the ids of both nodes")
        node = next(iter(server.nodes.values()))
        before = [each["status"] for each in await batches(cluster)]
        foreign = replace(node, order=replace(node.order, id="another-release/1/shop/sleep"))
        assert await server.send_callback(foreign, Stage.PRE, "fail") == 404
        assert await server.send_callback(replace(node, id="0" * 36), Stage.PRE, "fail") == 404
        assert await server.send_callback(node, Stage.POST, "fail") == 409, "this check has not begun"
        assert [each["status"] for each in await batches(cluster)] == before
        assert await server.send_callback(node, Stage.PRE, "fail") == 200
        await until_state(cluster, V1, "Suspend")
        assert await server.send_callback(node, Stage.PRE, "fail") == 200, "a duplicate changes nothing"
        assert await server.send_callback(node, Stage.PRE, "pass") == 409, "the check is over"


async def test_release_succeeds_by_callbacks_alone(cluster: Cluster, tmp_path: Path) -> None:
    """On a busy machine, the end of each of the two batches is reported late. A poll then comes before the report, and
    the report waits for its answer."""
    script = Script(faults=[Fault(kind=FaultKind.DROP, calls=[Call.POLL], skip=2)])
    async with checked(cluster, tmp_path, script, callbacks=True, seconds=600) as server:
        await cluster.release(V1)
        await until_state(cluster, V1, "Success")
        reported = {each.body["nodeId"]: each.number for each in server.calls.of(Call.FINISH)}
        answered = [each for each in server.calls.of(Call.POLL) if each.status is not None]
        assert all(each.number < reported[each.body["nodeId"]] for each in answered)


@pytest.mark.parametrize(
    "callbacks",
    [
        CallbackScript(duplicate=1.0),
        CallbackScript(lose=1.0),
        CallbackScript(reorder=1.0),
        CallbackScript(before_answer=True),
        CallbackScript(late=1.0, late_by=(0.5, 1.5)),
    ],
    ids=["duplicate", "lost", "reordered", "before the answer", "late"],
)
async def test_verdict_is_not_lost_whatever_happens_to_callbacks(
    cluster: Cluster, tmp_path: Path, callbacks: CallbackScript
) -> None:
    script = Script(callbacks=callbacks, cases=[Case(batch=1, check=StageScript(verdict="fail"))])
    async with checked(cluster, tmp_path, script, callbacks=True, seconds=UNHURRIED):
        await cluster.release(V1)
        await until_state(cluster, V1, "Suspend")


@pytest.mark.parametrize("stage", Stage)
async def test_verdict_that_comes_before_the_answers_of_a_slow_server_counts(
    cluster: Cluster, tmp_path: Path, stage: Stage
) -> None:
    script = Script(latency=(0.5, 1.0), cases=[Case(batch=1, stage=stage, check=StageScript(verdict="fail"))])
    async with checked(cluster, tmp_path, script, callbacks=True, seconds=600):
        await cluster.release(V1)
        await until_state(cluster, V1, "Suspend")


async def test_failure_that_comes_after_the_timeout_suspends_a_release_that_had_passed(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The release has not settled, so its order is open."""
    script = Script(post=StageScript(verdict="fail", delay=(8, 8)))
    async with checked(cluster, tmp_path, script, callbacks=True, start_timeout=60.0):
        await cluster.release(V1)
        await until_state(cluster, V1, "Success")
        await until_state(cluster, V1, "Suspend")


# approvals and repetitions


async def ask(cluster: Cluster, verb: str, version: str = V1) -> str:
    """Ask as a person does, and return what was done."""

    async def outcomes() -> list[str]:
        found = await cluster.get(CHANGE_WORKLOADS, release(version))
        return [each["outcome"] for each in found["status"].get("actions", [])] if found is not None else []

    async def answered() -> str:
        return "".join((await outcomes())[before:])

    before = len(await outcomes())
    request = {"verb": verb, "by": "alice", "reason": "the rule is wrong"}
    await cluster.set_status(CHANGE_WORKLOADS, release(version), {"request": request})
    return await cluster.until(answered, f"the answer to {verb}")


async def skips(cluster: Cluster) -> list[str]:
    """What is known of the skips of failed rules."""
    checks = [check for each in await batches(cluster) for check in each["status"].get("checks", [])]
    return [each["skip"]["state"] for each in checks if "skip" in each]


async def until_skipped(cluster: Cluster, state: str) -> None:
    async def met() -> bool:
        return set(await skips(cluster)) == {state}

    await cluster.until(met, f"the skip {state}")


def failing_first(stage: str, **rule: object) -> Script:
    """The first batch fails in this stage, by one rule."""
    failing = StageScript(verdict="fail", rules=[RuleScript(name="error rate", owner="sre", **rule)])  # type: ignore[arg-type]
    return Script(cases=[Case(batch=0, stage=Stage(stage), check=failing)])


@pytest.mark.parametrize("stage", ["PRE", "POST"])
async def test_approval_tells_the_server_to_ignore_the_rules_that_failed(
    cluster: Cluster, tmp_path: Path, stage: str
) -> None:
    async with checked(cluster, tmp_path, failing_first(stage), callbacks=True, seconds=600) as server:
        await cluster.release(V1)
        await until_state(cluster, V1, "Suspend")
        assert "the AlterShield server is told to ignore 1 failed rules" in await ask(cluster, "Approve")
        await until_state(cluster, V1, "Success")
        await until_skipped(cluster, "Done")
        (node,) = [each for each in server.nodes.values() if each.batch == 0]
        assert node.state == f"{stage}_AOP_IGNORE"
        (call,) = server.calls.of(Call.SKIP)
        (feedback,) = call.body["feedbackVOList"]
        assert feedback["ruleExeId"] == node.checks[Stage(stage)].executions[0].id
        assert (feedback["operator"], feedback["skipComments"]) == ("alice", "approved by alice: the rule is wrong")


async def test_approval_does_not_tell_the_server_if_a_rule_may_not_be_ignored(cluster: Cluster, tmp_path: Path) -> None:
    script = failing_first("PRE", allow_ignore=False)
    async with checked(cluster, tmp_path, script, callbacks=True, seconds=600) as server:
        await cluster.release(V1)
        await until_state(cluster, V1, "Suspend")
        outcome = await ask(cluster, "Approve")
        assert 'the AlterShield server is not told, because its rule "error rate" may not be ignored' in outcome
        await until_state(cluster, V1, "Success")
        assert (called(server, Call.SKIP), await skips(cluster)) == (0, [])


@pytest.mark.parametrize(
    "fault",
    [
        Fault(kind=FaultKind.DROP, calls=[Call.SKIP], processed=True),
        Fault(kind=FaultKind.REFUSE, calls=[Call.SKIP], message="no"),
        Fault(kind=FaultKind.EMPTY, calls=[Call.SKIP]),
    ],
    ids=["lost answer", "refused", "crash"],
)
async def test_approval_holds_if_the_server_cannot_be_told_which_is_tried_once(
    cluster: Cluster, tmp_path: Path, fault: Fault
) -> None:
    script = failing_first("POST")
    script.faults = [fault]
    async with checked(cluster, tmp_path, script, callbacks=True, seconds=600) as server:
        await cluster.release(V1)
        await until_state(cluster, V1, "Suspend")
        await ask(cluster, "Approve")
        await until_state(cluster, V1, "Success")
        await until_skipped(cluster, "Failed")
        assert called(server, Call.SKIP) == 1


async def test_server_that_cannot_be_reached_is_told_of_the_approval_later(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skipping, "_RETRY_SECONDS", 0.3)
    async with checked(cluster, tmp_path, failing_first("POST"), callbacks=True, seconds=600) as server:
        await cluster.release(V1)
        await until_state(cluster, V1, "Suspend")
        await server.close_listener()
        await ask(cluster, "Approve")
        await until_state(cluster, V1, "Success")
        assert await skips(cluster) != ["Done"]
        await server.listen()
        await until_skipped(cluster, "Done")
        assert called(server, Call.SKIP) == 1


@pytest.mark.parametrize(("killed_at", "then"), [("Requested", "Done"), ("Sent", "Failed")])
async def test_reconciler_that_is_killed_tells_the_server_once(
    cluster: Cluster, tmp_path: Path, killed_at: str, then: str
) -> None:
    script = failing_first("POST")
    script.faults = [Fault(kind=FaultKind.HANG, calls=[Call.SKIP])] if killed_at == "Sent" else []
    token = tmp_path / "token"
    token.write_text(TOKEN)
    port = free_ports(1)[0]
    url = f"http://127.0.0.1:{port}/openapi/altershield/callback"
    async with AlterShieldServer(token=TOKEN, script=script, callback_url=url) as server:
        settings = Settings(url=server.url, token_file=token)

        async def no_write_of_sent(request: web.Request, go_on: GoOn) -> web.StreamResponse:
            if killed_at == "Requested" and b'"state":"Sent"' in await request.read():
                return web.Response(status=500)
            return await go_on()

        async with cluster.reconciler(server=settings, check_timeout=600, callback_port=port):
            await cluster.release(V1)
            await until_state(cluster, V1, "Suspend")
            cluster.set_fault(no_write_of_sent)
            await ask(cluster, "Approve")
            await until_skipped(cluster, killed_at)
        killed_at, server.script.faults = "", []
        async with cluster.reconciler(identity="two", server=settings, check_timeout=600):
            await until_skipped(cluster, then)
            assert called(server, Call.SKIP) == 1


async def test_retry_has_the_server_repeat_its_check_on_the_same_node(cluster: Cluster, tmp_path: Path) -> None:
    async with checked(cluster, tmp_path, failing_first("PRE"), callbacks=True, seconds=600) as server:
        await cluster.release(V1)
        await until_state(cluster, V1, "Suspend")
        started = called(server, Call.START_BATCH)
        server.script.cases = []
        assert "verified again" in await ask(cluster, "Retry")
        await until_state(cluster, V1, "Success")
        assert called(server, Call.RESUBMIT) == 1
        assert len({each.batch for each in server.nodes.values()}) == len(server.nodes) >= started


async def test_check_that_fails_again_after_a_retry_suspends_again(cluster: Cluster, tmp_path: Path) -> None:
    async with checked(cluster, tmp_path, failing_first("PRE"), callbacks=True, seconds=600) as server:
        await cluster.release(V1)
        for times in (1, 2):
            await until_state(cluster, V1, "Suspend")
            await ask(cluster, "Retry")
            await until_state(cluster, V1, "Suspend")
            assert called(server, Call.RESUBMIT) == times


async def test_resubmission_is_repeated_if_its_answer_is_lost(cluster: Cluster, tmp_path: Path) -> None:
    script = failing_first("PRE")
    script.faults = [Fault(kind=FaultKind.DROP, calls=[Call.RESUBMIT], processed=True, times=1)]
    async with checked(cluster, tmp_path, script, callbacks=True, seconds=600) as server:
        await cluster.release(V1)
        await until_state(cluster, V1, "Suspend")
        script.cases = []
        await ask(cluster, "Retry")
        await until_state(cluster, V1, "Success")
        assert called(server, Call.RESUBMIT) == 2
        assert len([each for each in server.nodes.values() if each.batch == 0]) == 1


async def test_batch_gets_a_new_node_if_the_server_refuses_to_repeat_its_check(
    cluster: Cluster, tmp_path: Path
) -> None:
    script = failing_first("PRE")
    script.faults = [Fault(kind=FaultKind.REFUSE, calls=[Call.RESUBMIT], code=Code.NOT_SUPPORTED)]
    async with checked(cluster, tmp_path, script, callbacks=True, seconds=600) as server:
        await cluster.release(V1)
        await until_state(cluster, V1, "Suspend")
        script.cases = []
        await ask(cluster, "Retry")
        await until_state(cluster, V1, "Success")
        assert called(server, Call.RESUBMIT) == 1
        assert len([each for each in server.nodes.values() if each.batch == 0]) == 2


async def test_failure_that_a_poll_found_is_checked_again_in_a_new_batch(cluster: Cluster, tmp_path: Path) -> None:
    """The server has taken such a batch as finished, and does not repeat its check."""
    async with checked(cluster, tmp_path, failing_first("PRE"), seconds=UNHURRIED) as server:
        await cluster.release(V1)
        await until_state(cluster, V1, "Suspend")
        server.script.cases = []
        await ask(cluster, "Retry")
        await until_state(cluster, V1, "Success")
        assert called(server, Call.RESUBMIT) == 0


@pytest.mark.parametrize("stale", ["pass", "fail", "pass without rules"])
async def test_callback_of_the_first_run_does_not_decide_the_second_one(
    cluster: Cluster, tmp_path: Path, stale: str
) -> None:
    script = failing_first("PRE")
    async with checked(cluster, tmp_path, script, callbacks=True, seconds=600) as server:
        await cluster.release(V1)
        await until_state(cluster, V1, "Suspend")
        (node,) = [each for each in server.nodes.values() if each.batch == 0]
        first = list(node.pre.executions)
        second = "fail" if stale.startswith("pass") else "pass"
        script.cases = [Case(batch=0, stage=Stage.PRE, check=StageScript(verdict=second, delay=(2, 2)))]
        await ask(cluster, "Retry")

        async def repeated() -> bool:
            checks = [check for each in await batches(cluster) for check in each["status"].get("checks", [])]
            return any(each.get("repeated") and each.get("handle") for each in checks)

        await cluster.until(repeated, "the second run")
        rules = [] if stale == "pass without rules" else first
        await server.send_verdict(node, Stage.PRE, stale.partition(" ")[0], rules)
        await until_state(cluster, V1, "Suspend" if second == "fail" else "Success")
        assert called(server, Call.RESUBMIT) == 1


async def test_retry_of_a_batch_that_waits_has_the_server_repeat_its_check(cluster: Cluster, tmp_path: Path) -> None:
    script = Script(pre=StageScript(delay=(6, 6)), callbacks=CallbackScript(lose=1.0))
    async with checked(cluster, tmp_path, script) as server:
        await apply_check(cluster, CheckSpec("gate", on_unknown=OnUnknown.HOLD, server=ServerCheck()))
        await cluster.release(V1, replicas=1)

        async def held() -> bool:
            return [condition(each, "Verified")[1] for each in await batches(cluster)] == ["Held"]

        await cluster.until(held, "the batch held")
        script.pre = StageScript()
        assert "verified again" in await ask(cluster, "Retry")
        await until_state(cluster, V1, "Success")
        assert (called(server, Call.RESUBMIT), called(server, Call.START_BATCH)) == (1, 1)


async def test_verdict_that_comes_before_the_answer_to_the_resubmission_counts(
    cluster: Cluster, tmp_path: Path
) -> None:
    script = failing_first("PRE")
    async with checked(cluster, tmp_path, script, callbacks=True, seconds=600) as server:
        await cluster.release(V1)
        await until_state(cluster, V1, "Suspend")
        script.callbacks = CallbackScript(before_answer=True)
        script.faults = [Fault(kind=FaultKind.SLOW, calls=[Call.RESUBMIT], seconds=1.0)]
        await ask(cluster, "Retry")
        await until_state(cluster, V1, "Suspend")
        assert called(server, Call.RESUBMIT) == 1
        assert server.callbacks[-1].stage == Stage.PRE


@pytest.mark.parametrize("fatal", range(1, 7))
@pytest.mark.parametrize("verb", ["Approve", "Retry"])
async def test_request_ends_the_same_if_the_reconciler_is_killed_after_any_of_its_writes(
    cluster: Cluster, tmp_path: Path, verb: str, fatal: int
) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    port = free_ports(1)[0]
    url = f"http://127.0.0.1:{port}/openapi/altershield/callback"
    script = failing_first("PRE")
    async with AlterShieldServer(token=TOKEN, script=script, callback_url=url) as server:
        settings = Settings(url=server.url, token_file=token)
        async with cluster.reconciler(server=settings, check_timeout=600, callback_port=port):
            await cluster.release(V1)
            await until_state(cluster, V1, "Suspend")
            script.cases = []
            killer = Killer(fatal)
            cluster.set_fault(killer)
            request = {"verb": verb, "by": "alice", "reason": "the rule is wrong"}
            await cluster.set_status(CHANGE_WORKLOADS, release(V1), {"request": request})
            await killer.struck.wait()
        killer.fatal = 0
        killer.struck.clear()
        async with cluster.reconciler(identity="two", server=settings, check_timeout=600, callback_port=port):
            found = await until_state(cluster, V1, "Success")
            assert [(each["verb"], each["result"]) for each in found["status"]["actions"]] == [(verb, "Done")]
            assert len([each for each in server.nodes.values() if each.batch == 0]) == 1
            if verb == "Approve":
                await cluster.until(lambda: ended_skips(cluster), "the end of the skip")
                assert called(server, Call.SKIP) <= 1
            else:
                assert called(server, Call.RESUBMIT) >= 1, "it is sent again if the answer is lost or comes too late"


async def ended_skips(cluster: Cluster) -> bool:
    return (await skips(cluster)) in (["Done"], ["Failed"])
