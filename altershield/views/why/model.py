"""What `altershield why` says about a workload, as data."""

from typing import Annotated

from altershield.api.schema import doc
from altershield.views.document import Document, Part, Time
from altershield.views.names import WorkloadName
from altershield.views.releases.steps import Steps


class Suspension(Part, frozen=True):
    """Releases of the workload are suspended."""

    since: Annotated[Time | None, doc("Since when.")]
    next_passes: Annotated[bool, doc("Whether the next release passes, because a person asked for it.")]


class Policy(Part, frozen=True):
    """The DefensePolicy of the release."""

    namespace: Annotated[str, doc("Its namespace.")]
    name: Annotated[str, doc("Its name.")]
    only: Annotated[str, doc("Why nothing is suspended, paused or rolled back: it only observes or warns. Else empty.")]


class Pause(Part, frozen=True):
    """AlterShield paused the rollout after a failure."""

    until: Annotated[Time | None, doc("When it ends by itself; null: when a person decides, or with the next release.")]
    continues: Annotated[
        bool | None,
        doc("What follows then: true: the rollout continues; false: the last version that passed is released again."),
    ]


class CheckRun(Part, frozen=True):
    """A check that failed, has no result, or runs."""

    name: Annotated[str, doc("The name of the check in the DefensePolicy.")]
    phase: Annotated[str, doc("When it runs, as the DefensePolicy says.")]
    batch: Annotated[str, doc("The ChangePod.")]
    state: Annotated[str, doc("`Failed`, `Unknown` or `Running`.")]
    reason: Annotated[str, doc("What it says; may be empty.")]


class PodWords(Part, frozen=True):
    """A pod, and why it is listed."""

    pod: Annotated[str, doc("Its name.")]
    message: Annotated[str, doc("Why.")]


class BlockingPod(Part, frozen=True):
    """A pod of an older version that is not ready, and for which the workload's controller waits."""

    pod: Annotated[str, doc("Its name.")]
    since: Annotated[Time | None, doc("Since when it blocks the rollout.")]
    message: Annotated[str, doc("Why it is not ready; may be empty.")]


class ClosedGate(Part, frozen=True):
    """A release gate that is closed for the next release, or for the next step of this one."""

    kind: Annotated[str, doc("`ReleaseWindow`, `ReleaseFreeze` or `ReleaseLimit`.")]
    namespace: Annotated[str, doc("Its namespace.")]
    name: Annotated[str, doc("Its name.")]
    enforced: Annotated[bool, doc("Whether it denies or holds releases; false: they pass with a warning.")]
    since: Annotated[Time | None, doc("Since when it is closed.")]
    opens_at: Annotated[Time | None, doc("When it opens; null: that is not known, or a person decides.")]
    reason: Annotated[str, doc("Why, by the person who wrote it; may be empty.")]
    message: Annotated[str, doc("The same as a sentence.")]


class PendingRequest(Part, frozen=True):
    """What a person asked for, and no reconciler has answered yet."""

    verb: Annotated[str, doc("As in `status.request.verb`.")]
    by: Annotated[str, doc("The user who asked.")]
    reason: Annotated[str, doc("The reason that the user gave; may be empty.")]


class Decided(Part, frozen=True):
    """What a person decided about the release."""

    time: Annotated[Time | None, doc("When.")]
    verb: Annotated[str, doc("As in `status.actions[].verb`.")]
    by: Annotated[str, doc("The user; empty: not known.")]
    reason: Annotated[str, doc("The reason that the user gave; may be empty.")]
    result: Annotated[str, doc("`Done`, `Unchanged` or `Refused`.")]
    outcome: Annotated[str, doc("What was done, or why nothing was done.")]


class EarlierVersion(Part, frozen=True):
    """An earlier version that still matters."""

    version: Annotated[str, doc("The version.")]
    images: Annotated[str, doc("Its images in short; empty: not known.")]
    denied: Annotated[bool, doc("Whether it was rolled back, so that it is denied; false: it failed.")]
    since: Annotated[Time | None, doc("Since when.")]
    reason: Annotated[str, doc("Why; may be empty.")]


class Advice(Part, frozen=True):
    """A command, and who may run it."""

    when: Annotated[str, doc("When to run it, and what it does.")]
    command: Annotated[str, doc("The command. `REASON` and `FIX.yaml` stand for your own text and file.")]
    allowed: Annotated[bool | None, doc("Whether you may run it; null: the API server did not say.")]
    role: Annotated[str, doc("The ClusterRole that allows it.")]
    role_namespace: Annotated[str, doc("The namespace in which the user needs the role.")]
    other_than: Annotated[tuple[str, ...], doc("The users who may not run it, whatever the roles.")]


class ReleaseExplanation(Document, frozen=True):
    """The state of a workload's release, the reason for it, and what to do."""

    workload: Annotated[WorkloadName, doc("The workload.")]
    time: Annotated[Time, doc("When this was read.")]
    state: Annotated[
        str, doc("The state, as in `status.status` of the ChangeWorkload. `Init`, if `waits` is not empty.")
    ]
    waits: Annotated[str, doc("Why the reconciler has not processed the release yet; empty: it has.")]
    since: Annotated[Time | None, doc("Since when it has this state.")]
    version: Annotated[str, doc("The version.")]
    images: Annotated[str, doc("Its images in short, those that it changed first; empty: not known.")]
    released: Annotated[Time | None, doc("When it was released.")]
    reason: Annotated[str, doc("The reason for the state, in one line; may be empty.")]
    suspension: Annotated[Suspension | None, doc("Whether releases are suspended; null: they are not.")]
    restored_fields: Annotated[str, doc("Which fields a rollback brought back that the version had removed.")]
    policy: Annotated[Policy | None, doc("The DefensePolicy of the release.")]
    not_settled: Annotated[str, doc("Why a release in `Success` has not settled; else empty.")]
    pause: Annotated[Pause | None, doc("Whether AlterShield paused the rollout; null: it did not.")]
    failed_by: Annotated[str, doc("Who gave the verdict: `person`, `server`, `check`, `health`, or empty.")]
    checks: Annotated[tuple[CheckRun, ...], doc("The checks that have not passed, those that failed first.")]
    blocking_pods: Annotated[tuple[BlockingPod, ...], doc("The pods of older versions for which the rollout waits.")]
    gates: Annotated[tuple[ClosedGate, ...], doc("The closed gates.")]
    steps: Annotated[Steps | None, doc("The steps; null: the release is not made in steps.")]
    failed_pods: Annotated[tuple[PodWords, ...], doc("The pods that failed.")]
    down_pods: Annotated[tuple[PodWords, ...], doc("The pods that were up and are not any more.")]
    restarted_pods: Annotated[tuple[PodWords, ...], doc("The pods that restarted since the release succeeded.")]
    request: Annotated[PendingRequest | None, doc("What a person asked for, and nobody has answered yet.")]
    decisions: Annotated[tuple[Decided, ...], doc("What people decided about the release, the newest first.")]
    earlier: Annotated[tuple[EarlierVersion, ...], doc("Earlier versions that failed, or are denied.")]
    advice: Annotated[tuple[Advice, ...], doc("What to do, and who may do it.")]
