"""Does a reconciler send requests while failed releases wait for a person?

Measured: on the sandbox, half of the Deployments never had a version that came up. The others are updated to an image
that does not exist, while the setting `rollback` is off. All releases are suspended, and none is rolled back. Then the
requests of the reconciler are counted, without watches and its Lease.

How to read it: there must be none.
"""

import asyncio
from collections import Counter
from typing import Annotated

import typer

from altershield.api import labels, names
from altershield.api.change_workload import WorkloadState
from altershield.api.ops_config import ROLLBACK
from altershield.api.resources import OPS_CONFIG_INFOS
from altershield.releases import state
from bench.harness.answer import Answer
from bench.harness.deployments import IMAGE, deployment, versions
from bench.harness.sandbox import NAMESPACE, govern, reconciling, sandbox
from bench.harness.waiting import until
from kube_base.access.client import Client
from kube_base.access.transport import Request
from kube_base.resources import DEPLOYMENTS

_SECONDS = 300.0
_MISSING = "nosuch"


class CountingClient(Client):
    """Counts requests, without watches."""

    counted: Counter[str]

    async def _answer(self, request: Request) -> bytes:
        self.counted[f"{request.method} {request.path}"] += 1
        return await super()._answer(request)


async def ask(
    deployments: Annotated[int, typer.Option(min=2)] = 100, seconds: Annotated[float, typer.Option(min=1)] = 60.0
) -> Answer:
    failing, resting = await _measure(deployments, seconds)
    found = f"{resting.total()} requests in {seconds:g} s at rest: {dict(resting.most_common(5))}"
    notes = [f"{failing.total()} requests until {deployments} releases were suspended", found]
    return Answer({"failing": failing.total(), "requests": resting.total()}, (), notes, [found] if resting else [])


async def _measure(deployments: int, seconds: float) -> tuple[Counter[str], Counter[str]]:
    """The requests while the releases failed, and those in `seconds` after that."""
    async with (
        sandbox() as (kubeconfig, _),
        await CountingClient.connect(str(kubeconfig)) as client,
        await Client.connect(str(kubeconfig)) as user,
    ):
        client.counted = Counter()
        await govern(user, NAMESPACE)
        version = await versions(user)

        async def release(name: str, image: str) -> None:
            wanted = deployment(name, version=version(name, image), image=image, replicas=1)
            if image == IMAGE or name.startswith("bad"):
                await user.create(DEPLOYMENTS, wanted, NAMESPACE)
            else:
                wanted["metadata"]["labels"] = {**wanted["metadata"]["labels"], labels.DEFENSE_STATUS: None}
                await user.patch(DEPLOYMENTS, wanted, name, NAMESPACE)

        async with reconciling(client, start_timeout=15, observe_seconds=1) as manager:

            async def ended(wanted: WorkloadState, count: int) -> None:
                def met() -> bool:
                    return sum(state(each) is wanted for each in manager.caches.releases.all()) >= count

                await until(met, f"{count} releases to be {wanted}", _SECONDS)

            await until(lambda: len(manager.caches.settings) == 3, "the settings")
            await user.patch(OPS_CONFIG_INFOS, {"spec": {"enable": False}}, ROLLBACK, names.SYSTEM_NAMESPACE)
            half = deployments // 2
            for number in range(half):
                await release(f"good-{number}", IMAGE)
            await ended(WorkloadState.SUCCESS, half)
            for number in range(half):
                await release(f"good-{number}", _MISSING)
                await release(f"bad-{number}", _MISSING)
            await ended(WorkloadState.SUSPEND, 2 * half)
            await asyncio.sleep(20)  # until the last release has been reconciled
            failing, client.counted = client.counted, Counter()
            await asyncio.sleep(seconds)
            return failing, client.counted
