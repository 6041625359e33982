"""A namespace that becomes governed is read, and one that is governed no longer is dropped."""

from dataclasses import dataclass, field

import pytest

from reconciler.namespaces import NamespaceReconciler


@dataclass
class Informer:
    """Notes what it is asked to do."""

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

    def governed(self, namespace: str) -> bool:
        return self.is_governed and namespace == "shop"


@pytest.mark.parametrize(("governed", "call"), [(True, "refill"), (False, "evict")])
async def test_each_informer_that_is_in_sync_reads_or_drops_the_namespace(governed: bool, call: str) -> None:
    first, not_in_sync, last = Informer(), Informer(synced=False), Informer()
    caches = Caches((first, not_in_sync, last), governed)
    assert await NamespaceReconciler(caches).reconcile(("", "shop")) is None  # type: ignore[arg-type]
    assert first.calls == last.calls == [(call, "shop")]
    assert not_in_sync.calls == []  # its first list keeps what is governed then
