"""Releases that an AlterShield server checks, with a server that behaves as the published one."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from altershield.api.resources import CHANGE_WORKLOADS
from altershield.process.children import free_ports
from altershield.releases import history
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
from kube_sandbox.altershield_server.vocabulary import Call, Stage
from reconciler.server.settings import Settings
from tests.fault.reconciler_cluster import Cluster, running_cluster, version
from tests.fault.releases import batches, condition, release, until_state

TOKEN = "altershield-operator"
V1, V2 = version("v1"), version("v2")
TIMEOUT = 4


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        yield cluster


@contextlib.asynccontextmanager
async def checked(
    cluster: Cluster, directory: Path, script: Script, *, callbacks: bool = False, seconds: int = TIMEOUT
) -> AsyncIterator[AlterShieldServer]:
    """A server, and a reconciler that has it check all batches. With `callbacks`, the server sends verdicts to it."""
    token = directory / "token"
    token.write_text(TOKEN)
    port = free_ports(1)[0] if callbacks else 0
    url = f"http://127.0.0.1:{port}/openapi/altershield/callback" if port else None
    async with AlterShieldServer(token=TOKEN, script=script, callback_url=url) as server:
        settings = Settings(url=server.url, token_file=token)
        async with cluster.reconciler(server=settings, check_timeout=seconds, callback_port=port):
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
    async with checked(cluster, tmp_path, script):
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


async def test_release_succeeds_by_callbacks_alone(cluster: Cluster, tmp_path: Path) -> None:
    async with checked(cluster, tmp_path, Script(), callbacks=True, seconds=600) as server:
        await cluster.release(V1)
        await until_state(cluster, V1, "Success")
        assert called(server, Call.POLL) == 0


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
    async with checked(cluster, tmp_path, script, callbacks=True):
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
    script = Script(post=StageScript(verdict="fail", delay=(8, 8)))
    async with checked(cluster, tmp_path, script, callbacks=True):
        await cluster.release(V1)
        await until_state(cluster, V1, "Success")
        await until_state(cluster, V1, "Suspend")
