"""A list of pods from the API server, and a watch that is behind or ahead of it."""

import msgspec

from altershield.workloads import pods
from altershield.workloads.pods import Pod
from reconciler.releases.pods.listed import ListedPods, existing

LISTED = 20


def pod(name: str, version: int, uid: str = "") -> Pod:
    metadata = {"name": name, "namespace": "shop", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return pods.read(msgspec.json.encode({"metadata": metadata}))


def by_uid(found: list[Pod]) -> dict[str, Pod]:
    return {each.metadata.uid: each for each in found}


def found(listed: list[Pod], cached: list[Pod], known: list[Pod]) -> list[tuple[str, str]]:
    cache = {each.metadata.name: each for each in cached}
    there = existing(ListedPods(by_uid(listed), LISTED), lambda each: cache.get(each.metadata.name), by_uid(known))
    return [(uid, each.metadata.resource_version) for uid, each in there.items()]


def test_pod_that_the_watch_has_changed_since_the_list_is_the_newer_one() -> None:
    assert found([pod("a", 10)], [pod("a", 25)], [pod("a", 25)]) == [("uid-a", "25")]


def test_pod_that_was_deleted_after_the_list_does_not_exist() -> None:
    assert found([pod("a", 10), pod("b", 11)], [pod("b", 11)], [pod("b", 11)]) == [("uid-b", "11")]


def test_pod_of_which_another_one_has_the_name_since_the_list_does_not_exist() -> None:
    again = pod("db-0", 30, uid="second")
    assert found([pod("db-0", 10, uid="first")], [again], [again]) == [("second", "30")]


def test_pod_whose_deletion_the_watch_has_not_brought_yet_does_not_exist() -> None:
    assert found([], [pod("a", 10)], [pod("a", 10)]) == []


def test_pod_that_was_created_after_the_list_exists() -> None:
    assert found([pod("a", 10)], [pod("a", 10), pod("b", 21)], [pod("a", 10), pod("b", 21)]) == [
        ("uid-a", "10"),
        ("uid-b", "21"),
    ]
