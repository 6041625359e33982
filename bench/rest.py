"""Counts the requests of a reconciler while failed releases wait for a person. There should be none.

    python -m bench.rest

It runs on the sandbox. Half of the Deployments never had a version that came up. The others are updated to an image
that does not exist, while the setting `rollback` is off. All releases are suspended, and none is rolled back.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
import uvloop

from altershield.api import labels, names
from altershield.api.change_workload import WorkloadState
from altershield.api.ops_config import ROLLBACK
from altershield.api.resources import OPS_CONFIG_INFOS
from altershield.releases import state
from altershield.workloads import BY_KIND
from bench.reconciler import NAMESPACE, deployment, namespace, sandbox
from command.install import crds
from kube_base.access.client import Client
from kube_base.access.transport import Request
from kube_base.resources import CRDS, DEPLOYMENTS, NAMESPACES
from reconciler import thresholds
from reconciler.manager import Manager
from reconciler.options import Options

RESULTS = Path(__file__).parent / "results" / "rest.json"
_POLL_SECONDS = 0.05
_TIMEOUT_SECONDS = 300.0


class CountingClient(Client):
    """Counts requests, without watches."""

    counted: Counter[str]

    async def _answer(self, request: Request) -> bytes:
        self.counted[f"{request.method} {request.path}"] += 1
        return await super()._answer(request)


async def measure(deployments: int, seconds: float) -> tuple[Counter[str], Counter[str]]:
    """The requests while the releases failed, and those in `seconds` after that."""
    async with (
        sandbox() as kubeconfig,
        await CountingClient.connect(str(kubeconfig)) as client,
        await Client.connect(str(kubeconfig)) as user,
    ):
        client.counted = Counter()
        await user.create(NAMESPACES, namespace(names.SYSTEM_NAMESPACE))
        await user.create(NAMESPACES, namespace(NAMESPACE, **{labels.GOVERNED: labels.GOVERNED_VALUE}))
        for crd in crds.crds():
            await user.create(CRDS, crd)
        manager = Manager(
            client,
            Options(
                system_namespace=names.SYSTEM_NAMESPACE,
                identity="bench",
                start_timeout=15,
                observe_seconds=1,
                batch_wait=thresholds.BATCH_WAIT,
                pre_timeout=thresholds.PRE_TIMEOUT,
                post_timeout=thresholds.POST_TIMEOUT,
                lease_duration=60,
                metrics_port=0,
            ),
        )
        stop = asyncio.Event()
        running = asyncio.create_task(manager.run(stop))

        def ended(wanted: WorkloadState, count: int) -> bool:
            return sum(state(release) is wanted for release in manager.caches.releases.all()) >= count

        await _until(lambda: len(manager.caches.settings) == 3)
        off = {"spec": {"enable": False}}
        await user.patch(OPS_CONFIG_INFOS, off, ROLLBACK, names.SYSTEM_NAMESPACE)
        half = deployments // 2
        for number in range(half):
            await _release(user, f"good-{number}", "busybox")
        await _until(lambda: ended(WorkloadState.SUCCESS, half))
        for number in range(half):
            await _release(user, f"good-{number}", "nosuch")
            await _release(user, f"bad-{number}", "nosuch")
        await _until(lambda: ended(WorkloadState.SUSPEND, 2 * half))
        await asyncio.sleep(20)  # until the last release has been reconciled
        failing, client.counted = client.counted, Counter()
        await asyncio.sleep(seconds)
        resting = client.counted
        stop.set()
        await running
    return failing, resting


async def _release(user: Client, name: str, image: str) -> None:
    """Release a Deployment with the version that the gatekeeper would set."""
    wanted = deployment(name, 1)
    wanted["spec"]["template"]["spec"]["containers"][0]["image"] = image
    shown: dict[str, Any] = await user.create(
        DEPLOYMENTS, wanted | {"metadata": {"name": f"{name}-{image}"}}, "default"
    )
    version = BY_KIND[DEPLOYMENTS.group_kind].read(json.dumps(shown).encode()).fingerprint
    wanted["metadata"]["labels"][labels.VERSION] = version
    wanted["spec"]["template"]["metadata"]["labels"][labels.VERSION] = version
    if image == "busybox" or name.startswith("bad"):
        await user.create(DEPLOYMENTS, wanted, NAMESPACE)
    else:
        wanted["metadata"]["labels"][labels.DEFENSE_STATUS] = None
        await user.patch(DEPLOYMENTS, wanted, name, NAMESPACE)


async def _until(met: Callable[[], bool]) -> None:
    began = time.monotonic()
    while not met():
        if time.monotonic() - began > _TIMEOUT_SECONDS:
            raise TimeoutError("the releases do not end")
        await asyncio.sleep(_POLL_SECONDS)


def main(
    deployments: Annotated[int, typer.Option(min=2)] = 100,
    seconds: Annotated[float, typer.Option(min=1)] = 60.0,
) -> None:
    """Count the requests. Exits with 1 if there are requests at rest."""
    failing, resting = uvloop.run(measure(deployments, seconds))
    print(f"{sum(failing.values())} requests until {deployments} releases were suspended")
    print(f"{sum(resting.values())} requests in the {seconds:g} s after that: {dict(resting.most_common(5))}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"releases": deployments, "seconds": seconds, "requests": sum(resting.values())}))
    if resting:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
