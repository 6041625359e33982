"""What does AlterShield cost in a large fleet: at rest, while pods are replaced, and in a wave of releases?

Measured: the API is simulated (`bench.simulated`) and takes little CPU and memory, so a fleet of the full size fits on
a small machine. A Deployment has 11 ReplicaSets and a ChangeWorkload, a pod has a ChangePod, an object has 1 KB of
annotations. Replaced pods, reports of nodes and releases are simulated. The gatekeeper gets the reviews of all
releases. The gatekeeper and the reconciler are processes of their own, with default thresholds. First nothing happens,
then pods are replaced, then workloads are released too.

How to read it: CPU of a phase, divided by its replaced pods or releases, is what one of them costs. The time to a
verdict begins when a pod is ready, and does not contain the observation time. It contains the wait for the other pods
of the batch.
"""

import asyncio
import contextlib
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from altershield.process.health import until_ready
from bench.harness.answer import Answer, quantiles
from bench.harness.metrics import Samples, of, scraped, summed
from bench.harness.phases import Phase, Recorder, answer, course
from bench.harness.servers import LOOPBACK, certificate, gatekeeper, reconciler, running, write_kubeconfig
from bench.harness.waiting import until_judged
from bench.simulated.api import Api
from bench.simulated.events import Fleet
from bench.simulated.gatekeeper import reviewing
from bench.simulated.shape import limits
from kube_base.processes import free_ports
from reconciler import thresholds

RUNS = (("--minutes", "8"),)
_START_SECONDS = 600.0


async def ask(
    scale: Annotated[float, typer.Option(help="Factor for the fleet, the replaced pods and the releases.")] = 1.0,
    minutes: Annotated[float, typer.Option(help="Duration, without the start.")] = 30.0,
    churn: Annotated[float, typer.Option(help="Pods that are replaced in a second, at scale 1.")] = 20.0,
    releases: Annotated[int, typer.Option(help="Releases in the wave, at scale 1.")] = 1000,
    rate: Annotated[float, typer.Option(help="Releases of the wave in a second, at scale 1.")] = 10.0,
) -> Answer:
    api = Api(limits(scale, fat=0), lead=True)
    api.prepare()
    count = max(1, round(releases * scale))
    phases = await _measure(api, minutes * 60, churn * scale, count, rate * scale)
    return answer(f"{api.shape.title}, simulated API", phases)


async def _measure(api: Api, seconds: float, churn: float, releases: int, rate: float) -> list[Phase]:
    """`churn` and `rate` are numbers per second; `seconds` is the duration without the start."""

    def taken(seconds: float) -> dict[str, Any]:
        traffic = api.take()
        waits = (judged - ready - thresholds.OBSERVE_SECONDS for ready, judged in traffic.verdicts)
        return {
            "requests": {key: round(count / seconds, 2) for key, count in traffic.by_kind.most_common()},
            "admission": quantiles(traffic.admissions, 1000),
            "verdict": quantiles(waits),
            "more": {"events per second": round(traffic.events / seconds, 1), "denied": traffic.denied},
        }

    port, *metrics = free_ports(3)
    async with api.serving() as url, contextlib.AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        config = write_kubeconfig(directory / "kubeconfig", url)
        began = time.monotonic()
        for command in (
            gatekeeper(config, port, certificate(directory), metrics_port=metrics[0]),
            reconciler(config, metrics_port=metrics[1]),
        ):
            await stack.enter_async_context(running(command))
        recorder = Recorder()
        async with recorder.phase("start", taken), asyncio.timeout(_START_SECONDS):
            await until_ready(metrics)
            await _idle(metrics[1])
        print(f"ready after {time.monotonic() - began:.1f} s")
        review = await stack.enter_async_context(reviewing(f"https://{LOOPBACK}:{port}", lambda: api.traffic))
        fleet = Fleet(api, review)
        bookmarks, before = asyncio.create_task(api.bookmark()), await scraped(metrics[1])

        def disturb() -> list[asyncio.Task[None]]:
            return [asyncio.create_task(each) for each in (fleet.churn(churn), fleet.report())]

        await course(
            lambda name: recorder.phase(name, taken), seconds, disturb, lambda: _wave(fleet, api, releases, rate)
        )
        _print_state(before, await scraped(metrics[1]), len(api.ready))
        bookmarks.cancel()
    return recorder.phases


def _print_state(before: Samples, after: Samples, missing: int) -> None:
    for name in ("altershield_api_errors_total", "altershield_watch_relists_total", "altershield_watch_skipped_total"):
        print(name, int(summed(after, name) - summed(before, name)))
    print("releases", {tuple(own.values()): int(value) for own, value in of(after, "altershield_releases") if value})
    print("pods without a verdict", missing)


async def _wave(fleet: Fleet, api: Api, releases: int, rate: float) -> None:
    step = max(1, api.shape.deployments // releases)
    await fleet.wave(range(0, api.shape.deployments, step)[:releases], rate)
    await until_judged(lambda: not api.ready)


async def _idle(port: int) -> None:
    """Wait until the queues of the reconciler are empty."""
    quiet, last = 0, -1.0
    while quiet < 3:
        await asyncio.sleep(1)
        samples = await scraped(port)
        now = summed(samples, "altershield_reconciles_total")
        quiet = quiet + 1 if now == last and not summed(samples, "altershield_queue_depth") else 0
        last = now
