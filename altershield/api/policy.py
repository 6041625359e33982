"""The kind DefensePolicy: how the releases of a namespace are verified, and what a failure leads to. The CRD is
generated from these types.

A ChangeWorkload has a copy of the policy that applies to its release. So an edit of the policy changes later releases
only.
"""

import enum
from typing import Annotated, Any

import msgspec

from altershield.api.meta import Condition, ObjectMeta
from altershield.api.resources import DEFENSE_POLICIES, GROUP
from altershield.api.schema import doc, rules

API_VERSION = f"{GROUP}/v1alpha1"

MAX_CHECKS = 8
"""The maximum number of checks in a policy."""

MAX_RECEIVERS = 16
"""The maximum number of receivers of notifications: in a policy, and in the file of the administrator."""

RECEIVER_NAME = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
"""The regular expression of the names of receivers."""

MAX_PAUSE = 7 * 86_400
"""The maximum of `pauseSeconds`."""

_INTERVAL = 15
_SAMPLES = 4
_LAG = 5

Name = Annotated[str, msgspec.Meta(max_length=253)]
Word = Annotated[str, msgspec.Meta(max_length=64)]
Url = Annotated[str, msgspec.Meta(max_length=2048), msgspec.Meta(extra_json_schema={"pattern": "^https?://[^ ]+$"})]
Query = Annotated[str, msgspec.Meta(max_length=4096)]
Text = Annotated[str, msgspec.Meta(max_length=1024)]
Seconds = Annotated[int, msgspec.Meta(ge=0, le=86_400)]

# Patterns and rules are for the API server. They do not restrict decoding, so that an object of an older schema can
# still be read.

_LABEL = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"


def _pattern(pattern: str) -> msgspec.Meta:
    return msgspec.Meta(extra_json_schema={"pattern": pattern})


Decimal = Annotated[str, msgspec.Meta(max_length=32), _pattern(r"^-?[0-9]+(\.[0-9]+)?$")]
LabelValue = Annotated[str, msgspec.Meta(max_length=63), _pattern(f"^({_LABEL})?$")]
LabelKey = Annotated[str, msgspec.Meta(max_length=317), _pattern(rf"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?{_LABEL}$")]
Share = (
    Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
    | Annotated[str, msgspec.Meta(max_length=4), _pattern("^([1-9][0-9]?|100)%$")]
)
"""A number of pods, or a share of them."""


class Phase(enum.StrEnum):
    """When a check of a batch is made: before the batch counts as rolled out, or after it."""

    PRE = "Pre"
    POST = "Post"


class Mode(enum.StrEnum):
    """`DefensePolicy.spec.mode`."""

    OBSERVE = "observe"
    """There are only verdicts, Events and ChangeWorkloads: no release is denied, suspended, paused or rolled back."""
    WARN = "warn"
    """As `observe`. A release that `enforce` would deny also gets a warning at admission."""
    ENFORCE = "enforce"


class OnFailure(enum.StrEnum):
    """The reaction to a failed verification."""

    SUSPEND = "suspend"
    PAUSE = "pause"
    """Suspend, and pause the rollout."""
    ROLLBACK = "rollback"
    """Release the last version that passed again; suspend if that is not possible."""


class OnPauseEnd(enum.StrEnum):
    """The reaction to the end of `pauseSeconds`. Default: `rollback`."""

    ROLLBACK = "rollback"
    """Release the last version that passed again, and end the pause. If that is not possible, the pause stays."""
    CONTINUE = "continue"
    """End the pause: the failed version is rolled out. The suspension stays."""


class OnStartFailure(enum.StrEnum):
    """The reaction to overdue pods."""

    ROLLBACK = "rollback"
    SUSPEND = "suspend"


class Operator(enum.StrEnum):
    """The operators of label selectors."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class OnUnknown(enum.StrEnum):
    """The effect of a check without a result on its batch."""

    PASS = "pass"  # noqa: S105  (an outcome, not a password)
    HOLD = "hold"
    """The batch waits for a person."""
    FAIL = "fail"


class SecretRef(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A Secret in the policy's own namespace."""

    name: Annotated[Name, doc('Its name. It needs the label `altershield.defense.antgroup.com/credentials: "true"`.')]


class ServerCheck(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The check of the AlterShield server that the reconciler is configured with."""


class PrometheusCheck(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Samples of a PromQL query, compared with bounds, or with the old version."""

    url: Annotated[Url, doc("The URL of Prometheus, without `/api/v1`.")]
    query: Annotated[
        Query,
        doc(
            "PromQL with one sample as its result. `{{namespace}}`, `{{workload}}`, `{{kind}}`, `{{version}}`, "
            "`{{previousVersion}}`, `{{pods}}`, `{{previousPods}}` (regular expressions) and `{{podCount}}` are "
            "replaced."
        ),
    ]
    min: Annotated[Decimal, doc("A sample below this number fails.")] = ""
    max: Annotated[Decimal, doc("A sample above this number fails.")] = ""
    baseline_query: Annotated[
        Query, doc("The same for the old version. A sample of `query` is then compared with one of this query.")
    ] = ""
    max_increase: Annotated[
        Decimal, doc("A sample fails if it exceeds the sample of the old version by more than this number.")
    ] = ""
    max_ratio: Annotated[
        Decimal,
        doc(
            "A sample fails if it exceeds the sample of the old version times this number. With `maxIncrease`, a "
            "sample fails only if it exceeds both bounds."
        ),
    ] = ""
    count_query: Annotated[
        Query,
        doc(
            "PromQL: the number of events on which the sample of `query` is based. With fewer than `minCount` events, "
            "the sample proves nothing."
        ),
    ] = ""
    baseline_count_query: Annotated[Query, doc("The same for the old version.")] = ""
    min_count: Annotated[int, msgspec.Meta(ge=0, le=2**31, description="See `countQuery`.")] = 0
    interval_seconds: Annotated[int, msgspec.Meta(ge=1, le=3600, description="Seconds between two samples.")] = (
        _INTERVAL
    )
    samples: Annotated[int, msgspec.Meta(ge=1, le=100, description="How many samples are taken.")] = _SAMPLES
    failure_limit: Annotated[int, msgspec.Meta(ge=0, le=99, description="How many samples may fail.")] = 0
    initial_delay_seconds: Annotated[
        int,
        msgspec.Meta(ge=0, le=3600, description="Seconds before the first interval, so that rates have data."),
    ] = 0
    lag_seconds: Annotated[
        int,
        msgspec.Meta(
            ge=0,
            le=600,
            description="Seconds after which a sample is read. Data that arrives later, or a clock of Prometheus that "
            "is further behind, makes samples wrong.",
        ),
    ] = _LAG
    secret_ref: Annotated[
        SecretRef | None,
        doc("Keys: `token`, or `username` and `password`, or `tls.crt` and `tls.key`; `ca.crt` for the server."),
    ] = None


class HttpCheck(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A POST request with the batch. The answer or a later callback is the verdict. After the answer 202, the request
    is repeated."""

    url: Annotated[Url, doc("The URL. The option `--checks-allowed-hosts` says which hosts it may name.")]
    secret_ref: Annotated[
        SecretRef | None,
        doc(
            "Keys: `hmac`, the key of the signatures of the request and of callbacks; those of "
            "`prometheus.secretRef` for the request."
        ),
    ] = None
    metadata: Annotated[
        dict[str, Text], msgspec.Meta(max_length=32, description="Sent as `metadata`, as Flagger does.")
    ] = {}


class JobCheck(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A Job in the workload's namespace. Its result is the verdict."""

    template: Annotated[
        dict[str, Any],
        doc("A JobTemplateSpec. Placeholders `{{...}}` in the values of env variables are replaced by plain values."),
    ]


class HealthCheck(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The check passes if there is no Warning Event about the pods of the batch while they are observed, and for
    `seconds` after that."""

    seconds: Annotated[int, msgspec.Meta(ge=0, le=86_400, description="Seconds for which the pods are observed.")] = 0
    ignored_reasons: Annotated[
        tuple[Annotated[str, msgspec.Meta(max_length=128)], ...],
        msgspec.Meta(max_length=64, description="Reasons of Events that do not count, for example `Unhealthy`."),
    ] = ()


class CheckSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A check of each batch: exactly one of `health`, `server`, `prometheus`, `http` and `job`."""

    name: Annotated[
        str,
        msgspec.Meta(max_length=63, description="Its name, unique in the policy."),
        _pattern("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
    ]
    phases: Annotated[
        tuple[Phase, ...],
        msgspec.Meta(min_length=1, max_length=2, description="`Pre`, `Post` or both; `server` always has both."),
        msgspec.Meta(extra_json_schema={"x-kubernetes-list-type": "set"}),
    ] = (Phase.POST,)
    timeout_seconds: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=86_400)] | None,
        doc("Seconds after which a check without a result ends as Unknown. Default: the reconciler's option."),
    ] = None
    on_unknown: Annotated[
        OnUnknown,
        doc("The effect of a check without a result: `pass`, `hold` (the batch waits for a person) or `fail`."),
    ] = OnUnknown.PASS
    health: Annotated[HealthCheck | None, doc("A check by the Events of the pods.")] = None
    server: Annotated[ServerCheck | None, doc("The check of the AlterShield server.")] = None
    prometheus: Annotated[
        PrometheusCheck | None,
        doc("A check by PromQL."),
        rules(
            (
                "has(self.min) || has(self.max) || has(self.baselineQuery)",
                "a sample needs a bound: set min, max or baselineQuery",
            ),
            (
                "has(self.baselineQuery) == (has(self.maxIncrease) || has(self.maxRatio))",
                "baselineQuery needs maxIncrease or maxRatio, and they need baselineQuery",
            ),
            (
                "!has(self.minCount) || self.minCount == 0 || has(self.countQuery)",
                "minCount needs countQuery",
            ),
            (
                "!has(self.baselineCountQuery) || (has(self.baselineQuery) && has(self.countQuery))",
                "baselineCountQuery needs baselineQuery and countQuery",
            ),
            (
                f"(has(self.failureLimit) ? self.failureLimit : 0) < (has(self.samples) ? self.samples : {_SAMPLES})",
                "failureLimit must be less than samples",
            ),
        ),
    ] = None
    http: Annotated[HttpCheck | None, doc("A check by an HTTP request.")] = None
    job: Annotated[JobCheck | None, doc("A check by a Job.")] = None


class Requirement(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A requirement of a label selector."""

    key: Annotated[LabelKey, doc("The key of the label.")]
    operator: Annotated[Operator, doc("`In`, `NotIn`, `Exists` or `DoesNotExist`.")]
    values: Annotated[
        tuple[LabelValue, ...], msgspec.Meta(max_length=64, description="The values, for `In` and `NotIn`.")
    ] = ()


class Selector(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A label selector. An empty one selects all."""

    match_labels: Annotated[
        dict[str, LabelValue], msgspec.Meta(max_length=64, description="Labels that a workload has to have.")
    ] = {}
    match_expressions: Annotated[
        tuple[
            Annotated[
                Requirement,
                rules(
                    (
                        "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
                        "In and NotIn need values; Exists and DoesNotExist have none",
                    )
                ),
            ],
            ...,
        ],
        msgspec.Meta(max_length=64, description="Requirements that the labels of a workload have to meet."),
    ] = ()


class Rules(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The rules of a policy for a release. If a value is not set, the reconciler's option or the setting applies."""

    checks: Annotated[
        tuple[
            Annotated[
                CheckSpec,
                rules(
                    (
                        "[has(self.health), has(self.server), has(self.prometheus), has(self.http), has(self.job)]"
                        ".filter(each, each).size() == 1",
                        "a check has exactly one of health, server, prometheus, http and job",
                    ),
                    ("self.name != 'server' || has(self.server)", "only a check with `server` has the name server"),
                ),
            ],
            ...,
        ],
        msgspec.Meta(
            max_length=MAX_CHECKS,
            description="The checks of each batch. None: the AlterShield server's, if one is configured.",
        ),
        msgspec.Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}),
        rules(("self.filter(each, has(each.server)).size() <= 1", "only one check may have `server`")),
    ] = ()
    observe_seconds: Annotated[Seconds | None, doc("Seconds for which a pod has to stay ready.")] = None
    start_timeout_seconds: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=86_400)] | None,
        doc("Seconds that a pod may take to come up. An annotation of the workload overrides it."),
    ] = None
    batch: Annotated[Share | None, doc("Pods in a batch: a number, or a share of the replicas (`10%`).")] = None
    mode: Annotated[Mode, doc("`observe`, `warn` or `enforce`.")] = Mode.ENFORCE
    on_failure: Annotated[OnFailure, doc("The reaction to a failed check: `suspend`, `pause` or `rollback`.")] = (
        OnFailure.SUSPEND
    )
    pause_seconds: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=MAX_PAUSE)] | None,
        doc(
            "With `onFailure: pause`: seconds after which the pause ends by itself, at most 7 days. Default: it lasts "
            "until a person decides, or another version is released."
        ),
    ] = None
    on_pause_end: Annotated[
        OnPauseEnd | None,
        doc(
            "The reaction to the end of `pauseSeconds`: `rollback` (default), or `continue`, which rolls the failed "
            "version out."
        ),
    ] = None
    on_start_failure: Annotated[OnStartFailure, doc("The reaction to overdue pods: `rollback` or `suspend`.")] = (
        OnStartFailure.ROLLBACK
    )
    rollback_share: Annotated[
        Share | None,
        doc("How many of a version's pods must be overdue to end its release: a number, or a share (`10%`)."),
    ] = None
    notify: Annotated[
        Annotated[
            tuple[Annotated[str, msgspec.Meta(max_length=63), _pattern(f"^{RECEIVER_NAME}$")], ...],
            msgspec.Meta(max_length=MAX_RECEIVERS),
            msgspec.Meta(extra_json_schema={"x-kubernetes-list-type": "set"}),
        ]
        | None,
        doc(
            "The receivers of notifications, by their names in the administrator's file. Not set: the default "
            "receivers of that file. Empty: only receivers with `selection: always`, which get all notifications."
        ),
    ] = None


class DefensePolicySpec(Rules, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The policy."""

    selector: Annotated[
        Selector,
        doc("The labels of the workloads to which the policy applies. Empty: all workloads."),
        msgspec.Meta(extra_json_schema={"x-kubernetes-map-type": "atomic"}),
    ] = Selector()
    priority: Annotated[
        int,
        msgspec.Meta(
            ge=-(2**31),
            le=2**31 - 1,
            description="If several policies select a workload, the highest priority applies.",
        ),
    ] = 0


class AppliedPolicy(Rules, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The policy that applies to a release, as it was when the release began."""

    namespace: Annotated[Name, doc("The policy's namespace.")] = ""
    name: Annotated[Name, doc("Its name; empty: no policy applies.")] = ""
    generation: Annotated[int, msgspec.Meta(ge=0, le=2**53, description="Its generation.")] = 0


class DefensePolicyStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Whether the policy is in force."""

    accepted: Annotated[DefensePolicySpec | None, doc("The spec in force: the one that was accepted last.")] = None
    accepted_generation: Annotated[int, msgspec.Meta(ge=0, le=2**53, description="The generation of that spec.")] = 0
    conditions: Annotated[
        tuple[Condition, ...], msgspec.Meta(max_length=16, description="The state as Kubernetes conditions.")
    ] = ()
    observed_generation: Annotated[
        int, msgspec.Meta(ge=0, le=2**53, description="The generation of the spec that this status describes.")
    ] = 0


class DefensePolicy(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """How the releases of a namespace are verified, and what a failure leads to."""

    metadata: ObjectMeta
    spec: Annotated[
        DefensePolicySpec,
        rules(
            (
                "!has(self.pauseSeconds) || (has(self.onFailure) && self.onFailure == 'pause')",
                "pauseSeconds needs onFailure: pause",
            ),
            ("!has(self.onPauseEnd) || has(self.pauseSeconds)", "onPauseEnd needs pauseSeconds"),
        ),
    ] = DefensePolicySpec()
    status: DefensePolicyStatus = DefensePolicyStatus()
    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: DEFENSE_POLICIES.kind)
