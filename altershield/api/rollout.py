"""Releases in steps: what a DefensePolicy asks for, and how far a release has come."""

import enum
from typing import Annotated

import msgspec

from altershield.api.fields import Name, Seconds, Text
from altershield.api.schema import doc, extra, pattern, rules
from altershield.api.selectors import LabelValue

MAX_STEPS = 20
"""The maximum number of steps in a policy."""

MAX_SOAK = 7 * 86_400
"""The maximum of `soakSeconds`."""

SOAK_SECONDS = 300
"""The default of `soakSeconds`."""

STEP_DEADLINE_SECONDS = 3600
"""The default of `stepDeadlineSeconds`."""

MAX_STEP_PODS = 10_000
"""The maximum number of pods of a step; a larger step is a share."""

MAX_NODE_LABELS = 16
"""The maximum number of labels in the `nodeSelector` of a step."""

StepPods = (
    Annotated[int, msgspec.Meta(ge=1, le=MAX_STEP_PODS)]
    | Annotated[str, msgspec.Meta(max_length=4), pattern("^([1-9][0-9]?|100)%$")]
)
"""How many pods have the new version in a step: a number, or a share of the replicas (`10%`, rounded up)."""

SoakSeconds = Annotated[int, msgspec.Meta(ge=0, le=MAX_SOAK)]


class Step(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A step: some pods have the new version, and stay verified for a time. It has pods, a nodeSelector, or both."""

    pods: Annotated[
        StepPods | None, doc("How many pods have the new version: a number, or a share of the replicas (`10%`).")
    ] = None
    soak_seconds: Annotated[SoakSeconds, doc("Seconds for which the pods of the step have to stay verified.")] = (
        SOAK_SECONDS
    )
    approval: Annotated[bool, doc("Whether a person has to promote the release after the soak.")] = False
    node_selector: Annotated[
        dict[str, LabelValue],
        msgspec.Meta(
            max_length=MAX_NODE_LABELS,
            description="DaemonSets: the pods on the nodes with these labels have the new version, whatever their "
            "number. Workloads of other kinds take `pods`, and skip the step if it has none.",
        ),
        extra(x_kubernetes_map_type="atomic"),
    ] = {}


class Rollout(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The steps of a release: `steps`, or `pods` with one `soakSeconds` for all."""

    steps: Annotated[
        tuple[
            Annotated[
                Step,
                rules(
                    (
                        "has(self.pods) || (has(self.nodeSelector) && self.nodeSelector.size() > 0)",
                        "a step has pods, a nodeSelector, or both",
                    )
                ),
            ],
            ...,
        ],
        msgspec.Meta(
            max_length=MAX_STEPS,
            description="The steps. A step that is not larger than the one before is skipped. A last step with all "
            "pods is added.",
        ),
        extra(x_kubernetes_list_type="atomic"),
    ] = ()
    pods: Annotated[
        tuple[StepPods, ...],
        msgspec.Meta(max_length=MAX_STEPS, description="The short form: the pods of each step."),
        extra(x_kubernetes_list_type="atomic"),
    ] = ()
    soak_seconds: Annotated[SoakSeconds | None, doc("The short form: the soak of each step.")] = None
    step_deadline_seconds: Annotated[
        int,
        msgspec.Meta(
            ge=60,
            le=7 * 86_400,
            description="Seconds after which a step fails whose pods are not all up and verified. The time does not "
            "run while the release waits for a person, a gate, a quota, an eviction, a node or a pod that is "
            "terminating.",
        ),
    ] = STEP_DEADLINE_SECONDS
    other_approver: Annotated[
        bool, doc("Whether the user who promotes a step with `approval` has to be another one than the releaser.")
    ] = False

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """The steps in the long form."""
        if not self.pods:
            return self.steps
        soak = SOAK_SECONDS if self.soak_seconds is None else self.soak_seconds
        return tuple(Step(each, soak) for each in self.pods)


class Phase(enum.StrEnum):
    """`ChangeWorkload.status.rollout.phase`. A phase is stored before it is acted on."""

    HELD = "Held"
    """No further pod gets the version, until what `waitingFor` names is over."""
    ROLLING = "Rolling"
    """Pods are replaced, as many as the step has."""
    VERIFYING = "Verifying"
    """The step has its pods. Not all of them are up and verified."""
    SOAKING = "Soaking"
    """All pods of the step are verified. They have to stay so until `soakEndTime`."""
    WAITING_FOR_APPROVAL = "WaitingForApproval"
    """A person has to promote the release."""
    FINISHING = "Finishing"
    """The last step: the user's own values of the held fields return, and the remaining pods are replaced."""
    DONE = "Done"
    """The last step has passed."""
    STOPPED = "Stopped"
    """The release failed. It takes no further step, unless a person corrects the verdict."""
    ABORTED = "Aborted"
    """Another version was released, or this one was rolled back."""


ENDED = (Phase.DONE, Phase.ABORTED)
"""The phases in which nothing is held for the release any more."""


class WaitingFor(enum.StrEnum):
    """`ChangeWorkload.status.rollout.waitingFor[]`: why the release does not proceed."""

    PERSON = "person"
    """A person held the release."""
    PAUSED = "paused"
    """The user paused the workload."""
    QUOTA = "quota"
    """A ResourceQuota refuses a further pod."""
    EVICTION = "eviction"
    """A PodDisruptionBudget or a node refuses the eviction of an old pod."""
    NODE = "node"
    """A node that is not ready has a pod of the step."""
    NODE_SELECTOR = "nodeSelector"
    """No ready node that the step's `nodeSelector` selects has a pod of the workload."""
    TERMINATION = "termination"
    """A pod that is terminating keeps the controller from creating the pod in its place."""
    WRITE = "write"
    """The API server refuses to change the workload."""
    WINDOW = "window"
    """A ReleaseWindow is closed."""
    FREEZE = "freeze"
    """A ReleaseFreeze is in force."""
    LIMIT = "limit"
    """A ReleaseLimit has no room, or other releases come first."""
    CHECK = "check"
    """A check before the step has not passed."""


COUNTS = (WaitingFor.CHECK,)
"""Waiting for these counts for the deadline of the step."""


class PassedStep(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A step that is over."""

    step: Annotated[int, msgspec.Meta(ge=0, le=MAX_STEPS + 1, description="Its number, from 1.")] = 0
    pods: Annotated[Seconds, doc("How many pods had the version.")] = 0
    begin_time_unix: Annotated[Seconds, doc("When it began, in Unix seconds.")] = 0
    end_time_unix: Annotated[Seconds, doc("When it was over, in Unix seconds.")] = 0
    promoted_by: Annotated[Text, doc("The user who promoted it; empty: nobody did.")] = ""


class RolloutStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """How far a release in steps has come. Empty (`phase` is empty): it is not released in steps."""

    phase: Annotated[Name, doc("The phase of the step.")] = ""
    phase_time: Annotated[Text, doc("When the phase began, UTC.")] = ""
    phase_time_unix: Annotated[Seconds, doc("The same in Unix seconds.")] = 0
    step: Annotated[int, msgspec.Meta(ge=0, le=MAX_STEPS + 1, description="The number of the step, from 1.")] = 0
    steps: Annotated[int, msgspec.Meta(ge=0, le=MAX_STEPS + 1, description="How many steps there are.")] = 0
    pods: Annotated[Seconds, doc("How many pods have the version in this step.")] = 0
    updated: Annotated[Seconds, doc("How many pods have the version now.")] = 0
    passed: Annotated[Seconds, doc("How many of them are verified.")] = 0
    step_time_unix: Annotated[Seconds, doc("When the step began, in Unix seconds.")] = 0
    stopped_seconds: Annotated[
        Seconds, doc("Seconds of this step that do not count for its deadline, because the release waited.")
    ] = 0
    waiting_since_unix: Annotated[Seconds, doc("Since when it waits, in Unix seconds; 0: it does not wait.")] = 0
    waiting_for: Annotated[
        tuple[Name, ...], msgspec.Meta(max_length=8, description="Why the release does not proceed.")
    ] = ()
    gates: Annotated[
        tuple[Text, ...],
        msgspec.Meta(max_length=8, description="The closed gates for which it waits: KIND NAMESPACE/NAME."),
    ] = ()
    soak_end_time: Annotated[Text, doc("When the soak ends, UTC.")] = ""
    soak_end_time_unix: Annotated[Seconds, doc("The same in Unix seconds; 0: no soak has begun.")] = 0
    base: Annotated[Name, doc("The version before the first release that was held: the one to go back to.")] = ""
    full: Annotated[bool, doc("Whether a person promoted it fully: further steps have no soak and no approval.")] = (
        False
    )
    held_by: Annotated[Text, doc("The user who held the release; empty: nobody did.")] = ""
    failed_step: Annotated[
        int, msgspec.Meta(ge=0, le=MAX_STEPS + 1, description="The step in which it failed; 0: it did not.")
    ] = 0
    passed_steps: Annotated[
        tuple[PassedStep, ...], msgspec.Meta(max_length=MAX_STEPS + 1, description="The steps that are over.")
    ] = ()
