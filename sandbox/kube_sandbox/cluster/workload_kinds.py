"""The fields of StatefulSets, DaemonSets, CloneSets and ControllerRevisions that the simulation reads."""

from typing import Any

import msgspec

from kube_sandbox.cluster.kinds import Condition, LabelSelector, Meta, Object


class ControllerRevision(msgspec.Struct, frozen=True, omit_defaults=True):
    """A template of a workload. `data` is the patch that restores it."""

    metadata: Meta
    data: Any = None
    revision: int = 0


class StatefulRollingUpdate(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    partition: int = 0
    max_unavailable: int | str | None = None


class StatefulStrategy(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    type: str = "RollingUpdate"
    rolling_update: StatefulRollingUpdate | None = None


class Ordinals(msgspec.Struct, frozen=True, omit_defaults=True):
    start: int = 0


class StatefulSetSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    selector: LabelSelector
    template: Object
    replicas: int = 1
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    update_strategy: StatefulStrategy = StatefulStrategy()
    ordinals: Ordinals | None = None
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    volume_claim_templates: tuple[Object, ...] = ()


class StatefulSetStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: int | None = None


class StatefulSet(msgspec.Struct, frozen=True, omit_defaults=True):
    metadata: Meta
    spec: StatefulSetSpec
    status: StatefulSetStatus = StatefulSetStatus()


class DaemonRollingUpdate(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    max_unavailable: int | str = 1
    max_surge: int | str = 0


class DaemonStrategy(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    type: str = "RollingUpdate"
    rolling_update: DaemonRollingUpdate | None = None


class DaemonSetSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    selector: LabelSelector
    template: Object
    update_strategy: DaemonStrategy = DaemonStrategy()
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None


class DaemonSetStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    observed_generation: int = 0
    current_number_scheduled: int = 0
    number_misscheduled: int = 0
    desired_number_scheduled: int = 0
    number_ready: int = 0
    updated_number_scheduled: int = 0
    number_available: int = 0
    number_unavailable: int = 0
    collision_count: int | None = None


class DaemonSet(msgspec.Struct, frozen=True, omit_defaults=True):
    metadata: Meta
    spec: DaemonSetSpec
    status: DaemonSetStatus = DaemonSetStatus()


class ScaleStrategy(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    pods_to_delete: tuple[str, ...] = ()
    max_unavailable: int | str | None = None


class CloneStrategy(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    type: str = "ReCreate"
    partition: int | str = 0
    max_unavailable: int | str = "20%"
    max_surge: int | str = 0
    paused: bool = False


class CloneSetSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    selector: LabelSelector
    template: Object
    replicas: int = 1
    scale_strategy: ScaleStrategy = ScaleStrategy()
    update_strategy: CloneStrategy = CloneStrategy()
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    progress_deadline_seconds: int | None = None


class CloneSetStatus(msgspec.Struct, frozen=True, rename="camel"):
    """All counts are written, zeros too: for a custom resource, the API server has no type that leaves zeros out."""

    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    updated_replicas: int = 0
    updated_ready_replicas: int = 0
    updated_available_replicas: int = 0
    expected_updated_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: int | None = None
    label_selector: str = ""
    conditions: tuple[Condition, ...] = ()


class CloneSet(msgspec.Struct, frozen=True, omit_defaults=True):
    metadata: Meta
    spec: CloneSetSpec
    status: CloneSetStatus = CloneSetStatus()
