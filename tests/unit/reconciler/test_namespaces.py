"""The caches read a namespace when it becomes governed, and drop it when it is not governed any more."""

from dataclasses import dataclass, field

import pytest

from reconciler.namespaces import NamespaceReconciler


@dataclass
class Informer:
    """Records the calls."""

    synced: bool = True
    calls: list[tuple[str, str]] = field(default_factory=list)

    async def refill(self, namespace: str) -> None:
        self.calls.append(("refill", namespace))

    async def evict(self, namespace: str) -> None:
        self.calls.append(("evict", namespace))


@dataclass
class Caches:
    namespaced: tuple[Informer, ...]
    is_governed: bool
    system_namespace: str = "system"

    fillings: dict[str, object] = field(default_factory=dict)

    def governed(self, namespace: str) -> bool:
        return self.is_governed and namespace == "shop"

    def filling(self, namespace: str) -> object | None:
        return self.fillings.get(namespace)

    def end_filling(self, namespace: str, filling: object | None) -> None:
        assert self.fillings.get(namespace) is filling, "only the filling that it carried out"
        self.fillings.pop(namespace, None)


@pytest.mark.parametrize(("governed", "call"), [(True, "refill"), (False, "evict")])
async def test_synced_informers_read_or_drop_the_namespace(governed: bool, call: str) -> None:
    first, not_in_sync, last = Informer(), Informer(synced=False), Informer()
    caches = Caches((first, not_in_sync, last), governed)
    assert await NamespaceReconciler(caches).reconcile(("", "shop")) is None  # type: ignore[arg-type]
    assert first.calls == last.calls == [(call, "shop")]
    assert not_in_sync.calls == []  # its first list keeps what is governed then


async def test_policies_of_the_system_namespace_are_never_dropped() -> None:
    informer = Informer()
    caches = Caches((informer,), is_governed=False)
    assert await NamespaceReconciler(caches).reconcile(("", "system")) is None  # type: ignore[arg-type]
    assert informer.calls == []


async def test_the_caches_match_the_system_namespace_also_after_somebody_labelled_it() -> None:
    """Otherwise the subjects that wait for its caches would wait for ever."""
    caches = Caches((), is_governed=False, fillings={"system": object()})
    await NamespaceReconciler(caches).reconcile(("", "system"))  # type: ignore[arg-type]
    assert caches.filling("system") is None
