"""The types of the conditions of our kinds, and the givers of verdicts, which are reasons of the condition Verified."""

import enum


class ConditionType(enum.StrEnum):
    """`status.conditions[].type` of all kinds."""

    VERIFIED = "Verified"
    """ChangeWorkload and ChangePod: True when every pod passed, False when one failed."""
    PROGRESSING = "Progressing"
    """ChangeWorkload of a release in steps: True while its steps proceed. The reason is the phase of the step."""
    STEPS_OBSERVED = "StepsObserved"
    """ChangeWorkload that has ended, of a policy with steps that only observes or warns: whether the release would have
    passed its steps."""
    SETTLED = "Settled"
    """ChangeWorkload: True after the start timeout that follows Success. Until then, pods that fail still fail the
    release."""
    STALLED = "Stalled"
    """ChangeWorkload: True while the release does not proceed for a reason that is not its own fault."""
    PODS_NOT_UP = "PodsNotUp"
    """ChangeWorkload under way: True while pods are not up and their status or their Events say why. The message has
    the number of these pods, and the words about the first one."""
    NO_REPLICAS = "NoReplicas"
    """ChangeWorkload: True while the release reaches no pod, so that it cannot be verified."""
    ROLLED_BACK = "RolledBack"
    """ChangeWorkload: True after an older version was released again; False while the rollback is in progress or
    refused."""
    RESTORED_FIELDS = "RestoredFields"
    """ChangeWorkload: True if the template still has fields that an earlier version had removed and that the rollback
    of that version brought back."""
    UNGATED = "Ungated"
    """ChangeWorkload: True if no gatekeeper reviewed the release."""
    REPORTED = "Reported"
    """ChangeWorkload, with an AlterShield server: True if the server has the order of the release, False if it refused
    it, Unknown while it cannot be reached."""
    CHECKED = "Checked"
    """ChangeWorkload in the state Success, with checks: False if pods count as passed without a
    verdict."""
    ACCEPTED = "Accepted"
    """OpsConfigInfo, DefensePolicy: False if the setting or the policy is invalid and has no effect."""
    USABLE = "Usable"
    """ReleaseOverride: True while a further version may pass closed gates."""
    SHADOWED = "Shadowed"
    """DefensePolicy: True if another policy of its namespace has precedence for every workload that it selects."""
    NEAR_LIMIT = "NearLimit"
    """PodDeletionFlowControl: True while the deletions reach `warnPercent` of a limit."""
    BREAKER_OPEN = "BreakerOpen"
    """PodDeletionFlowControl: True while the breaker refuses deletions, Unknown while it is half open."""


class Giver(enum.StrEnum):
    """Reasons of the condition Verified with the status False: the giver of the verdict."""

    PERSON = "FailedByPerson"
    SERVER = "FailedByServer"
    CHECK = "FailedByCheck"
    """A check of a DefensePolicy other than the AlterShield server."""
    HEALTH = "FailedByHealth"
    """The pod was not up for longer than the start timeout."""
