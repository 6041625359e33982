"""The kind PodUnavailableBudget: how many pods of an application may be unavailable by deletions, evictions and changes
in place. The CRD is generated from these types.

The names of the fields of `spec` are those of OpenKruise's kind of the same name, so that a manifest changes only its
apiVersion.
"""

import enum
from typing import Annotated

import msgspec

from altershield.api.announcements import Announcements
from altershield.api.fields import Name
from altershield.api.kinds import AGE, Column, Kind
from altershield.api.meta import Condition
from altershield.api.resources import API_VERSION, POD_UNAVAILABLE_BUDGETS
from altershield.api.schema import doc, extra, rules
from altershield.api.selectors import Selector
from kube_base.meta import PartialObjectMeta
from kube_base.resources import GroupKind

MAX_RECORDS = 2000
"""The maximum number of records in a budget, of both kinds together. Further disruptions are refused."""

MAX_LOSSES = 200
"""The maximum number of pods in `ungatedPods`. Further ones are reported when there is room again."""

MAX_BY = 128
"""The maximum number of characters of `by` in a record."""

NO_PROTECT = "pub.kruise.io/no-protect"
"""An annotation of a pod, set by the user: with a true value, no budget protects the pod, and it counts in none."""

UNAVAILABLE_LABEL_PREFIX = "unavailable-pod.kruise.io/"
"""The prefix of labels that take a pod out of service. A pod with such a label is not available."""

SPECIFIED_DELETE_LABEL = "apps.kruise.io/specified-delete"
"""A label of OpenKruise: the controller of the pod will delete the pod."""

BREAK_GLASS_GROUP = "altershield:break-glass"
"""The group of users whose requests no budget refuses. RBAC decides which users may impersonate the group."""


class Operation(enum.StrEnum):
    """An operation that disrupts a pod."""

    DELETE = "DELETE"
    EVICT = "EVICT"
    UPDATE = "UPDATE"
    """An update that takes the pod out of service: another image, a deadline, a label."""
    RESIZE = "RESIZE"
    """A change of resources that restarts no container."""
    RESTART = "RESTART"
    """A restart of containers by a ContainerRecreateRequest of OpenKruise."""


DEFAULT_OPERATIONS = (Operation.DELETE, Operation.EVICT, Operation.UPDATE, Operation.RESTART)
"""The operations from which a budget without `protectOperations` protects."""

REMOVING = (Operation.DELETE, Operation.EVICT)
"""The operations that delete the pod. Their records are in `disruptedPods`, other records are in `unavailablePods`."""


class UnhealthyPodPolicy(enum.StrEnum):
    """Whether a pod that is not available may be disrupted."""

    ALWAYS_ALLOW = "AlwaysAllow"
    IF_HEALTHY_BUDGET = "IfHealthyBudget"
    """The pod may be disrupted only while at least `desiredAvailable` pods are available."""


class BudgetMode(enum.StrEnum):
    """The reaction to a request that exceeds the budget."""

    ENFORCE = "Enforce"
    WARN = "Warn"
    """The request passes with a warning."""


class BudgetCondition(enum.StrEnum):
    """`status.conditions[].type`."""

    ALLOWED = "DisruptionAllowed"
    """Whether a pod may be disrupted now."""
    OVERLAPPING = "Overlapping"
    """Whether another budget covers pods of this one."""


_NOT_EMPTY = (
    "(has(self.matchLabels) && self.matchLabels.size() > 0) || "
    "(has(self.matchExpressions) && self.matchExpressions.size() > 0)"
)
_ATOMIC = extra(x_kubernetes_map_type="atomic")

Amount = (
    Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
    | Annotated[str, msgspec.Meta(max_length=4), extra(pattern="^([0-9]|[1-9][0-9]|100)%$")]
)
"""A number of pods, or a share of the total."""


class TargetRef(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The workload whose pods a budget protects, in the namespace of the budget."""

    api_version: Annotated[Name, doc("Its apiVersion, for example `apps/v1`.")]
    kind: Annotated[Annotated[str, msgspec.Meta(min_length=1, max_length=63)], doc("Its kind.")]
    name: Annotated[Annotated[str, msgspec.Meta(min_length=1, max_length=253)], doc("Its name.")]

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind.of(self.api_version, self.kind)


class PodUnavailableBudgetSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Exactly one of `selector` and `targetRef`, and exactly one of `maxUnavailable` and `minAvailable`."""

    selector: Annotated[
        Selector | None,
        doc("The labels of the pods. It cannot be empty, and does not change."),
        _ATOMIC,
        rules((_NOT_EMPTY, "an empty selector would select each pod of the namespace")),
    ] = None
    target_ref: Annotated[
        TargetRef | None, doc("The workload whose pods are protected. It does not change."), _ATOMIC
    ] = None
    max_unavailable: Annotated[
        Amount | None,
        doc("How many pods may be unavailable: a number, or a share of the total (`25%`), rounded up. 0: none."),
    ] = None
    min_available: Annotated[
        Amount | None,
        doc("How many pods have to be available: a number, or a share of the total (`75%`), rounded up."),
    ] = None
    protect_operations: Annotated[
        tuple[Operation, ...],
        msgspec.Meta(
            min_length=1,
            max_length=5,
            description="The operations from which the pods are protected: `DELETE`, `EVICT`, `UPDATE`, `RESIZE`, "
            "`RESTART`. Default: all but `RESIZE`.",
        ),
        extra(x_kubernetes_list_type="set"),
    ] = DEFAULT_OPERATIONS
    protect_total_replicas: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None,
        doc("The total number of pods, if the pods have no workload that says it."),
    ] = None
    ignored_pod_selector: Annotated[
        Selector | None,
        doc("The labels of pods that are not protected and do not count. It cannot be empty."),
        _ATOMIC,
        rules((_NOT_EMPTY, "an empty selector would ignore each pod")),
    ] = None
    unhealthy_pod_policy: Annotated[
        UnhealthyPodPolicy,
        doc(
            "Whether a pod that is not available may be disrupted: `AlwaysAllow`, or `IfHealthyBudget`, only while "
            "enough other pods are available."
        ),
    ] = UnhealthyPodPolicy.ALWAYS_ALLOW
    mode: Annotated[
        BudgetMode,
        doc("`Enforce` refuses requests that exceed the budget. `Warn` lets these requests pass with a warning."),
    ] = BudgetMode.ENFORCE


class DisruptionRecord(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A disruption of a pod that was admitted, and that the pod does not show yet."""

    name: Annotated[Name, doc("The name of the pod.")]
    operation: Annotated[Operation, doc("The operation that was admitted.")]
    time: Annotated[
        Annotated[str, msgspec.Meta(max_length=64)],
        doc("When the disruption was admitted, by the clock of the API server."),
    ]
    by: Annotated[Annotated[str, msgspec.Meta(max_length=MAX_BY)], doc("The user who asked for the disruption.")] = ""
    shows: Annotated[
        Annotated[str, msgspec.Meta(max_length=1024)],
        doc("How the pod will show a change in place. AlterShield writes and reads it."),
    ] = ""
    break_glass: Annotated[
        bool,
        doc("Whether the budget would have refused the disruption, but the user was in the group for emergencies."),
    ] = False


class Loss(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A pod that was lost although no gatekeeper was asked."""

    name: Annotated[Name, doc("The name of the pod.")]
    time: Annotated[Annotated[str, msgspec.Meta(max_length=64)], doc("When the pod was lost, UTC.")]


_Uid = Annotated[str, msgspec.Meta(max_length=64)]

Records = Annotated[
    dict[_Uid, DisruptionRecord],
    msgspec.Meta(max_length=MAX_RECORDS),
    extra(x_kubernetes_map_type="atomic"),
]
"""Records by the uid of the pod. The map is atomic, because managedFields would otherwise name each uid."""


class PodUnavailableBudgetStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The numbers as they were computed last, and the records of admitted disruptions."""

    observed_generation: Annotated[
        int, msgspec.Meta(ge=0, le=2**53, description="The generation of the spec that this status describes.")
    ] = 0
    total_replicas: Annotated[int, msgspec.Meta(ge=0, description="How many pods there should be.")] = 0
    desired_available: Annotated[int, msgspec.Meta(ge=0, description="How many pods have to be available.")] = 0
    current_available: Annotated[int, msgspec.Meta(ge=0, description="How many pods are available.")] = 0
    unavailable_allowed: Annotated[int, msgspec.Meta(ge=0, description="How many pods may be disrupted now.")] = 0
    pods_resource_version: Annotated[
        Annotated[str, msgspec.Meta(max_length=64)],
        doc(
            "The resourceVersion of pods up to which a gatekeeper must have seen all changes before it decides. It "
            "includes the disruptions whose records were dropped."
        ),
    ] = ""
    disrupted_pods: Annotated[Records, doc("Pods whose deletion or eviction was admitted, by uid.")] = {}
    unavailable_pods: Annotated[Records, doc("Pods whose change in place or restart was admitted, by uid.")] = {}
    ungated_pods: Annotated[
        dict[_Uid, Loss],
        msgspec.Meta(
            max_length=MAX_LOSSES,
            description="Pods that were lost in the last hour although no gatekeeper was asked, by uid. Each has been "
            "reported by the Event `UngatedDeletion`.",
        ),
        extra(x_kubernetes_map_type="atomic"),
    ] = {}
    announcements: Announcements = ()
    conditions: Annotated[
        tuple[Condition, ...], msgspec.Meta(max_length=16, description="The state as Kubernetes conditions.")
    ] = ()


class PodUnavailableBudget(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """How many pods of an application may be unavailable by deletions, evictions and changes in place."""

    metadata: PartialObjectMeta
    spec: Annotated[
        PodUnavailableBudgetSpec,
        rules(
            ("has(self.selector) != has(self.targetRef)", "a budget has exactly one of selector and targetRef"),
            (
                "has(self.maxUnavailable) != has(self.minAvailable)",
                "a budget has exactly one of maxUnavailable and minAvailable",
            ),
            (
                "has(self.selector) == has(oldSelf.selector) && "
                "(!has(self.selector) || self.selector == oldSelf.selector)",
                "the selector of a budget does not change: create another budget",
            ),
            (
                "has(self.targetRef) == has(oldSelf.targetRef) && "
                "(!has(self.targetRef) || self.targetRef == oldSelf.targetRef)",
                "the targetRef of a budget does not change: create another budget",
            ),
        ),
    ] = PodUnavailableBudgetSpec()
    status: PodUnavailableBudgetStatus = PodUnavailableBudgetStatus()
    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: POD_UNAVAILABLE_BUDGETS.kind)


KIND = Kind(
    resource=POD_UNAVAILABLE_BUDGETS,
    type=PodUnavailableBudget,
    short_name="pub",
    title="Pod unavailable budget",
    summary="How many pods of an application may be unavailable by deletions, evictions and changes in place",
    columns=(
        Column("MODE", "string", ".spec.mode"),
        Column("ALLOWED", "integer", ".status.unavailableAllowed"),
        Column("CURRENT", "integer", ".status.currentAvailable"),
        Column("DESIRED", "integer", ".status.desiredAvailable"),
        Column("TOTAL", "integer", ".status.totalReplicas"),
        AGE,
        Column("MIN-AVAILABLE", "string", ".spec.minAvailable", wide=True),
        Column("MAX-UNAVAILABLE", "string", ".spec.maxUnavailable", wide=True),
        Column("TARGET", "string", ".spec.targetRef.name", wide=True),
        Column("OPERATIONS", "string", ".spec.protectOperations", wide=True),
    ),
    status={"totalReplicas": 0, "desiredAvailable": 0, "currentAvailable": 0, "unavailableAllowed": 0},
    nullable=False,
)
