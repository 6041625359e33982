"""A cache that gets objects of the watch and of other sources in any order."""

from typing import Any

import msgspec
import pytest

from kube_base.access.cache import Cache
from kube_base.access.errors import SchemaError
from tests.support.projections import Pod

A = ("shop", "a")
UNREADABLE = "skipped an object that cannot be read"


class World:
    def __init__(self) -> None:
        self.kept = {"shop", "depot"}
        self.handled: list[tuple[str | None, str | None]] = []
        self.cache: Cache[Pod] = Cache(
            "pods", msgspec.json.Decoder(Pod).decode, lambda pod: pod.metadata.namespace in self.kept
        )
        self.cache.add_handler(lambda old, new: self.handled.append((_version(old), _version(new))), None)

    @property
    def cached(self) -> str | None:
        """The resourceVersion of shop/a in the cache."""
        return _version(self.cache.get(A))


def _version(pod: Pod | None) -> str | None:
    return pod.metadata.resource_version if pod is not None else None


def sent(version: int, namespace: str = "shop") -> bytes:
    metadata = {"name": "a", "namespace": namespace, "resourceVersion": str(version)}
    return msgspec.json.encode({"metadata": metadata})


def answer(version: int, namespace: str = "shop") -> Pod:
    return msgspec.json.decode(sent(version, namespace), type=Pod)


def unreadable() -> bytes:
    return msgspec.json.encode({"metadata": {"name": "a", "namespace": "shop"}, "status": "none"})


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("error", [RecursionError, ValueError])
def test_read_raises_schema_error_for_undecodable_bytes(error: type[Exception]) -> None:
    def read(data: Any) -> Pod:
        raise error

    with pytest.raises(SchemaError, match="an object of pods cannot be read"):
        Cache("pods", read, lambda pod: True).read(b"{}")


def test_response_that_the_watch_is_past_is_ignored(world: World) -> None:
    world.cache.watched_version = 5
    world.cache.observe(answer(5))
    assert world.cached is None
    world.cache.observe(answer(6))
    assert world.cached == "6"


@pytest.mark.parametrize("version", [6, 7])
def test_response_that_is_not_newer_than_the_cached_object_is_ignored(world: World, version: int) -> None:
    world.cache.observe(answer(7))
    world.cache.observe(answer(version))
    assert world.handled == [(None, "7")]


def test_response_with_an_object_that_is_no_longer_kept_removes_it(world: World) -> None:
    world.cache.observe(answer(1))
    world.kept.clear()
    world.cache.observe(answer(2))
    assert world.cached is None


def test_response_is_unconfirmed_if_it_is_not_newer_than_the_list(world: World) -> None:
    world.cache.observe(answer(5))
    assert world.cache.unconfirmed(4) == []
    assert world.cache.unconfirmed(5) == [A]


def test_confirmed_response_is_replaced_by_an_older_version_of_a_restored_storage(world: World) -> None:
    world.cache.observe(answer(5))
    world.cache.apply(sent(4))
    assert world.cached == "5"  # the watch is not at version 5 yet
    world.cache.apply(sent(5))
    world.cache.apply(sent(3))
    assert world.cached == "3"


@pytest.mark.parametrize("namespace", ["shop", ""])
@pytest.mark.parametrize("version", [4, 5])
def test_refill_does_not_add_an_object_that_was_deleted_since(world: World, namespace: str, version: int) -> None:
    refill = world.cache.begin_refill(namespace)
    world.cache.drop(A, 5)
    world.cache.add_missing(refill, msgspec.Raw(sent(version)))
    assert world.cached is None
    world.cache.add_missing(refill, msgspec.Raw(sent(6)))
    assert world.cached == "6"


def test_refill_adds_only_objects_that_are_kept(world: World) -> None:
    refill = world.cache.begin_refill("")
    world.cache.add_missing(refill, msgspec.Raw(sent(1, "lab")))
    assert len(world.cache) == 0


def test_end_of_a_refill_does_not_end_the_others(world: World) -> None:
    first, second = world.cache.begin_refill("shop"), world.cache.begin_refill("shop")
    world.cache.end_refill(first)
    world.cache.drop(A, 5)
    assert (first.ended, second.ended) == ({}, {A: 5})


def test_refilled_object_is_replaced_by_an_older_version_of_a_restored_storage(world: World) -> None:
    world.cache.watched_version = 10
    world.cache.add_missing(world.cache.begin_refill("shop"), msgspec.Raw(sent(5)))
    world.cache.apply(sent(3))
    assert world.cached == "3"


def test_refilled_object_that_is_ahead_of_the_watch_stays(world: World) -> None:
    world.cache.watched_version = 4
    world.cache.add_missing(world.cache.begin_refill("shop"), msgspec.Raw(sent(7)))
    world.cache.apply(sent(5))
    world.cache.drop(A, 6)
    assert world.cached == "7"


def test_evict_removes_only_objects_that_are_not_kept(world: World) -> None:
    world.cache.apply(sent(1))
    world.cache.evict(A)
    assert world.cached == "1"
    world.kept.clear()
    world.cache.evict(A)
    assert world.cached is None


def reported(caplog: pytest.LogCaptureFixture) -> int:
    return caplog.messages.count(UNREADABLE)


def test_undecodable_object_is_reported_again_after_it_was_evicted_or_decoded(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        world.cache.apply(unreadable())
    assert (reported(caplog), world.cache.skipped) == (1, 2)
    world.cache.evict(A)
    world.cache.apply(unreadable())
    assert reported(caplog) == 2
    world.cache.apply(sent(1))
    world.cache.apply(unreadable())
    assert reported(caplog) == 3
