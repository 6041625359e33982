"""The measurements probe as kubelets do, with the values of the chart."""

import asyncio
import contextlib

import pytest

from bench.availability.kubelet import LIVENESS, READINESS, Probe, probed


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.looptime
@pytest.mark.parametrize("probe", [READINESS, LIVENESS])
@pytest.mark.parametrize("since_success", [0.0, 0.5])
async def test_a_hanging_process_fails_its_probe_within_the_longest_time(probe: Probe, since_success: float) -> None:
    """`since_success`: how much of a period has passed since the last success."""
    hangs_at = now() + 2 * probe.period + since_success * probe.period

    async def ask() -> bool:
        if now() > hangs_at:
            await asyncio.Event().wait()
        return True

    async with contextlib.aclosing(probed(probe, ask)) as states:
        async for healthy in states:
            if not healthy:
                break
    assert now() - hangs_at == pytest.approx(probe.longest - since_success * probe.period)


@pytest.mark.looptime
async def test_probe_succeeds_after_one_success_and_fails_after_consecutive_failures() -> None:
    answers = iter([False, True, False, True, False, False, False, True])

    async def ask() -> bool:
        return next(answers)

    async with contextlib.aclosing(probed(Probe(period=1, timeout=1, failures=2), ask)) as states:
        seen = [await anext(states) for _ in range(8)]
    assert seen == [False, True, True, True, True, False, False, True]
    assert now() == 7
