"""A gatekeeper in the process of a test, for releases in steps: the held fields follow from what it answers."""

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import msgspec

from altershield.api import names, ops_config
from altershield.api.change_workload import WorkloadRef
from altershield.api.ops_config_info import OpsConfigInfo
from altershield.api.resources import CHANGE_WORKLOADS, DEFENSE_POLICIES, OPS_CONFIG_INFOS
from altershield.policies.selection import InForce, applying, ranked
from altershield.policies.stored import Spec, read
from gatekeeper import projection
from gatekeeper.projection import Release
from kube_base.resources import Resource
from kube_sandbox.apiserver.storage.store import Store
from tests.fault.reconciler_cluster import Cluster
from tests.unit.altershield.gates.placed import recent_admissions
from tests.unit.gatekeeper.reviews import (
    RECONCILER,
    NoBudgets,
    NoFlowControls,
    StaticGates,
    StaticListers,
    StaticLive,
    StaticOverrides,
)
from tests.unit.gatekeeper.serving import install_webhooks, serving


class _Policies:
    """The policies in the storage."""

    filled = True
    have_steps = True

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, namespace: str, labels: Mapping[str, str]) -> InForce[Spec] | None:
        found = [read(each).in_force for each in stored(self._store, DEFENSE_POLICIES, namespace)]
        return applying((ranked(each for each in found if each is not None),), labels)


class _Listers:
    """Reads the storage of the API server. It has no caches, so a test may restore the storage at any time."""

    blocking = True
    reconciler = RECONCILER

    def __init__(self, store: Store, gates: StaticGates) -> None:
        self._store = store
        self.live = StaticLive()
        self.budgets = NoBudgets()
        self.flow_controls = NoFlowControls()
        self.policies = _Policies(store)
        self.gates = gates
        self.admissions = recent_admissions(gates)
        self.overrides = StaticOverrides()

    @property
    def rollout(self) -> bool:
        found = [
            msgspec.json.decode(each, type=OpsConfigInfo)
            for each in stored(self._store, OPS_CONFIG_INFOS, names.SYSTEM_NAMESPACE)
        ]
        return ops_config.effective(found, names.SYSTEM_NAMESPACE).rollout

    def release(self, namespace: str, workload: WorkloadRef, version: str) -> Release | None:
        return self._releases(namespace).release(namespace, workload, version)

    def rolled_back(self, namespace: str, workload: WorkloadRef) -> Sequence[Release]:
        return self._releases(namespace).rolled_back(namespace, workload)

    def orphaned(self, namespace: str, workload: WorkloadRef) -> Sequence[Release]:
        return self._releases(namespace).orphaned(namespace, workload)

    def _releases(self, namespace: str) -> StaticListers:
        found = [projection.read(each) for each in stored(self._store, CHANGE_WORKLOADS, namespace)]
        return StaticListers(releases={f"{namespace}/{each.metadata.name}": each for each in found})


def stored(store: Store, resource: Resource, namespace: str) -> list[bytes]:
    """The objects in the storage, in JSON."""
    return [msgspec.json.encode(each) for each in store.list(resource.group, resource.plural, namespace)]


@contextlib.asynccontextmanager
async def admitting(cluster: Cluster, directory: Path, gates: StaticGates | None = None) -> AsyncIterator[None]:
    """The API server of the cluster asks a gatekeeper about each request. `gates`: those that it knows."""
    async with serving(directory, _Listers(cluster.store, gates or StaticGates())) as served:
        await install_webhooks(cluster.admin, served.url(""))
        yield
