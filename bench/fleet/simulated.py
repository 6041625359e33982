"""Measures a fleet whose API server is simulated."""

import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from altershield.process.health import until_ready
from bench.cluster.api import kubeconfig
from bench.cluster.shape import Shape
from bench.fleet.api import FleetApi, Traffic
from bench.fleet.events import Fleet
from bench.fleet.metrics import scraped, summed
from bench.fleet.phases import Phase, Recorder, quantiles
from bench.fleet.reviews import reviewing
from bench.fleet.waits import LAST_SECONDS, unless_failed
from bench.memory import certificate_options
from kube_base.processes import Process, free_ports
from reconciler import thresholds

_START_SECONDS = 600.0


async def measure(shape: Shape, seconds: float, churn: float, releases: int, rate: float) -> list[Phase]:
    """`churn` and `rate` are numbers per second; `seconds` is the duration without the start."""
    api = FleetApi(shape)
    api.prepare()
    observed = thresholds.OBSERVE_SECONDS

    def taken(seconds: float) -> dict[str, Any]:
        traffic: Traffic = api.take()
        return {
            "requests": {key: round(count / seconds, 2) for key, count in traffic.by_kind.most_common()},
            "admission": quantiles(traffic.admissions, 1000),
            "verdict": quantiles(judged - ready - observed for ready, judged in traffic.verdicts),
            "more": {"events per second": round(traffic.events / seconds, 1), "denied": traffic.denied},
        }

    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        async with api.serving() as url, contextlib.AsyncExitStack() as stack:
            with kubeconfig(directory, url) as path:
                port, *metrics = free_ports(3)
                common = ("--kubeconfig", str(path), "--metrics-port")
                gate = (str(metrics[0]), "--host", "127.0.0.1", "--port", str(port), *certificate_options(directory))
                began = time.monotonic()
                for module, arguments in (("gatekeeper", gate), ("reconciler", (str(metrics[1]),))):
                    command = [sys.executable, "-m", module, *common, *arguments]
                    await stack.enter_async_context(Process(command, directory / f"{module}.log"))
                recorder = Recorder()
                async with recorder.phase("start", taken), asyncio.timeout(_START_SECONDS):
                    await until_ready(metrics)
                    await _idle(metrics[1])
                print(f"ready after {time.monotonic() - began:.1f} s")
                review = await stack.enter_async_context(reviewing(f"https://127.0.0.1:{port}", lambda: api.traffic))
                fleet = Fleet(api, review)
                keeping = [asyncio.create_task(api.bookmark())]
                async with recorder.phase("rest", taken):
                    await asyncio.sleep(seconds * 0.1)
                before = await scraped(metrics[1])
                keeping += [asyncio.create_task(fleet.churn(churn)), asyncio.create_task(fleet.report())]
                async with recorder.phase("churn", taken):
                    await unless_failed(asyncio.sleep(seconds * 0.3), keeping)
                async with recorder.phase("wave", taken):
                    await unless_failed(_wave(fleet, api, releases, rate), keeping)
                left = seconds - sum(each.seconds for each in recorder.phases[1:])
                async with recorder.phase("after the wave", taken):
                    await unless_failed(asyncio.sleep(max(1.0, left)), keeping)
                after = await scraped(metrics[1])
                _state(before, after, len(api.ready))
                for task in keeping:
                    task.cancel()
    return recorder.phases


def _state(before: Mapping[str, float], after: Mapping[str, float], missing: int) -> None:
    for key, value in after.items():
        if key.startswith("altershield_releases[") and value:
            print(key, int(value))
    for what in ("altershield_api_errors_total", "altershield_watch_relists_total", "altershield_watch_skipped_total"):
        print(what, int(summed(after, what) - summed(before, what)))
    print("pods without a verdict", missing)


async def _wave(fleet: Fleet, api: FleetApi, releases: int, rate: float) -> None:
    step = max(1, api.shape.deployments // releases)
    await fleet.wave(range(0, api.shape.deployments, step)[:releases], rate)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LAST_SECONDS):
            while api.ready:  # noqa: ASYNC110  (another process decides)
                await asyncio.sleep(0.2)


async def _idle(port: int) -> None:
    """Wait until the queues of the reconciler are empty."""
    quiet, last = 0, -1.0
    while quiet < 3:
        await asyncio.sleep(1)
        samples = await scraped(port)
        now = summed(samples, "altershield_reconciles_total")
        quiet = quiet + 1 if now == last and not summed(samples, "altershield_queue_depth") else 0
        last = now
