"""The store after any sequence of writes: past states can be read, and no change is lost."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.storage.store import Collection, Store

_PODS = ("", "pods")

Step = tuple[str, str, int]
_steps = st.lists(
    st.tuples(st.sampled_from(["write", "delete"]), st.sampled_from("abc"), st.integers(0, 9)), max_size=60
)


def _pod(name: str, value: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "default", "name": name, "uid": name},
        "value": value,
    }


def _apply(store: Store, step: Step) -> None:
    what, name, value = step
    current = store.item(_PODS, "default", name)
    if what == "delete":
        if current is not None:
            store.delete(_PODS, current)
    elif current is None:
        store.create(_PODS, _pod(name, value))
    else:
        store.update(_PODS, current, _pod(name, value))


def _values(collection: Collection, revision: int) -> dict[str, int]:
    return {key[1]: item.object["value"] for key, item in collection.at(revision).items()}


@given(_steps)
def test_every_past_revision_can_be_read(steps: list[Step]) -> None:
    store = Store(window=100)
    collection = store.collection(_PODS)
    history = {store.revision: _values(collection, store.revision)}
    for step in steps:
        _apply(store, step)
        history[store.revision] = _values(collection, store.revision)
    assert {revision: _values(collection, revision) for revision in history} == history


@given(_steps, st.integers(1, 5))
def test_replayed_changes_give_the_current_state(steps: list[Step], window: int) -> None:
    store = Store(window=window)
    collection = store.collection(_PODS)
    for step in steps:
        _apply(store, step)
    assert len(collection.changes_since(0)) < 2 * window
    state = _values(collection, collection.compacted_revision)
    for change in collection.changes_since(collection.compacted_revision):
        name = change.item.key[1]
        if change.deleted:
            del state[name]
        else:
            state[name] = change.item.object["value"]
    assert state == _values(collection, store.revision)


@given(_steps)
def test_resource_versions_only_grow(steps: list[Step]) -> None:
    store = Store(window=100)
    for step in steps:
        _apply(store, step)
    revisions = [change.item.revision for change in store.collection(_PODS).changes_since(0)]
    assert revisions == sorted(set(revisions))
    assert all(
        str(item.revision) == item.object["metadata"]["resourceVersion"]
        for item in store.collection(_PODS).items.values()
    )


def test_write_of_an_outdated_item_is_a_conflict() -> None:
    store = Store()
    first = store.create(_PODS, _pod("a", 1))
    store.update(_PODS, first, _pod("a", 2))
    for write in (lambda: store.update(_PODS, first, _pod("a", 3)), lambda: store.delete(_PODS, first)):
        with pytest.raises(StatusError) as raised:
            write()
        assert raised.value.code == 409


def test_change_of_a_copy_does_not_change_the_stored_object() -> None:
    store = Store()
    item = store.create(_PODS, _pod("a", 1))
    item.copy()["metadata"]["name"] = "changed"
    assert item.object["metadata"]["name"] == "a"
    assert item.copy()["kind"] == "Pod"
