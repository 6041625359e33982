"""What the gates may look at: a read-only view of the informers' caches."""

from typing import Protocol

import msgspec

from altershield.api import names, ops_config
from altershield.api.kinds import ConditionType, OpsConfigInfo, WorkloadState
from altershield.api.meta import Condition, ObjectMeta, find_condition
from altershield.api.resources import CHANGE_WORKLOADS, OPS_CONFIG_INFOS
from altershield.kube.client import Client
from altershield.kube.informer import Informer

_ROLLED_BACK = "rolled-back"


class FailedPod(msgspec.Struct, frozen=True, omit_defaults=True):
    pod: str = ""
    message: str = ""


class _Status(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    status: str = ""
    defense_check_fail_pods: tuple[FailedPod, ...] = ()
    conditions: tuple[Condition, ...] = ()


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is read of a ChangeWorkload; pods that passed are not kept."""

    metadata: ObjectMeta
    status: _Status = _Status()

    @property
    def rolled_back(self) -> bool:
        """Also while the rollback is under way: its template may be back before the record says so."""
        condition = find_condition(self.status.conditions, ConditionType.ROLLED_BACK)
        return self.status.status == WorkloadState.ROLLBACK or (condition is not None and condition.is_true)


class View(Protocol):
    @property
    def reconciler(self) -> str:
        """The user name by which the API server knows the reconciler."""

    @property
    def blocking(self) -> bool:
        """Whether a version that was rolled back is denied. (Whether a failure suspends, the reconciler decides.)"""

    def record(self, namespace: str, workload: str, uid: str, version: str) -> Record | None:
        """The ChangeWorkload of a version of the workload with this uid; None where there is none."""

    def has_rolled_back(self, namespace: str) -> bool:
        """Whether there is any ChangeWorkload in this namespace that was rolled back."""


def caches(client: Client, system_namespace: str) -> tuple[Informer[Record], Informer[OpsConfigInfo]]:
    """All that a gatekeeper follows: records and settings."""
    return (
        Informer(client, CHANGE_WORKLOADS, Record, resync=0),
        Informer(client, OPS_CONFIG_INFOS, OpsConfigInfo, namespace=system_namespace, resync=0),
    )


class CacheView:
    """The view that serves requests."""

    def __init__(
        self,
        records: Informer[Record],
        settings: Informer[OpsConfigInfo],
        *,
        reconciler: str,
        system_namespace: str,
    ) -> None:
        self._records = records
        records.add_index(_ROLLED_BACK, lambda record: [record.metadata.namespace] if record.rolled_back else [])
        self._settings = settings
        self._system_namespace = system_namespace
        self.reconciler = reconciler

    @property
    def blocking(self) -> bool:
        return ops_config.effective(self._settings.all(), self._system_namespace).blocking

    def record(self, namespace: str, workload: str, uid: str, version: str) -> Record | None:
        found = self._records.get(namespace, names.change_workload_name(workload, version))
        # the record of a namesake that was deleted may outlive it for a moment
        owner = found and found.metadata.controller
        return None if owner and owner.uid != uid else found

    def has_rolled_back(self, namespace: str) -> bool:
        return bool(self._records.by_index(_ROLLED_BACK, namespace))
