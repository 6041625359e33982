"""A controller retries after every error, and logs only errors that are not expected. Live changes come first."""

import asyncio
from itertools import pairwise

import pytest

from altershield.process.logs import RECONCILE
from kube_base.access.errors import KubernetesError, SchemaError, from_status
from kube_base.access.queue import LIVE_IN_A_ROW, WorkQueue
from reconciler.cluster.caches import Key
from reconciler.machinery.metrics import Metrics
from reconciler.machinery.runner import work
from tests.support.polling import until

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
    monkeypatch.setattr("kube_base.access.time_slices.time.perf_counter", lambda: now)
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


KEYS: list[Key] = [("shop", f"pod-{number}") for number in range(5000)]


@pytest.mark.parametrize("workers", [1, 16])
async def test_live_change_does_not_wait_for_the_backlog_of_a_take_over(workers: int) -> None:
    queue: WorkQueue[Key] = WorkQueue()
    order: list[Key] = []

    async def reconcile(key: Key) -> None:
        await asyncio.sleep(0.01)
        order.append(key)

    for key in KEYS:
        queue.add(key)  # before this replica leads
    working = asyncio.create_task(work("pods", queue, reconcile, Metrics(), at_most=workers))
    await asyncio.sleep(1.001)
    done = len(order)
    queue.add(KEY)
    queue.add(KEYS[0])  # the key that changed longest ago is the last one of the backlog
    await asyncio.sleep(60)
    working.cancel()
    await asyncio.wait((working,))
    assert 0 < done < 2000
    assert {KEY, KEYS[0]} <= set(order[done : done + 2 * workers + 2])
    assert len(order) == len(set(order)) == len(KEYS) + 1


async def test_backlog_is_reconciled_under_a_steady_stream_of_live_changes() -> None:
    queue: WorkQueue[Key] = WorkQueue()
    order: list[Key] = []

    async def reconcile(key: Key) -> None:
        order.append(key)
        if key not in backlog:
            queue.add(key)
        await asyncio.sleep(0.01)

    backlog = set(KEYS[:100])
    for key in backlog:
        queue.add(key)
    working = asyncio.create_task(work("pods", queue, reconcile, Metrics(), at_most=2))
    await asyncio.sleep(0.001)
    for key in KEYS[100:150]:
        queue.add(key)
    await asyncio.sleep(10)
    working.cancel()
    await asyncio.wait((working,))
    turns = [number for number, key in enumerate(order) if key in backlog]
    assert len(turns) == len(backlog)
    assert max(after - before for before, after in pairwise(turns)) <= LIVE_IN_A_ROW + 1
    assert len(order) > 2 * max(turns)


def invalid(message: str) -> KubernetesError:
    return from_status(422, {"message": message, "details": {"causes": [{"field": "spec.replicas"}]}})


@pytest.mark.parametrize("error", [invalid("spec.replicas: Invalid value"), SchemaError("an object cannot be read")])
async def test_failure_that_a_retry_cannot_end_is_retried_slowly_and_logged_once(
    error: KubernetesError, caplog: pytest.LogCaptureFixture
) -> None:
    queue: WorkQueue[Key] = WorkQueue()
    metrics = Metrics()
    times: list[float] = []
    failing = [error]

    async def reconcile(_: Key) -> None:
        times.append(asyncio.get_running_loop().time())
        for each in failing:
            raise each

    working = asyncio.create_task(work("pods", queue, reconcile, metrics))
    queue.add(KEY)
    await asyncio.sleep(59)
    assert len(times) == 1
    await asyncio.sleep(541)
    assert 8 <= len(times) - 1 <= 10
    assert [each.levelname for each in caplog.records] == ["WARNING"]
    assert vars(caplog.records[0])["cause"] == str(error)
    assert "retrying does not help" in caplog.text
    tries = len(times)
    await until(lambda: len(times) > tries, pause=0.5)  # the next try comes a minute later, not in between
    tries = len(times)
    labels = {"controller": "pods", "outcome": "error"}
    assert metrics.registry.get_sample_value("altershield_reconciles_total", labels) == tries

    queue.add(KEY)  # the object has changed
    failing[:] = [invalid("another cause")]
    await asyncio.sleep(1)
    assert (len(times), len(caplog.records)) == (tries + 1, 2)
    failing.clear()
    await asyncio.sleep(80)
    failing.append(error)
    queue.add(KEY)
    await asyncio.sleep(1)
    assert len(caplog.records) == 3
    working.cancel()
    await asyncio.wait((working,))


async def test_refusal_of_a_policy_is_retried_quickly_because_the_policy_may_be_deleted_soon() -> None:
    error = from_status(422, {"message": "no change in the freeze", "details": {"causes": [{"message": "no change"}]}})
    queue: WorkQueue[Key] = WorkQueue()
    tries = 0

    async def reconcile(_: Key) -> None:
        nonlocal tries
        tries += 1
        raise error

    working = asyncio.create_task(work("pods", queue, reconcile, Metrics()))
    queue.add(KEY)
    await asyncio.sleep(1)
    assert tries > 5
    working.cancel()
    await asyncio.wait((working,))


async def test_log_lines_of_a_reconcile_have_its_id_also_those_of_its_tasks() -> None:
    queue: WorkQueue[Key] = WorkQueue()
    seen: dict[Key, set[str]] = {}

    async def below(key: Key) -> None:
        await asyncio.sleep(1)
        seen.setdefault(key, set()).add(RECONCILE.get())

    async def reconcile(key: Key) -> None:
        seen.setdefault(key, set()).add(RECONCILE.get())
        await asyncio.gather(below(key), below(key))
        await below(key)

    keys = KEYS[:20]
    for key in keys:
        queue.add(key)
    working = asyncio.create_task(work("pods", queue, reconcile, Metrics(), at_most=4))
    await asyncio.sleep(60)
    working.cancel()
    await asyncio.wait((working,))
    assert all(len(ids) == 1 for ids in seen.values())
    assert len({"", *(each for ids in seen.values() for each in ids)}) == len(keys) + 1
    assert RECONCILE.get() == ""
