"""A controller retries after every error, and logs only errors that are not expected."""

import asyncio

import pytest

from altershield.kube.errors import KubernetesError, from_status
from altershield.kube.queue import WorkQueue
from reconciler.machinery.caches import Key
from reconciler.machinery.metrics import Metrics
from reconciler.machinery.runner import work

pytestmark = pytest.mark.looptime

KEY: Key = ("shop", "sleep")
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
    ],
    ids=["conflict", "not found", "namespace ends", "throttled", "forbidden", "server error"],
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
