"""Why a request about a release ended as it did: for logs and metrics."""

from enum import StrEnum

from gatekeeper.response import Actor, Decision, Outcome


class Reason(StrEnum):
    NEW_VERSION = "new-version"
    RESTORED = "restored"
    SUSPENDED = "suspended"
    ROLLED_BACK = "rolled-back"
    RECONCILER = "reconciler"
    """The reconciler itself releases."""
    IGNORED_SUSPEND = "ignored-suspend"
    BLOCKING_OFF = "blocking-off"
    """For rolled-back versions only: a suspended workload stays suspended when `blocking` is switched off."""


_ANYBODY = (Actor.SERVICE_ACCOUNT, Actor.USER)

RESTORED = Outcome(Decision.PATCHED, Reason.RESTORED)
BYPASSES = (
    Outcome(Decision.ALLOWED, Reason.RECONCILER, bypassed_by=(Actor.RECONCILER,)),
    Outcome(Decision.ALLOWED, Reason.IGNORED_SUSPEND, bypassed_by=_ANYBODY),
)
BLOCKING_OFF = Outcome(Decision.ALLOWED, Reason.BLOCKING_OFF, bypassed_by=_ANYBODY)
