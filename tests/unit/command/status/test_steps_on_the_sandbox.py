"""`status`, `wait` and the requests about a release in steps, with its status written by the test in place of a
reconciler."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from altershield.api.resources import CHANGE_WORKLOADS
from altershield.api.rollout import PassedStep, Phase
from command.status import EXIT_SUSPENDED, EXIT_UNDER_WAY
from tests.fault.reconciler_cluster import running_cluster
from tests.unit.altershield.views.builders import V1
from tests.unit.command.status.stepped import STEP_1, World


@pytest.fixture
async def world(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> AsyncIterator[World]:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        world = World(cluster, tmp_path / "admin.kubeconfig", capsys)
        await world.release()
        yield world


async def test_status_shows_the_steps_of_a_workload_that_is_named(world: World) -> None:
    shown = (await world.run("status", "deploy/web", code=EXIT_UNDER_WAY)).stdout
    header, row, empty, *lines = shown.splitlines()
    assert header.startswith("NAME")
    assert "step 1 of 4: 0 of 1 pods are verified" in row
    assert empty == ""
    assert lines[0] == f"Steps of deployment.apps/web, version {V1[:12]}:"
    assert lines[1].startswith("├─ 1   1 pod      Verifying")
    assert [line[3:4] for line in lines[1:5]] == ["1", "2", "3", "4"]
    assert "Steps of" not in (await world.run("status", code=EXIT_UNDER_WAY)).stdout
    objects = msgspec.json.decode((await world.run("status", "web", "-o", "json", code=EXIT_UNDER_WAY)).stdout)
    assert objects["items"][0]["status"]["rollout"]["steps"] == 4
    assert "Steps of" in (await world.run("why", "deploy/web", code=EXIT_UNDER_WAY)).stdout


async def test_wait_ends_when_the_step_has_passed_and_when_its_pods_are_verified(world: World) -> None:
    waiting = asyncio.create_task(world.run("wait", "deploy/web", "--for=verified", "--timeout=60s"))
    await asyncio.sleep(0.5)
    assert not waiting.done()
    await world.move(msgspec.structs.replace(STEP_1, phase=Phase.SOAKING, passed=1, soak_end_time_unix=2**31))
    assert "Soaking" in (await waiting).stdout
    await world.run("wait", "deploy/web", "--for=step=1", "--timeout=200ms", code=EXIT_UNDER_WAY)
    passed = (PassedStep(1, 1, 1, 2),)
    await world.move(msgspec.structs.replace(STEP_1, phase=Phase.ROLLING, step=3, passed_steps=passed))
    await world.run("wait", "deploy/web", "--for=step=1", "--timeout=60s")
    await world.run("wait", "deploy/web", "--timeout=200ms", code=EXIT_UNDER_WAY)
    done = await world.run("wait", "deploy/web", "--for=step=9", code=1)
    assert "has 4 steps, so it never passes step 9" in done.stderr
    assert "write step=2, verified or done" in (await world.run("wait", "web", "--for=soak", code=2)).stderr


async def test_wait_for_a_step_ends_when_the_release_fails(world: World) -> None:
    waiting = asyncio.create_task(world.run("wait", "deploy/web", "--for=step=2", "--timeout=60s", code=EXIT_SUSPENDED))
    await asyncio.sleep(0.3)
    await world.move(msgspec.structs.replace(STEP_1, phase=Phase.STOPPED, failed_step=1), "Suspend")
    assert "step 1 of 4: stopped" in (await waiting).stdout


async def test_changes_print_the_steps_again_when_they_changed(world: World) -> None:
    watching = asyncio.create_task(
        world.run("status", "deploy/web", "-w", "--wait", "--timeout=3s", code=EXIT_UNDER_WAY)
    )
    await asyncio.sleep(1)
    await world.cluster.set_status(CHANGE_WORKLOADS, world.name, {"updateTime": "later"})
    await asyncio.sleep(0.5)
    await world.move(msgspec.structs.replace(STEP_1, phase=Phase.SOAKING, passed=1, soak_end_time_unix=2**31))
    shown = (await watching).stdout
    assert shown.count("Steps of deployment.apps/web") == shown.count("├─ 1 ")
    assert shown.count("├─ 1   1 pod      Verifying") == 1
    assert shown.count("├─ 1   1 pod      Soaking") == 1


@pytest.mark.parametrize(
    ("arguments", "verb"),
    [(("promote",), "Promote"), (("promote", "--full"), "PromoteFull"), (("hold",), "Hold")],
)
async def test_requests_are_stored_with_their_verb_and_print_the_answer(
    world: World, arguments: tuple[str, ...], verb: str
) -> None:
    command, *more = arguments
    asking = asyncio.create_task(world.run(command, "deploy/web", *more, "-m", "looks good"))
    request = await world.request()
    assert (request["verb"], request["reason"]) == (verb, "looks good")
    assert request["by"]
    assert (await asking).stdout == "deployment.apps/web: step 2 begins\n"
