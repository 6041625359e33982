"""The images of versions that are not the present one."""

from unittest.mock import create_autospec

import msgspec

from altershield.releases import history
from altershield.views.releases.images import ImagesReader
from altershield.views.releases.model import Snapshot, shown
from kube_base.access.client import Client
from kube_base.access.errors import ForbiddenError
from kube_base.meta import OwnerReference
from tests.unit.altershield.views.builders import DONE, ROLLED_BACK, V1, V2, release, stored, workload

FOUND = shown(
    Snapshot(
        [workload(version=V2)],
        [stored(release(ROLLED_BACK, version=V1, created=1)), stored(release(DONE, version=V2, created=2))],
    )
)


def entry(image: str) -> msgspec.Raw:
    owner = OwnerReference("Deployment", "web", "u", "apps/v1", controller=True)
    template = {"spec": {"containers": [{"name": "web", "image": image}]}}
    return msgspec.Raw(msgspec.json.encode(history.manifest(owner, "shop", V1, template, {}, 1)))


def client() -> Client:
    return create_autospec(Client, instance=True)


async def test_images_of_an_older_version_are_those_of_the_history_and_read_once() -> None:
    cluster = client()
    cluster.get.return_value = entry("registry.example/web:1.9")
    reader = ImagesReader(cluster)
    for _ in range(2):
        older, present = await reader.added(FOUND, FOUND)
        assert (older.images, present.images) == ("web:1.9", "busybox")
    cluster.get.assert_awaited_once()


async def test_images_are_not_known_without_the_right_to_read_the_history() -> None:
    cluster = client()
    cluster.get.side_effect = ForbiddenError("no", code=403)
    older, present = await ImagesReader(cluster).added(FOUND, FOUND)
    assert (older.images, present.images) == ("", "busybox")


async def test_one_table_asks_for_a_bounded_number_of_entries() -> None:
    cluster = client()
    cluster.get.side_effect = ForbiddenError("no", code=403)
    await ImagesReader(cluster).added(FOUND * 50, FOUND)
    assert cluster.get.await_count == 20
