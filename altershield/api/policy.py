"""The kind DefensePolicy: how the releases of a namespace are verified, and what a failure leads to. The CRD is
generated from these types.

A ChangeWorkload has a copy of the policy that applies to its release. So an edit of the policy changes later releases
only.
"""

import enum
from typing import Annotated

import msgspec

from altershield.api.announcements import Announcements
from altershield.api.check_specs import CheckSpec
from altershield.api.fields import Conditions, Name
from altershield.api.kinds import AGE, NOT_PROCESSED, Column, Kind
from altershield.api.resources import API_VERSION, DEFENSE_POLICIES
from altershield.api.rollout import Rollout
from altershield.api.schema import doc, pattern, rules
from altershield.api.selectors import Selector
from kube_base.meta import ObjectMeta

MAX_CHECKS = 8
"""The maximum number of checks in a policy."""

MAX_RECEIVERS = 16
"""The maximum number of receivers of notifications: in a policy, and in the file of the administrator."""

RECEIVER_NAME = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
"""The regular expression of the names of receivers."""

MAX_PAUSE = 7 * 86_400
"""The maximum of `pauseSeconds`."""

MAX_START_SECONDS = 1800
"""The default of `maxStartSeconds`."""

UNSCHEDULABLE_SECONDS = 600
"""The default of `unschedulableSeconds`: an autoscaler needs time."""

Seconds = Annotated[int, msgspec.Meta(ge=0, le=86_400)]

Share = (
    Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
    | Annotated[str, msgspec.Meta(max_length=4), pattern("^([1-9][0-9]?|100)%$")]
)
"""A number of pods, or a share of them."""


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


class OnNothingServes(enum.StrEnum):
    """The reaction to overdue pods if no pod of any version serves."""

    ROLLBACK = "rollback"
    """Release the last version that passed again, although none of its pods proves that it works. The default for
    rolling strategies."""
    SUSPEND = "suspend"
    """The default for the strategies `Recreate` and `OnDelete`, and with `onStartFailure: suspend`."""


class Rules(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The rules of a policy for a release. If a value is not set, the reconciler's option or the setting applies."""

    checks: Annotated[
        tuple[
            Annotated[
                CheckSpec,
                rules(
                    (
                        "[has(self.health), has(self.logs), has(self.server), has(self.prometheus), has(self.http), "
                        "has(self.job)].filter(each, each).size() == 1",
                        "a check has exactly one of health, logs, server, prometheus, http and job",
                    ),
                    (
                        "!has(self.everySeconds) || !has(self.server) || self.phase in ['PreRelease', 'PreBatch']",
                        "the check of the AlterShield server is not repeated: remove everySeconds",
                    ),
                    (
                        "!has(self.everySeconds) || self.phase != 'PostRelease'",
                        "a check of the phase PostRelease runs once: remove everySeconds",
                    ),
                    (
                        "!has(self.phases) || self.phase == 'PostBatch'",
                        "phases (Pre, Post) are those of a batch: they need the phase PostBatch",
                    ),
                    (
                        "!(has(self.health) || has(self.logs)) || self.phase == 'PostBatch'",
                        "health and logs check the pods of a batch: they need the phase PostBatch",
                    ),
                    (
                        "!(has(self.prometheus) && has(self.prometheus.compare)) || "
                        "!(self.phase in ['PreRelease', 'PreBatch'])",
                        "compare needs new pods: it cannot have the phase PreRelease or PreBatch",
                    ),
                    (
                        "!has(self.server) || self.phase != 'PostRelease'",
                        "the AlterShield server checks batches: it cannot have the phase PostRelease",
                    ),
                    (
                        "!has(self.everySeconds) || !has(self.phases) || 'Post' in self.phases",
                        "everySeconds repeats a check of the phase Post",
                    ),
                    ("self.name != 'server' || has(self.server)", "only a check with `server` has the name server"),
                ),
            ],
            ...,
        ],
        msgspec.Meta(
            max_length=MAX_CHECKS,
            description="The checks: of each batch, before a step, or of the whole release. None: the AlterShield "
            "server's check of each batch, if one is configured.",
        ),
        msgspec.Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}),
        rules(("self.filter(each, has(each.server)).size() <= 1", "only one check may have `server`")),
    ] = ()
    observe_seconds: Annotated[Seconds | None, doc("Seconds for which a pod has to stay ready.")] = None
    start_timeout_seconds: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=86_400)] | None,
        doc(
            "Seconds that a pod may take to come up; more if its own probes allow more. An annotation of the workload "
            "overrides it."
        ),
    ] = None
    max_start_seconds: Annotated[
        int,
        msgspec.Meta(
            ge=1,
            le=86_400,
            description="Seconds to which the probes and init containers of a pod may extend the start timeout.",
        ),
    ] = MAX_START_SECONDS
    unschedulable_seconds: Annotated[
        int,
        msgspec.Meta(
            ge=1,
            le=86_400,
            description="Seconds after which pods are overdue that the cluster does not create, schedule or start "
            "because of what the release changed.",
        ),
    ] = UNSCHEDULABLE_SECONDS
    settle_seconds: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=86_400)] | None,
        doc(
            "Seconds after Success in which pods that break or restart still end the release. Default: the start "
            "timeout."
        ),
    ] = None
    settle_restarts: Annotated[
        int,
        msgspec.Meta(
            ge=1,
            le=1_000,
            description="How many restarts of its containers fail a pod of a release that has not settled: so many "
            "more than pods of the version before had in the same time.",
        ),
    ] = 3
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
    on_nothing_serves: Annotated[
        OnNothingServes | None,
        doc(
            "The reaction to overdue pods if no pod of any version serves: `rollback` (default), or `suspend` (default "
            "with the strategy `Recreate` or `OnDelete`, or with `onStartFailure: suspend`). A version that was itself "
            "restored by a rollback is suspended."
        ),
    ] = None
    rollback_share: Annotated[
        Share | None,
        doc("How many of a version's pods must be overdue to end its release: a number, or a share (`10%`)."),
    ] = None
    rollout: Annotated[
        Rollout | None,
        doc("Releases in steps: the new version reaches few pods first. Not set: the workload's own strategy applies."),
        rules(
            ("has(self.steps) != has(self.pods)", "rollout has either steps or pods"),
            ("!has(self.soakSeconds) || has(self.pods)", "soakSeconds of rollout needs pods; steps have their own"),
        ),
    ] = None
    notify: Annotated[
        Annotated[
            tuple[Annotated[str, msgspec.Meta(max_length=63), pattern(f"^{RECEIVER_NAME}$")], ...],
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
    announcements: Announcements = ()
    conditions: Conditions = ()
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
            (
                "has(self.rollout) || !has(self.checks) || !self.checks.exists(each, has(each.everySeconds))",
                "everySeconds needs rollout: a check is repeated while a step soaks",
            ),
            (
                "has(self.rollout) || !has(self.checks) || "
                "!self.checks.exists(each, each.phase in ['PreRelease', 'PreBatch'])",
                "a check of the phase PreRelease or PreBatch needs rollout: it runs while a step of the release waits",
            ),
        ),
    ] = DefensePolicySpec()
    status: DefensePolicyStatus = DefensePolicyStatus()
    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: DEFENSE_POLICIES.kind)


KIND = Kind(
    resource=DEFENSE_POLICIES,
    type=DefensePolicy,
    short_name="dp",
    title="Defense policy",
    summary="How the releases of a namespace are verified, and what a failure leads to",
    columns=(
        Column("MODE", "string", ".spec.mode"),
        Column("ONFAILURE", "string", ".spec.onFailure"),
        Column("PRIORITY", "integer", ".spec.priority"),
        Column("ACCEPTED", "string", '.status.conditions[?(@.type=="Accepted")].status'),
        AGE,
        Column("CHECKS", "string", ".spec.checks[*].name", wide=True),
        Column("SHADOWED", "string", '.status.conditions[?(@.type=="Shadowed")].status', wide=True),
    ),
    status={"conditions": NOT_PROCESSED},
)
