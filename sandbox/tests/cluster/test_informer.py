"""The informer, on the sandbox's API."""

import asyncio
from pathlib import Path

from kube_base.access.client import Client
from kube_base.resources import CONFIG_MAPS
from kube_sandbox.apiserver.server import ApiServer
from kube_sandbox.cluster.informer import Informer
from kube_sandbox.cluster.kinds import Bare
from support.polling import until

SPACE = "default"


async def test_informer_caches_its_own_writes_at_once_and_ignores_older_versions(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    async with ApiServer() as api:
        kubeconfig.write_text(api.kubeconfig())
        async with await Client.connect(str(kubeconfig)) as client:
            informer = Informer(client, CONFIG_MAPS, Bare)
            task = asyncio.create_task(informer.run())
            await informer.wait_synced()
            made = await informer.create({"metadata": {"name": "a"}}, SPACE)
            assert informer.get(SPACE, "a") == made
            changed = await informer.patch({"data": {"x": "y"}}, "a", SPACE)
            informer.observe(made)
            assert informer.get(SPACE, "a") == changed
            await client.delete(CONFIG_MAPS, "a", SPACE)
            await until(lambda: informer.get(SPACE, "a") is None)
            informer.observe(changed)
            assert informer.get(SPACE, "a") is None
            task.cancel()
            await asyncio.wait([task])
