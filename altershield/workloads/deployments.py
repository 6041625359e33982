"""Deployments: every release is a ReplicaSet, which controls the pods."""

from copy import deepcopy
from typing import Any

import msgspec

from altershield.api.amounts import scaled
from altershield.api.json_patch import Operation
from altershield.workloads import sets
from altershield.workloads.adapter import Fields, Object, with_own_values
from altershield.workloads.held import NEVER_AVAILABLE, NO_DEADLINE
from altershield.workloads.meta import WorkloadMeta
from altershield.workloads.pods import clip
from altershield.workloads.workload import Strategy, WireSelector, WireTemplate, Workload, common
from kube_base.resources import DEPLOYMENTS, REPLICA_SETS, Resource

_HASH = "pod-template-hash"  # added to a ReplicaSet's template by the deployment controller


_MIN_READY = "/spec/minReadySeconds"
_DEADLINE = "/spec/progressDeadlineSeconds"
_PAUSED = "/spec/paused"
_TYPE = "/spec/strategy/type"
_UNAVAILABLE = "/spec/strategy/rollingUpdate/maxUnavailable"
_SURGE = "/spec/strategy/rollingUpdate/maxSurge"
_DEFAULT = "25%"  # of maxUnavailable and maxSurge


class _RollingUpdate(msgspec.Struct, frozen=True, rename="camel", gc=False):
    max_unavailable: int | str = "25%"
    max_surge: int | str = "25%"


class _Strategy(msgspec.Struct, frozen=True, rename="camel", gc=False):
    type: str = "RollingUpdate"
    rolling_update: _RollingUpdate | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    template: WireTemplate
    replicas: int = 1
    paused: bool = False
    min_ready_seconds: int = 0
    progress_deadline_seconds: int | None = None
    strategy: _Strategy = _Strategy()
    selector: WireSelector = WireSelector()


class _Condition(msgspec.Struct, frozen=True, gc=False):
    type: str
    status: str
    reason: str = ""
    message: str = ""


class _Status(msgspec.Struct, frozen=True, rename="camel", gc=False):
    observed_generation: int = 0
    updated_replicas: int = 0
    conditions: tuple[_Condition, ...] = ()


class _Wire(msgspec.Struct, frozen=True, gc=False):
    metadata: WorkloadMeta
    spec: _Spec
    status: _Status = _Status()


_decode = msgspec.json.Decoder(_Wire).decode


class Deployments:
    """The adapter of Deployments."""

    resource: Resource = DEPLOYMENTS
    short_names: tuple[str, ...] = ("deploy",)
    revisions: Resource = REPLICA_SETS
    intermediate: Resource | None = REPLICA_SETS
    in_place: bool = False
    pause_field: str = "paused"
    leaves_other_revisions: bool = True
    crd: str = ""
    change_workload_prefix: str = ""

    def read(self, data: bytes | msgspec.Raw) -> Workload:
        return with_own_values(self, data)

    def read_in_force(self, data: bytes | msgspec.Raw) -> Workload:
        wire = _decode(data)
        spec = wire.spec
        return Workload(
            replicas=spec.replicas,
            reach=spec.replicas,
            strategy=Strategy.ROLLING if spec.strategy.type == "RollingUpdate" else Strategy.RECREATE,
            paused=spec.paused,
            min_ready=spec.min_ready_seconds,
            waits_for_ready=False,
            update_revision="",
            obstacle=_obstacle(spec.strategy.type),
            refused=_refused(wire.status.conditions),
            max_surge=spec.strategy.rolling_update.max_surge if spec.strategy.rolling_update else "25%",
            updated=wire.status.updated_replicas,
            max_unavailable=spec.strategy.rolling_update.max_unavailable if spec.strategy.rolling_update else 1,
            **common(
                self.resource.group_kind,
                wire.metadata,
                spec.selector,
                spec.template,
                wire.status.observed_generation,
                spec.progress_deadline_seconds,
            ),
        )

    def template(self, revision: Object) -> Object | None:
        """Without the label that the deployment controller added."""
        template: Any = (revision.get("spec") or {}).get("template")
        if not isinstance(template, dict):
            return None
        template = deepcopy(template)
        found: Object = template
        ((template.get("metadata") or {}).get("labels") or {}).pop(_HASH, None)
        return found

    def number(self, revision: Object) -> int:
        return sets.number(revision["metadata"].get("annotations"))

    def release(self, template: Object) -> list[Operation]:
        return [{"op": "replace", "path": "/spec/template", "value": template}]

    def pause(self) -> list[Operation]:
        return [{"op": "add", "path": "/spec/paused", "value": True}]

    evicts: bool = False
    waits_for_end: bool = False
    keeps_base: bool = True
    held_fields: tuple[str, ...] = (_PAUSED, _MIN_READY, _DEADLINE, _TYPE, _UNAVAILABLE, _SURGE)

    def hold(self, own: Fields, replicas: int, pods: int, *, surge: bool) -> Fields:
        """New pods are ready, and never available, so the deployment controller stops at `maxUnavailable` plus
        `maxSurge` of them. Without pods, the rollout is paused: both numbers may not be 0."""
        if pods <= 0:
            return {**own, _PAUSED: True}
        above = min(own_surge(own, replicas) if surge else 0, pods)
        return {
            _PAUSED: own.get(_PAUSED),
            _MIN_READY: NEVER_AVAILABLE,
            _DEADLINE: NO_DEADLINE,
            _TYPE: "RollingUpdate",
            _UNAVAILABLE: _share(min(pods - above, replicas), replicas),
            _SURGE: above,
        }

    def at_once(self, own: Fields, replicas: int, *, surge: bool) -> int | None:
        above, value = own_surge(own, replicas), own.get(_UNAVAILABLE)
        below = max(0, scaled(_DEFAULT if value is None else value, replicas, round_up=False) or 0)
        below = below if below or above else 1  # the deployment controller reads two zeros so
        return (above if surge else 0) + below

    def obstacle(self, spec: Object) -> str:
        kind = (spec.get("strategy") or {}).get("type") or "RollingUpdate"
        return _obstacle(kind)


def _obstacle(strategy: str) -> str:
    return "" if strategy == "RollingUpdate" else f"its strategy is {strategy}"


def own_surge(own: Fields, replicas: int) -> int:
    """How many pods the user's own strategy allows above the replicas."""
    value = own.get(_SURGE)
    return max(0, scaled(_DEFAULT if value is None else value, replicas, round_up=True) or 0)


def own_unavailable(own: Fields, replicas: int) -> int:
    """How many pods the user's own strategy allows to be unavailable."""
    value = own.get(_UNAVAILABLE)
    return max(0, scaled(_DEFAULT if value is None else value, replicas, round_up=False) or 0)


def _share(number: int, replicas: int) -> int | str:
    """The smallest percentage that means so many of the replicas, rounded down; the number itself if none does. A
    percentage stays right while the workload is scaled: a number may then mean all pods. 100 % always means all pods,
    also those that scaling adds."""
    if not number or number >= replicas:
        return number
    percent = -(-100 * number // replicas)
    return f"{percent}%" if replicas * percent // 100 == number else number


def _refused(conditions: tuple[_Condition, ...]) -> str:
    """Why the deployment controller cannot create pods, from its condition: a quota, a policy or a missing service
    account."""
    for condition in conditions:
        if condition.type == "ReplicaFailure" and condition.status == "True":
            return clip(f"{condition.reason}: {condition.message}")
    return ""
