"""DaemonSets: every release is a ControllerRevision. The number of pods is the number of suitable nodes."""

import msgspec

from altershield.api.json_patch import Operation
from altershield.workloads.adapter import Fields, Object, with_own_values
from altershield.workloads.meta import WorkloadMeta
from altershield.workloads.revision_data import OfRevisions
from altershield.workloads.workload import Strategy, WireSelector, WireTemplate, Workload, common
from kube_base.resources import DAEMON_SETS, Resource

_TYPE = "/spec/updateStrategy/type"


class _RollingUpdate(msgspec.Struct, frozen=True, rename="camel", gc=False):
    max_unavailable: int | str = 1
    max_surge: int | str = 0


class _Strategy(msgspec.Struct, frozen=True, rename="camel", gc=False):
    type: str = "RollingUpdate"
    rolling_update: _RollingUpdate | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    template: WireTemplate
    min_ready_seconds: int = 0
    update_strategy: _Strategy = _Strategy()
    selector: WireSelector = WireSelector()


class _Status(msgspec.Struct, frozen=True, rename="camel", gc=False):
    observed_generation: int = 0
    desired_number_scheduled: int = 0


class _Wire(msgspec.Struct, frozen=True, gc=False):
    metadata: WorkloadMeta
    spec: _Spec
    status: _Status = _Status()


_decode = msgspec.json.Decoder(_Wire).decode


class DaemonSets(OfRevisions):
    """The adapter of DaemonSets."""

    resource: Resource = DAEMON_SETS
    short_names: tuple[str, ...] = ("ds",)
    in_place: bool = False
    pause_field: str = "updateStrategy"
    leaves_other_revisions: bool = False
    crd: str = ""
    change_workload_prefix: str = "daemonset."

    def read(self, data: bytes | msgspec.Raw) -> Workload:
        return with_own_values(self, data)

    def read_in_force(self, data: bytes | msgspec.Raw) -> Workload:
        wire = _decode(data)
        spec, desired = wire.spec, wire.status.desired_number_scheduled
        surge = spec.update_strategy.rolling_update.max_surge if spec.update_strategy.rolling_update else 0
        on_delete = spec.update_strategy.type == "OnDelete"
        return Workload(
            replicas=desired,
            reach=None if on_delete else desired,
            strategy=Strategy.ON_DELETE if on_delete else Strategy.ROLLING,
            paused=False,
            min_ready=spec.min_ready_seconds,
            waits_for_ready=False,
            update_revision="",
            refused="",
            obstacle=_obstacle(spec.update_strategy.type, surge),
            max_surge=surge,
            max_unavailable=spec.update_strategy.rolling_update.max_unavailable
            if spec.update_strategy.rolling_update is not None
            else 1,
            **common(
                self.resource.group_kind, wire.metadata, spec.selector, spec.template, wire.status.observed_generation
            ),
        )

    def pause(self) -> list[Operation]:
        return [{"op": "add", "path": "/spec/updateStrategy", "value": {"type": "OnDelete"}}]

    evicts: bool = True
    waits_for_end: bool = True
    keeps_base: bool = False
    held_fields: tuple[str, ...] = (_TYPE,)

    def hold(self, own: Fields, replicas: int, pods: int, *, surge: bool) -> Fields:
        """Its controller replaces no pod by itself: the reconciler evicts the old ones. Held as a Deployment is, all
        pods were replaced at once, because old pods of a DaemonSet count as unavailable."""
        return {_TYPE: "OnDelete"}

    def at_once(self, own: Fields, replicas: int, *, surge: bool) -> int | None:
        return None

    def obstacle(self, spec: Object) -> str:
        strategy = spec.get("updateStrategy") or {}
        kind = strategy.get("type") or "RollingUpdate"
        return _obstacle(kind, (strategy.get("rollingUpdate") or {}).get("maxSurge") or 0)


def _obstacle(strategy: str, surge: int | str) -> str:
    if strategy != "RollingUpdate":
        return f"its update strategy is {strategy}"
    return "" if surge in (0, "0%") else "it has a maxSurge, beside which no pod may be unavailable"
