"""A controller retries after every error, and logs only errors that are not expected."""

import asyncio

import pytest

from altershield.kube.errors import KubernetesError, from_status
from altershield.kube.queue import WorkQueue
from reconciler.cluster.caches import Key
from reconciler.machinery.metrics import Metrics
from reconciler.machinery.runner import work

pytestmark = pytest.mark.looptime

KEY: Key = ("shop", "sleep")
DENIED = 'admission webhook "labels.example.com" denied the request: no'
TERMINATING = from_status(
    403, {"reason": "Forbidden", "details": {"causes": [{"reason": "NamespaceTerminating"}]}, "message": "it ends"}
)


@pytest.mark.parametrize(
    ("error", "outcome", "reported"),
    [
        (from_status(409, {}), "conflict", False),
        (from_status(404, {}), "conflict", False),
        (TERMINATING, "conflict", False),
        (from_status(429, {}, retry_after=2), "throttled", False),
        (from_status(403, {}), "error", True),
        (from_status(503, {}), "error", True),
        *((from_status(code, {"message": DENIED}), "error", True) for code in (401, 404, 409, 410, 422)),
    ],
)
async def test_failed_reconcile_is_retried(
    error: KubernetesError, outcome: str, reported: bool, caplog: pytest.LogCaptureFixture
) -> None:
    failures = [error, error]
    queue: WorkQueue[Key] = WorkQueue()
    metrics = Metrics()
    done = asyncio.Event()

    async def reconcile(key: Key) -> None:
        assert key == KEY
        if failures:
            raise failures.pop()
        done.set()

    working = asyncio.create_task(work("pods", queue, reconcile, metrics))
    queue.add(KEY)
    async with asyncio.timeout(60):
        await done.wait()
    working.cancel()
    await asyncio.wait((working,))
    assert (
        metrics.registry.get_sample_value("altershield_reconciles_total", {"controller": "pods", "outcome": outcome})
        == 2
    )
    assert bool(caplog.messages) is reported


async def test_keys_are_reconciled_at_the_same_time_by_at_most_so_many_workers() -> None:
    queue: WorkQueue[Key] = WorkQueue()
    running: list[Key] = []
    finish = asyncio.Event()

    async def reconcile(key: Key) -> None:
        running.append(key)
        await finish.wait()
        running.remove(key)

    working = asyncio.create_task(work("pods", queue, reconcile, Metrics(), at_most=3))
    keys: list[Key] = [("shop", f"pod-{number}") for number in range(5)]
    await asyncio.sleep(1)
    assert len(asyncio.all_tasks()) == 3  # this test, the controller, and the one worker that waits
    for key in keys:
        queue.add(key)
    await asyncio.sleep(1)
    assert running == keys[:3]
    finish.set()
    await asyncio.sleep(1)
    assert (running, queue.taken) == ([], 5)
    working.cancel()
    await asyncio.wait((working,))


async def test_keys_of_a_cancelled_controller_are_reconciled_by_the_next_one() -> None:
    queue: WorkQueue[Key] = WorkQueue()
    reconciled: list[Key] = []

    async def hanging(_: Key) -> None:
        await asyncio.Event().wait()

    async def reconcile(key: Key) -> None:
        reconciled.append(key)

    keys: list[Key] = [("shop", f"pod-{number}") for number in range(3)]
    for key in keys:
        queue.add(key)
    for each in (hanging, reconcile):
        working = asyncio.create_task(work("pods", queue, each, Metrics(), at_most=2))
        await asyncio.sleep(1)
        working.cancel()
        await asyncio.wait((working,))
    assert sorted(reconciled) == keys


async def test_waiting_workers_that_get_keys_at_the_same_time_share_a_time_slice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, done, most = 0.0, 0, 0
    monkeypatch.setattr("altershield.kube.time_slices.time.perf_counter", lambda: now)
    queue: WorkQueue[Key] = WorkQueue()
    gate = asyncio.Event()

    async def reconcile(_: Key) -> None:
        nonlocal now, done
        await gate.wait()
        now, done = now + 0.004, done + 1

    keys: list[Key] = [("shop", f"pod-{number}") for number in range(100)]
    working = asyncio.create_task(work("pods", queue, reconcile, Metrics(), at_most=100))
    for key in keys:
        queue.add(key)
    await asyncio.sleep(1)
    gate.set()
    await asyncio.sleep(1)
    for key in keys:
        queue.add(key)
    for _ in range(1000):
        before = done
        await asyncio.sleep(0)
        most = max(most, done - before)
    working.cancel()
    await asyncio.wait((working,))
    assert (done, most <= 4) == (2 * len(keys), True)
