"""The checks that a DefensePolicy asks for."""

import enum
from typing import Annotated, Any

import msgspec

from altershield.api.fields import Name, Text
from altershield.api.schema import doc, pattern, rules

_INTERVAL = 15
_SAMPLES = 4
_LAG = 5

Url = Annotated[str, msgspec.Meta(max_length=2048), msgspec.Meta(extra_json_schema={"pattern": "^https?://[^ ]+$"})]
Query = Annotated[str, msgspec.Meta(max_length=4096)]
Decimal = Annotated[str, msgspec.Meta(max_length=32), pattern(r"^-?[0-9]+(\.[0-9]+)?$")]


class Phase(enum.StrEnum):
    """When a check of a batch is made: before the batch counts as rolled out, or after it."""

    PRE = "Pre"
    POST = "Post"


class CheckPhase(enum.StrEnum):
    """`checks[].phase`: when a check runs."""

    PRE_RELEASE = "PreRelease"
    """Before any pod has the version."""
    PRE_BATCH = "PreBatch"
    """Before each step."""
    POST_BATCH = "PostBatch"
    """For each batch of pods that came up."""
    POST_RELEASE = "PostRelease"
    """Once, after all pods of the release have passed."""


BEFORE_STEP = (CheckPhase.PRE_RELEASE, CheckPhase.PRE_BATCH)
"""The phases of checks that run while a release in steps is held, in the order in which they run."""

TRY_AGAIN_SECONDS = 60
"""The default of `everySeconds` of a check that runs before a step."""


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


class Against(enum.StrEnum):
    """What `compare` compares the new pods with."""

    OLD = "old"
    """The pods of the old version, at the same times; where none is left, as `before`."""
    BEFORE = "before"
    """The workload in the hour before the release, on average."""


class Compare(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The new pods compared with the old version by one query. With too few samples, the check is unknown."""

    metric: Annotated[
        Query,
        doc(
            "PromQL with one sample as its result. `$pods` is replaced by a regular expression: of the names of the "
            "batch's pods, and of the old pods."
        ),
    ]
    max_ratio: Annotated[
        Decimal, doc("The new pods fail if their sample exceeds that of the old version times this number.")
    ] = ""
    max_increase: Annotated[
        Decimal,
        doc(
            "They fail if their sample exceeds that of the old version by more than this number. With both, they fail "
            "only if the sample exceeds both bounds."
        ),
    ] = ""
    count: Annotated[
        Query,
        doc("PromQL with `$pods`: how many samples `metric` is based on, for example the number of requests."),
    ] = ""
    min_samples: Annotated[
        int,
        msgspec.Meta(ge=0, le=2**31, description="With fewer samples of either side, by `count`, nothing is proven."),
    ] = 0
    against: Annotated[
        Against,
        doc(
            "`old`: the pods of the old version at the same times; where none is left, and with `before`: the workload "
            "in the hour before the release, on average."
        ),
    ] = Against.OLD


class PrometheusCheck(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Samples of a PromQL query, compared with bounds, or with the old version."""

    url: Annotated[Url, doc("The URL of Prometheus, without `/api/v1`.")]
    query: Annotated[
        Query,
        doc(
            "PromQL with one sample as its result. `{{namespace}}`, `{{workload}}`, `{{kind}}`, `{{version}}`, "
            "`{{previousVersion}}`, `{{pods}}`, `{{previousPods}}` (regular expressions) and `{{podCount}}` are "
            "replaced, and `$namespace`, `$workload`, `$version`, `$previous_version`, `$new_pods`, `$old_pods` "
            "(regular expressions) and `$step`."
        ),
    ] = ""
    compare: Annotated[
        Compare | None,
        doc("In place of `query`: a query that is asked about the new pods and about the old version."),
        rules(
            ("has(self.maxRatio) || has(self.maxIncrease)", "compare needs maxRatio or maxIncrease"),
            (
                "(has(self.minSamples) && self.minSamples > 0) == has(self.count)",
                "minSamples needs count, the query of the number of samples, and count needs minSamples",
            ),
        ),
    ] = None
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


class LogsCheck(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The check counts the lines that match, in the logs of the containers of the batch's pods."""

    pattern: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=256,
            description="A regular expression of RE2, without `\\b` and named groups: `panic|FATAL`. It may match any "
            "part of a line.",
        ),
    ]
    max: Annotated[
        int, msgspec.Meta(ge=0, le=1_000_000, description="With more matching lines in all pods, the check fails.")
    ] = 0
    seconds: Annotated[int, msgspec.Meta(ge=0, le=86_400, description="Seconds for which the logs are watched.")] = 0
    max_bytes: Annotated[
        int,
        msgspec.Meta(
            ge=1024,
            le=4 * 2**20,
            description="Bytes that are read of the log of a container. If there are more, and too few lines match, "
            "the check is unknown.",
        ),
    ] = 2**20


class CheckSpec(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A check: exactly one of `health`, `logs`, `server`, `prometheus`, `http` and `job`."""

    name: Annotated[
        str,
        msgspec.Meta(max_length=63, description="Its name, unique in the policy."),
        pattern("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
    ]
    phases: Annotated[
        tuple[Phase, ...],
        msgspec.Meta(
            min_length=1,
            max_length=2,
            description="Of a check of the phase `PostBatch`: `Pre`, `Post` or both; `server` always has both.",
        ),
        msgspec.Meta(extra_json_schema={"x-kubernetes-list-type": "set"}),
    ] = (Phase.POST,)
    timeout_seconds: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=86_400)] | None,
        doc("Seconds after which a check without a result ends as Unknown. Default: the reconciler's option."),
    ] = None
    on_unknown: Annotated[
        OnUnknown | None,
        doc(
            "The effect of a check without a result: `pass`, `hold` (the batch waits for a person) or `fail`. Default: "
            "`hold` with `compare`, `PreRelease` and `PreBatch`, else `pass`. Before a step, a check without a result "
            "is tried again with `hold` and `fail`."
        ),
    ] = None
    every_seconds: Annotated[
        Annotated[int, msgspec.Meta(ge=10, le=3600)] | None,
        doc(
            "In a release in steps: the check is repeated at this interval while a step soaks. A failure fails the "
            "batch at once, and the last run decides at the end of the soak. With `PreRelease` and `PreBatch`: the "
            "interval at which a check that failed is tried again; default 60."
        ),
    ] = None
    phase: Annotated[
        CheckPhase,
        doc(
            "When it runs: `PreRelease` (before any pod has the version), `PreBatch` (before each step), `PostBatch` "
            "(for each batch of pods that came up) or `PostRelease` (once, after all pods have passed). With "
            "`PreRelease` and `PreBatch`, the release is held, and a check that fails is tried again until "
            "`stepDeadlineSeconds` of the step are over."
        ),
    ] = CheckPhase.POST_BATCH
    health: Annotated[HealthCheck | None, doc("A check by the Events of the pods.")] = None
    logs: Annotated[LogsCheck | None, doc("A check by the logs of the pods.")] = None
    server: Annotated[ServerCheck | None, doc("The check of the AlterShield server.")] = None
    prometheus: Annotated[
        PrometheusCheck | None,
        doc("A check by PromQL."),
        rules(
            ("has(self.query) != has(self.compare)", "a check by PromQL has either query or compare"),
            (
                "!has(self.compare) || !(has(self.min) || has(self.max) || has(self.baselineQuery) || "
                "has(self.maxIncrease) || has(self.maxRatio) || has(self.countQuery) || has(self.baselineCountQuery) "
                "|| (has(self.minCount) && self.minCount > 0))",
                "compare has its own bounds and no other queries",
            ),
            (
                "has(self.min) || has(self.max) || has(self.baselineQuery) || has(self.compare)",
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

    @property
    def if_unknown(self) -> OnUnknown:
        """The effect of this check without a result."""
        holds = self.phase in BEFORE_STEP or (self.prometheus is not None and self.prometheus.compare is not None)
        return self.on_unknown or (OnUnknown.HOLD if holds else OnUnknown.PASS)

    @property
    def soak_interval(self) -> int:
        """Seconds after which the check is repeated while a step soaks; 0: it is not."""
        return self.every_seconds or 0 if self.phase is CheckPhase.POST_BATCH else 0
