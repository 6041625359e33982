"""Informers that keep a smaller form of an object, and the memory that cached objects take."""

import gc
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kube_base.access import cache
from kube_base.access.errors import UnreadableError
from kube_base.access.informer import Informer
from kube_base.resources import PODS
from tests.support.polling import until
from tests.support.projections import Pod
from tests.support.stub_api import serving
from tests.unit.kube_base.access.informers import names, pod, running

_COUNTED = (__file__, str(Path(cache.__file__).parent / "*"))


class Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str
    namespace: str = ""
    resource_version: str = ""


class Phase(msgspec.Struct, frozen=True, gc=False):
    metadata: Metadata
    running: bool


def phase(data: bytes | msgspec.Raw) -> Phase:
    whole = msgspec.json.decode(data)
    return Phase(msgspec.convert(whole["metadata"], Metadata), {"Running": True, "Failed": False}[whole["phase"]])


def read(data: bytes | msgspec.Raw) -> Phase:
    try:
        return phase(data)
    except KeyError as error:
        raise ValueError(f"there is no phase {error}") from error


@pytest.mark.looptime
async def test_informer_keeps_the_objects_that_read_returns() -> None:
    async with serving() as (api, client):
        await api.put(PODS, {**pod("a"), "phase": "Running"})
        informer = Informer(client, PODS, Phase, read=read)
        async with running(informer):
            assert informer.all() == [Phase(Metadata("a", "shop", "101"), True)]
            patch = {"phase": "Failed"}
            informer.observe(informer.read(await client.patch(PODS, patch, "a", "shop", as_=msgspec.Raw)))
            assert informer.all() == [Phase(Metadata("a", "shop", "102"), False)]


@pytest.mark.looptime
async def test_object_that_read_refuses_is_skipped_and_its_cached_version_stays() -> None:
    async with serving() as (api, client):
        await api.put(PODS, {**pod("a"), "phase": "Running"})
        informer = Informer(client, PODS, Phase, read=read)
        async with running(informer):
            await api.put(PODS, {**pod("a"), "phase": "Odd"})
            await api.put(PODS, {**pod("b"), "phase": "Failed"})
            await until(lambda: names(informer) == ["a", "b"])
            assert informer.skipped == 1
            with pytest.raises(UnreadableError, match="no phase"):
                informer.read(b'{"metadata":{"name":"a"},"phase":"Odd"}')


def manifest(number: int, version: int) -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"checkout-{number // 3:05}-7c9f8d6b5-{number % 3}",
            "namespace": f"team-{number % 50:03}",
            "uid": f"{number:08x}-1111-2222-3333-444455556666",
            "resourceVersion": str(version),
            "ownerReferences": [{"kind": "ReplicaSet", "name": "r", "uid": f"{number // 3:036}", "controller": True}],
        },
        "phase": "Running",
    }


def bytes_each(informer: Informer[Any], count: int, times: int) -> float:
    """Bytes that the cache takes per object, after each object was received `times` times. Only memory that the cache's
    code and this file allocate is counted: a cluster of earlier tests may still run in another thread."""
    gc.collect()
    tracemalloc.start()
    for time in range(times):
        for number in range(count):
            informer._cache.apply(msgspec.json.encode(manifest(number, 10**8 * (time + 1) + number)))
    gc.collect()
    taken = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, path) for path in _COUNTED])
    tracemalloc.stop()
    return sum(each.size for each in taken.traces) / count


def owner(obj: Pod) -> list[str]:
    return [obj.metadata.controller.uid] if obj.metadata.controller else []


async def test_informers_of_the_same_objects_can_share_names() -> None:
    async with serving() as (_, client):
        first, second = Informer(client, PODS, Phase, read=read), Informer(client, PODS, Phase, read=read)
        second.share_names(first)
        for informer in (first, second):
            informer._cache.apply(msgspec.json.encode(manifest(1, 1)))
        ((one,), (other,)) = (informer.all() for informer in (first, second))
        assert one.metadata.name is other.metadata.name


async def test_memory_per_cached_object_has_a_limit() -> None:
    async with serving() as (_, client):
        once, thrice = Informer(client, PODS, Phase, read=read), Informer(client, PODS, Phase, read=read)
        assert bytes_each(once, 5_000, 1) < 430
        assert bytes_each(thrice, 5_000, 3) < 430  # earlier versions take no memory
        bare, indexed = Informer(client, PODS, Pod), Informer(client, PODS, Pod)
        indexed.add_index("owner", owner)
        indexed.add_index("uid", lambda obj: [obj.metadata.uid])
        assert bytes_each(indexed, 5_000, 2) - bytes_each(bare, 5_000, 2) < 130
