"""The listers: the objects of the informers' caches that handlers can read."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from altershield import releases
from altershield.api import ops_config
from altershield.api.change_workload import WorkloadRef
from altershield.api.ops_config_info import OpsConfigInfo
from altershield.api.resources import CHANGE_WORKLOADS, OPS_CONFIG_INFOS
from altershield.gates.admissions import Admissions
from altershield.gates.gate import Gate
from altershield.gates.release import Closed
from altershield.gates.release import Release as Judgeable
from altershield.workloads import change_workload_name, named_kind
from gatekeeper.budgets.judge import Budgets
from gatekeeper.live import Live
from gatekeeper.policies import Policies
from gatekeeper.projection import Release, read
from gatekeeper.records.flow_controls import FlowControls
from gatekeeper.records.overrides import Overrides
from kube_base.access.client import Client
from kube_base.access.informer import Informer

_ROLLED_BACK = "rolled-back"
_ORPHANED = "orphaned"


class Gates(Protocol):
    """The gates of releases that are in force."""

    @property
    def filled(self) -> bool:
        """Whether the caches are filled."""

    @property
    def exist(self) -> bool:
        """Whether there is any gate."""

    def have(self, gate: Gate[Any, Any]) -> bool:
        """Whether there is any gate of this kind."""

    def labels_of(self, namespace: str) -> Mapping[str, str]:
        """The labels of a namespace."""

    def may_hold(self, namespace: str) -> bool:
        """Whether a gate may hold releases of this namespace rather than deny them."""

    def may_be_closed(self, namespace: str, now: float) -> bool:
        """Whether a gate may be closed for a release of this namespace."""

    def closed(self, release: Judgeable, now: float) -> tuple[Closed, ...]:
        """The gates that are closed for the release."""

    def paces(self, release: Judgeable) -> bool:
        """Whether a ReleaseLimit holds the release until AlterShield lets it begin, also while it has room."""

    def opens_at(self, release: Judgeable, now: float) -> float:
        """When the release may begin, Unix seconds; 0: it is not known."""


class Listers(Protocol):
    """The second argument of each handler. Only `live`, `budgets` and `flow_controls` do I/O."""

    @property
    def live(self) -> Live:
        """Reads from the API server."""

    @property
    def budgets(self) -> Budgets:
        """The PodUnavailableBudgets."""

    @property
    def flow_controls(self) -> FlowControls:
        """The PodDeletionFlowControls."""

    @property
    def policies(self) -> Policies:
        """The DefensePolicies."""

    @property
    def gates(self) -> Gates:
        """The gates of releases."""

    @property
    def admissions(self) -> Admissions:
        """The releases that this process admitted a short time ago."""

    @property
    def overrides(self) -> Overrides:
        """The ReleaseOverrides."""

    @property
    def reconciler(self) -> str:
        """The user name of the reconciler in requests."""

    @property
    def blocking(self) -> bool:
        """The setting `blocking`: whether a version that was rolled back is denied. (The reconciler decides whether a
        failure suspends the workload.)"""

    @property
    def rollout(self) -> bool:
        """The setting `rollout`: whether releases are held in steps."""

    def release(self, namespace: str, workload: WorkloadRef, version: str) -> Release | None:
        """The ChangeWorkload of a version of the workload with this uid, or None."""

    def rolled_back(self, namespace: str, workload: WorkloadRef) -> Sequence[Release]:
        """The ChangeWorkloads of the workload with this uid whose versions were rolled back."""

    def orphaned(self, namespace: str, workload: WorkloadRef) -> Sequence[Release]:
        """The ChangeWorkloads of a workload of this kind and name that was deleted without them."""


def caches(client: Client, system_namespace: str) -> tuple[Informer[Release], Informer[OpsConfigInfo]]:
    """The informers of a gatekeeper: for ChangeWorkloads and for settings."""
    return (
        Informer(client, CHANGE_WORKLOADS, Release, read=read, resync=0),
        Informer(client, OPS_CONFIG_INFOS, OpsConfigInfo, namespace=system_namespace, resync=0),
    )


class CacheListers:
    """Listers that read the caches of this process."""

    def __init__(
        self,
        release_informer: Informer[Release],
        settings: Informer[OpsConfigInfo],
        *,
        live: Live,
        budgets: Budgets,
        flow_controls: FlowControls,
        policies: Policies,
        gates: Gates,
        admissions: Admissions,
        overrides: Overrides,
        reconciler: str,
        system_namespace: str,
    ) -> None:
        self.live = live
        self.budgets = budgets
        self.flow_controls = flow_controls
        self.policies = policies
        self.gates = gates
        self.admissions = admissions
        self.overrides = overrides
        self._releases = release_informer
        release_informer.add_index(
            _ROLLED_BACK, lambda release: _indexed(release, wanted=releases.rolled_back(release))
        )
        release_informer.add_index(
            _ORPHANED, lambda release: _indexed(release, wanted=release.metadata.controller is None)
        )
        self._settings = settings
        self._system_namespace = system_namespace
        self.reconciler = reconciler

    @property
    def blocking(self) -> bool:
        return ops_config.effective(self._settings.all(), self._system_namespace).blocking

    @property
    def rollout(self) -> bool:
        return ops_config.effective(self._settings.all(), self._system_namespace).rollout

    def release(self, namespace: str, workload: WorkloadRef, version: str) -> Release | None:
        found = self._releases.get(namespace, change_workload_name(named_kind(workload), workload.name, version))
        return found if found is not None and releases.belongs(found, workload) else None

    def rolled_back(self, namespace: str, workload: WorkloadRef) -> Sequence[Release]:
        return self._found(_ROLLED_BACK, namespace, workload)

    def orphaned(self, namespace: str, workload: WorkloadRef) -> Sequence[Release]:
        return self._found(_ORPHANED, namespace, workload)

    def _found(self, index: str, namespace: str, workload: WorkloadRef) -> Sequence[Release]:
        found = self._releases.by_index(index, releases.workload_index_key(namespace, workload))
        return [release for release in found if releases.belongs(release, workload)]


def _indexed(release: Release, *, wanted: bool) -> tuple[str, ...]:
    return (releases.release_index_key(release),) if wanted else ()
