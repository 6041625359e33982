"""The informer on the API of each backend."""

import asyncio

import msgspec

from kube_base.access.client import Client
from kube_base.access.informer import Informer
from kube_base.meta import ObjectMeta
from kube_base.resources import CONFIG_MAPS
from tests.support.kubectl import Kubectl
from tests.support.polling import until


class _Named(msgspec.Struct):
    metadata: ObjectMeta


async def test_informer_reads_its_list_as_a_stream(client: Client, space: Kubectl) -> None:
    for name in ("n1", "n2"):
        body = {"metadata": {"name": name, "labels": {"informer": "yes"}}}
        await client.create(CONFIG_MAPS, body, space.namespace)
    informer = Informer(client, CONFIG_MAPS, _Named, namespace=space.namespace, label_selector="informer=yes")
    following = asyncio.create_task(informer.run())
    await informer.wait_synced()
    assert sorted(obj.metadata.name for obj in informer.all()) == ["n1", "n2"]
    await client.delete(CONFIG_MAPS, "n1", space.namespace)
    await until(lambda: len(informer) == 1, "the watch to bring the deletion")
    following.cancel()
    await asyncio.wait((following,))
    assert informer.relists == 0
