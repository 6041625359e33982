"""The reasons that logs and metrics give for the outcome of a request about a release."""

from enum import StrEnum

from gatekeeper.response import Actor, Decision, Outcome


class Reason(StrEnum):
    NEW_VERSION = "new-version"
    RESTORED = "restored"
    SUSPENDED = "suspended"
    ROLLED_BACK = "rolled-back"
    RECONCILER = "reconciler"
    """The reconciler released a version again."""
    NO_ROLLBACK = "no-rollback"
    """AlterShield's own account released a template that no rollback names."""
    IGNORED_SUSPEND = "ignored-suspend"
    OWN_RELEASE = "own-release"
    """Separation of duties: the user released what failed, and may not let a release pass."""
    HELD = "held"
    """The fields of a release in steps."""
    NOT_HELD = "not-held"
    """A release that should be held is not."""
    GATE_CLOSED = "gate-closed"
    """A release window, or another gate, is closed."""
    OVERRIDDEN = "overridden"
    """A ReleaseOverride lets the release pass closed gates."""
    NOT_RECORDED = "not-recorded"
    """The use of a ReleaseOverride could not be stored."""
    BLOCKING_OFF = "blocking-off"
    """Only for versions that were rolled back. A suspended workload stays suspended when `blocking` is switched off."""


_ANY_USER = (Actor.SERVICE_ACCOUNT, Actor.USER)

RESTORED = Outcome(Decision.PATCHED, Reason.RESTORED)
BYPASSES = (
    Outcome(Decision.ALLOWED, Reason.RECONCILER, bypassed_by=(Actor.RECONCILER,)),
    Outcome(Decision.ALLOWED, Reason.IGNORED_SUSPEND, bypassed_by=_ANY_USER),
)
BLOCKING_OFF = Outcome(Decision.ALLOWED, Reason.BLOCKING_OFF, bypassed_by=_ANY_USER)
