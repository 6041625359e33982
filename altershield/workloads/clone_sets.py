"""CloneSets of OpenKruise: like StatefulSets without an order. Pods may be updated in place."""

import msgspec

from altershield.api.amounts import percentage, scaled
from altershield.api.json_patch import Operation
from altershield.workloads.adapter import Fields, Object, with_own_values
from altershield.workloads.held import ALL
from altershield.workloads.meta import WorkloadMeta
from altershield.workloads.revision_data import OfRevisions
from altershield.workloads.workload import Strategy, WireSelector, WireTemplate, Workload, common
from kube_base.resources import CLONE_SETS, Resource

_TYPE = "/spec/updateStrategy/type"
_PARTITION = "/spec/updateStrategy/partition"


class _Strategy(msgspec.Struct, frozen=True, rename="camel", gc=False):
    type: str = ""
    max_unavailable: int | str = "20%"
    max_surge: int | str | None = 0
    partition: int | str | None = None
    paused: bool = False


class _Spec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    template: WireTemplate
    replicas: int = 1
    min_ready_seconds: int = 0
    update_strategy: _Strategy = _Strategy()
    selector: WireSelector = WireSelector()


class _Status(msgspec.Struct, frozen=True, rename="camel", gc=False):
    observed_generation: int = 0
    update_revision: str = ""


class _Wire(msgspec.Struct, frozen=True, gc=False):
    metadata: WorkloadMeta
    spec: _Spec
    status: _Status = _Status()


_decode = msgspec.json.Decoder(_Wire).decode


class CloneSets(OfRevisions):
    """The adapter of CloneSets."""

    resource: Resource = CLONE_SETS
    short_names: tuple[str, ...] = ("clone",)
    in_place: bool = True
    pause_field: str = "updateStrategy"
    leaves_other_revisions: bool = True
    crd: str = "clonesets.apps.kruise.io"
    change_workload_prefix: str = "cloneset."

    def read(self, data: bytes | msgspec.Raw) -> Workload:
        return with_own_values(self, data)

    def read_in_force(self, data: bytes | msgspec.Raw) -> Workload:
        wire = _decode(data)
        spec, status = wire.spec, wire.status
        on_delete = spec.update_strategy.type == "OnDelete"
        return Workload(
            replicas=spec.replicas,
            reach=None
            if on_delete
            else spec.replicas - kept_by_partition(spec.update_strategy.partition, spec.replicas),
            strategy=Strategy.ON_DELETE if on_delete else Strategy.ROLLING,
            paused=spec.update_strategy.paused,
            min_ready=spec.min_ready_seconds,
            waits_for_ready=False,
            update_revision=status.update_revision,
            obstacle=_obstacle(spec.update_strategy.type),
            refused="",
            max_surge=spec.update_strategy.max_surge or 0,
            max_unavailable=spec.update_strategy.max_unavailable,
            partition_is_share=isinstance(spec.update_strategy.partition, str),
            **common(self.resource.group_kind, wire.metadata, spec.selector, spec.template, status.observed_generation),
        )

    def pause(self) -> list[Operation]:
        return [{"op": "add", "path": "/spec/updateStrategy/paused", "value": True}]

    evicts: bool = False
    waits_for_end: bool = False
    keeps_base: bool = True
    held_fields: tuple[str, ...] = (_TYPE, _PARTITION)

    def hold(self, own: Fields, replicas: int, pods: int, *, surge: bool) -> Fields:
        """The partition keeps pods at the old version, and never fewer than the user's own one does. Without pods of
        the new version, it also keeps those that scaling adds."""
        kind = own.get(_TYPE)
        kept = kept_by_partition(own.get(_PARTITION), replicas) if pods > 0 else ALL
        return {
            _TYPE: "ReCreate" if kind == "OnDelete" else kind, _PARTITION: max(kept, replicas - pods, 0),
        }  # fmt: skip

    def at_once(self, own: Fields, replicas: int, *, surge: bool) -> int | None:
        return None

    def obstacle(self, spec: Object) -> str:
        kind = (spec.get("updateStrategy") or {}).get("type") or "ReCreate"
        return _obstacle(kind)


def _obstacle(strategy: str) -> str:
    return "its update strategy is OnDelete" if strategy == "OnDelete" else ""


def kept_by_partition(partition: int | str | None, replicas: int) -> int:
    """The number of pods that the partition keeps at the old version.

    A partition is a number, or a percentage of the replicas, rounded up. A percentage below 100 % lets the release
    reach at least one of several pods (openkruise/kruise, CalculatePartitionReplicas).
    """
    if partition is None:
        return 0
    percent = percentage(partition) if isinstance(partition, str) else None
    most = replicas - 1 if percent is not None and percent < 100 and replicas > 1 else replicas
    return min(max(scaled(partition, replicas, round_up=True) or 0, 0), most)
