"""StatefulSets: every release is a ControllerRevision. Pods are replaced from the highest ordinal down."""

import msgspec

from altershield.api.json_patch import Operation
from altershield.workloads.adapter import Fields, Object, with_own_values
from altershield.workloads.held import ALL
from altershield.workloads.meta import WorkloadMeta
from altershield.workloads.revision_data import OfRevisions
from altershield.workloads.workload import Strategy, WireSelector, WireTemplate, Workload, common
from kube_base.resources import STATEFUL_SETS, Resource

_TYPE = "/spec/updateStrategy/type"
_PARTITION = "/spec/updateStrategy/rollingUpdate/partition"


class _RollingUpdate(msgspec.Struct, frozen=True, rename="camel", gc=False):
    partition: int = 0
    max_unavailable: int | str = 1


class _Strategy(msgspec.Struct, frozen=True, rename="camel", gc=False):
    type: str = "RollingUpdate"
    rolling_update: _RollingUpdate | None = None


class _Ordinals(msgspec.Struct, frozen=True, gc=False):
    start: int = 0


class _Spec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    template: WireTemplate
    replicas: int = 1
    min_ready_seconds: int = 0
    pod_management_policy: str = "OrderedReady"
    update_strategy: _Strategy = _Strategy()
    ordinals: _Ordinals | None = None
    selector: WireSelector = WireSelector()


class _Status(msgspec.Struct, frozen=True, rename="camel", gc=False):
    observed_generation: int = 0
    current_revision: str = ""
    update_revision: str = ""


class _Wire(msgspec.Struct, frozen=True, gc=False):
    metadata: WorkloadMeta
    spec: _Spec
    status: _Status = _Status()


_decode = msgspec.json.Decoder(_Wire).decode


class StatefulSets(OfRevisions):
    """The adapter of StatefulSets."""

    resource: Resource = STATEFUL_SETS
    short_names: tuple[str, ...] = ("sts",)
    in_place: bool = False
    pause_field: str = "updateStrategy"
    leaves_other_revisions: bool = True
    crd: str = ""
    change_workload_prefix: str = "statefulset."

    def read(self, data: bytes | msgspec.Raw) -> Workload:
        return with_own_values(self, data)

    def read_in_force(self, data: bytes | msgspec.Raw) -> Workload:
        wire = _decode(data)
        spec = wire.spec
        on_delete = spec.update_strategy.type == "OnDelete"
        return Workload(
            replicas=spec.replicas,
            reach=None if on_delete else _reach(spec),
            strategy=Strategy.ON_DELETE if on_delete else Strategy.ROLLING,
            paused=False,
            min_ready=spec.min_ready_seconds,
            waits_for_ready=spec.pod_management_policy == "OrderedReady",
            update_revision=wire.status.update_revision,
            obstacle=_obstacle(spec.update_strategy.type),
            refused="",
            ends_at=_start(spec) + spec.replicas,
            kept_below=0 if on_delete else _start(spec) + _partition(spec),
            kept_revision=wire.status.current_revision,
            max_unavailable=spec.update_strategy.rolling_update.max_unavailable
            if spec.update_strategy.rolling_update is not None
            else 1,
            **common(
                self.resource.group_kind, wire.metadata, spec.selector, spec.template, wire.status.observed_generation
            ),
        )

    def pause(self) -> list[Operation]:
        """Sets a partition that is higher than every ordinal."""
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": ALL}}
        return [{"op": "add", "path": "/spec/updateStrategy", "value": rolling}]

    evicts: bool = False
    waits_for_end: bool = True
    keeps_base: bool = False
    held_fields: tuple[str, ...] = (_TYPE, _PARTITION)

    def hold(self, own: Fields, replicas: int, pods: int, *, surge: bool) -> Fields:
        """The partition keeps the pods with the lowest ordinals at the old version, and never fewer than the user's own
        one does. Without pods of the new version, it also keeps those that scaling adds."""
        partition = own.get(_PARTITION)
        kept = replicas - pods if pods > 0 else ALL
        return {_TYPE: "RollingUpdate", _PARTITION: max(partition or 0, kept)}

    def at_once(self, own: Fields, replicas: int, *, surge: bool) -> int | None:
        return None

    def obstacle(self, spec: Object) -> str:
        kind = (spec.get("updateStrategy") or {}).get("type") or "RollingUpdate"
        return _obstacle(kind)


def _obstacle(strategy: str) -> str:
    return "" if strategy == "RollingUpdate" else f"its update strategy is {strategy}"


def _start(spec: _Spec) -> int:
    """The first ordinal."""
    return spec.ordinals.start if spec.ordinals is not None else 0


def _reach(spec: _Spec) -> int:
    """The number of pods that the partition does not keep at the old version."""
    return max(0, spec.replicas - _partition(spec))


def _partition(spec: _Spec) -> int:
    """The number of pods, from the first ordinal on, that the partition keeps at the old version.

    The StatefulSet controller counts from the first ordinal, also if `spec.ordinals.start` is not 0
    (kubernetes/kubernetes, newVersionedStatefulSetPod).
    """
    rolling = spec.update_strategy.rolling_update
    return max(0, rolling.partition) if rolling is not None else 0
