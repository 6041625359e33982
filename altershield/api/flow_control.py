"""The kind PodDeletionFlowControl: how many pods may be deleted in an interval, and the breaker that stops all
deletions. The CRD is generated from these types.

`altershield/flow_control/` decides about deletions. Gatekeepers count deletions in the status. The leading reconciler
confirms the counts, and gives back the counts of deletions that did not happen.
"""

import enum
from typing import Annotated

import msgspec

from altershield.api import durations
from altershield.api.announcements import Announcements
from altershield.api.kinds import AGE, Column, Kind
from altershield.api.meta import Condition
from altershield.api.resources import API_VERSION, POD_DELETION_FLOW_CONTROLS
from altershield.api.schema import doc, rules
from altershield.api.selectors import Selector
from kube_base.meta import ObjectMeta

MAX_RULES = 8
"""The maximum number of rules of a PodDeletionFlowControl."""

MAX_BUCKETS = 128
"""The maximum number of buckets of a window: 60 for its interval, and a few for clocks that differ."""

MAX_PENDING = 500
"""The maximum number of deletions that wait for their confirmation. Further deletions are refused."""

MAX_LOST = 200
"""The maximum number of pods in `ungatedPods`. Further ones are counted when there is room again."""

MAX_SOURCES = 10
MAX_DENIED = 20
"""The maximum numbers of entries in `topSources` and `lastDenied`."""

COOLDOWN = "10m"
WARN_PERCENT = 80

_Name = Annotated[str, msgspec.Meta(max_length=253)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**31)]
_Time = Annotated[str, msgspec.Meta(max_length=64)]


Duration = Annotated[
    str,
    msgspec.Meta(max_length=18),
    msgspec.Meta(extra_json_schema={"pattern": durations.PATTERN, "minLength": 2}),
    rules(
        (
            "duration(self) >= duration('1s') && duration(self) <= duration('168h')",
            "a duration is from 1s to 168h, for example 90s, 10m or 1h30m",
        )
    ),
]


class Mode(enum.StrEnum):
    """`PodDeletionFlowControl.spec.mode`."""

    ENFORCE = "Enforce"
    WARN = "Warn"
    """Deletions are counted. A deletion that `Enforce` would refuse gets a warning."""


class OnError(enum.StrEnum):
    """The reaction to a deletion that cannot be counted."""

    DENY = "Deny"
    ALLOW = "Allow"


class BreakerMode(enum.StrEnum):
    """`PodDeletionFlowControl.spec.breaker.mode`."""

    OFF = "Off"
    """Deletions beyond a limit are refused until the window has moved on."""
    AUTO = "Auto"
    """A deletion beyond a limit opens the breaker. It closes by itself."""
    MANUAL = "Manual"
    """A deletion beyond a limit opens the breaker. A person resets it."""


class BreakerState(enum.StrEnum):
    """`PodDeletionFlowControl.status.breaker.state`."""

    CLOSED = "Closed"
    HALF_OPEN = "HalfOpen"
    """After the cooldown, a few deletions pass."""
    OPEN = "Open"
    """All deletions that are counted are refused."""


class LimitRule(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A limit of deletions in an interval."""

    interval: Annotated[Duration, doc("The interval, from `1s` to `168h`: `90s`, `10m`, `1h30m`.")]
    limit: Annotated[
        int, msgspec.Meta(ge=0, le=1_000_000, description="How many pods may be deleted in any such interval.")
    ]


class BreakerSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The breaker."""

    mode: Annotated[
        BreakerMode, doc("Whether a deletion beyond a limit opens the breaker, and how it closes: Off, Auto, Manual.")
    ] = BreakerMode.OFF
    cooldown: Annotated[Duration, doc("With `Auto`: how long the breaker stays open.")] = COOLDOWN


class FlowControlSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Which deletions are counted, and the limits."""

    limit_rules: Annotated[
        tuple[LimitRule, ...],
        msgspec.Meta(
            min_length=1, max_length=MAX_RULES, description="The limits. Each deletion counts in all of them."
        ),
        msgspec.Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["interval"]}),
        rules(
            (
                "self.all(one, self.exists_one(other, duration(other.interval) == duration(one.interval)))",
                "each interval has one limit",
            )
        ),
    ]
    white_list_selector: Annotated[
        Selector | None,
        doc("The labels of pods that are never counted and never refused. Empty or not set: no pods."),
        msgspec.Meta(extra_json_schema={"x-kubernetes-map-type": "atomic"}),
    ] = None
    pod_selector: Annotated[
        Selector | None,
        doc("The labels of the pods whose deletions are counted. Empty or not set: all pods."),
        msgspec.Meta(extra_json_schema={"x-kubernetes-map-type": "atomic"}),
    ] = None
    namespace_selector: Annotated[
        Selector | None,
        doc("The labels of the namespaces of these pods. Empty or not set: all namespaces."),
        msgspec.Meta(extra_json_schema={"x-kubernetes-map-type": "atomic"}),
    ] = None
    mode: Annotated[
        Mode, doc("`Enforce` refuses deletions beyond a limit. `Warn` counts them and lets them pass with a warning.")
    ] = Mode.ENFORCE
    warn_percent: Annotated[
        int,
        msgspec.Meta(
            ge=1, le=100, description="The share of a limit from which a deletion gets a warning. Default: 80."
        ),
    ] = WARN_PERCENT
    on_error: Annotated[
        OnError, doc("What happens to a deletion that cannot be counted, because the API server does not answer.")
    ] = OnError.DENY
    breaker: Annotated[BreakerSpec, doc("The breaker, which refuses all deletions once a limit is reached.")] = (
        BreakerSpec()
    )


class Window(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The deletions in the interval of one rule."""

    interval: Annotated[_Time, doc("The interval of the rule.")] = ""
    limit: Annotated[_Count, doc("The limit of the rule.")] = msgspec.field(default_factory=int)
    used: Annotated[_Count, doc("How many deletions were counted in the interval, when this status was written.")] = (
        msgspec.field(default_factory=int)
    )
    bucket_seconds: Annotated[_Count, doc("The seconds of one bucket.")] = 1
    buckets: Annotated[
        dict[str, _Count],
        msgspec.Meta(
            max_length=MAX_BUCKETS, description="The deletions of each bucket, by the Unix second at which it begins."
        ),
    ] = {}
    since: Annotated[
        _Time, doc("When this window began; it took earlier deletions over from another window. Empty: it took none.")
    ] = ""


class Pending(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A deletion that was counted and admitted, but is not confirmed yet."""

    namespace: Annotated[_Name, doc("The namespace of the pod.")] = ""
    name: Annotated[_Name, doc("The name of the pod.")] = ""
    operation: Annotated[_Time, doc("`DELETE` or `EVICT`.")] = ""
    time: Annotated[_Time, doc("When it was counted, UTC.")] = ""
    by: Annotated[_Name, doc("The user who asked.")] = ""
    claim: Annotated[
        _Time,
        doc("The id of the request, if several objects count the deletion and no other request relies on this count."),
    ] = ""
    break_glass: Annotated[bool, doc("Whether the user was in the group for emergencies.")] = False


class Breaker(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The state of the breaker. A person resets it by writing `Closed` into `state`."""

    state: Annotated[BreakerState, doc("`Closed`, `Open` or `HalfOpen`.")] = BreakerState.CLOSED
    since: Annotated[_Time, doc("Since when, UTC.")] = ""
    until: Annotated[_Time, doc("With `Auto`: when this state ends, UTC.")] = ""
    rule: Annotated[_Time, doc("The rule that opened it, as `10m/100`. Empty: a person opened it.")] = ""
    passed: Annotated[_Count, doc("In the state `HalfOpen`: how many deletions passed.")] = 0
    opened_by: Annotated[_Name, doc("The person who opened it.")] = ""
    reset_by: Annotated[_Name, doc("The person who reset it last.")] = ""


class Source(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A user who deletes pods."""

    by: Annotated[_Name, doc("The user.")] = ""
    count: Annotated[_Count, doc("How many deletions of this user were counted; an upper bound.")] = 0
    last_time: Annotated[_Time, doc("When the last deletion of this user was counted, UTC.")] = ""


class Denied(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A deletion that was refused."""

    namespace: Annotated[_Name, doc("The namespace of the pod.")] = ""
    name: Annotated[_Name, doc("The name of the pod.")] = ""
    operation: Annotated[_Time, doc("`DELETE` or `EVICT`.")] = ""
    by: Annotated[_Name, doc("The user who asked.")] = ""
    time: Annotated[_Time, doc("When it was refused last, UTC.")] = ""
    count: Annotated[_Count, doc("How often the deletion of this pod was refused to this user.")] = 1


class LostPod(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A pod that was lost although no gatekeeper was asked."""

    namespace: Annotated[_Name, doc("The namespace of the pod.")]
    name: Annotated[_Name, doc("The name of the pod.")]
    time: Annotated[_Time, doc("When it was counted, UTC.")]


class FlowControlStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The deletions that were counted, and the state of the breaker."""

    windows: Annotated[
        tuple[Window, ...], msgspec.Meta(max_length=MAX_RULES, description="The deletions, one entry for each rule.")
    ] = ()
    pending: Annotated[
        dict[str, Pending],
        msgspec.Meta(
            max_length=MAX_PENDING,
            description="Deletions that were counted and are not confirmed yet, by the uid of the pod.",
        ),
    ] = {}
    ungated_pods: Annotated[
        dict[str, LostPod],
        msgspec.Meta(
            max_length=MAX_LOST,
            description="Pods that a kubelet evicted, or that were lost with their node, in the last hour, by uid. "
            "Each was counted like a deletion, and reported by the Event `UngatedDeletion`.",
        ),
    ] = {}
    breaker: Annotated[Breaker, doc("The state of the breaker.")] = Breaker()
    top_sources: Annotated[
        tuple[Source, ...],
        msgspec.Meta(max_length=MAX_SOURCES, description="The users who delete most. Users who stop are removed."),
    ] = ()
    last_denied: Annotated[
        tuple[Denied, ...], msgspec.Meta(max_length=MAX_DENIED, description="The deletions that were refused last.")
    ] = ()
    announcements: Announcements = ()
    conditions: Annotated[
        tuple[Condition, ...], msgspec.Meta(max_length=16, description="The state as Kubernetes conditions.")
    ] = ()
    observed_generation: Annotated[
        int, msgspec.Meta(ge=0, le=2**53, description="The generation of the spec that the conditions describe.")
    ] = 0


class PodDeletionFlowControl(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """How many pods may be deleted in an interval, in the whole cluster or a part of it."""

    metadata: ObjectMeta
    spec: FlowControlSpec
    status: FlowControlStatus = FlowControlStatus()
    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: POD_DELETION_FLOW_CONTROLS.kind)


KIND = Kind(
    resource=POD_DELETION_FLOW_CONTROLS,
    type=PodDeletionFlowControl,
    short_name="pdfc",
    title="Flow control of pod deletions",
    summary="How many pods may be deleted in a time, and a breaker that stops all deletions",
    columns=(
        Column("MODE", "string", ".spec.mode"),
        Column("BREAKER", "string", ".status.breaker.state"),
        Column("INTERVAL", "string", ".spec.limitRules[0].interval"),
        Column("USED", "integer", ".status.windows[0].used"),
        Column("LIMIT", "integer", ".spec.limitRules[0].limit"),
        AGE,
        Column("SINCE", "string", ".status.breaker.since", wide=True),
        Column("BREAKERMODE", "string", ".spec.breaker.mode", wide=True),
        Column("TOPSOURCE", "string", ".status.topSources[0].by", wide=True),
    ),
    status={
        "windows": [{"used": 0}],  # without an interval, it counts for no rule
        "breaker": {"state": BreakerState.CLOSED.value},
    },
)
