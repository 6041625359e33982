"""The types and selections of receivers, the events that they are notified about, and the results of notifications."""

from enum import StrEnum


class Type(StrEnum):
    """The format of a receiver's messages."""

    SLACK = "slack"
    """The JSON of Slack's incoming webhooks, which Mattermost, Rocket.Chat and others understand."""
    CLOUD_EVENTS = "cloudevents"
    """A CloudEvent 1.0 in JSON, in structured mode."""
    ALERTMANAGER = "alertmanager"
    """Alerts by the API v2 of Alertmanager. `url` is its address, without `/api/v2`."""
    TEAMS = "teams"
    """An Adaptive Card for a webhook of Microsoft Teams' Workflows."""
    PAGERDUTY = "pagerduty"
    """Events by PagerDuty's Events API v2. `url` is its address, without `/v2/enqueue`."""

    @property
    def ends(self) -> bool:
        """Whether the receiver is also told of the end of what it was notified of."""
        return self in (Type.ALERTMANAGER, Type.PAGERDUTY)

    @property
    def titled(self) -> bool:
        """Whether its messages have a title apart from the text."""
        return self in (Type.ALERTMANAGER, Type.TEAMS, Type.PAGERDUTY)


class Event(StrEnum):
    """The kind of an event that a notification is about."""

    SUSPENDED = "suspended"
    """The verification of the release failed: further releases of the workload are denied."""
    ROLLED_BACK = "rolled-back"
    """An older version was released again."""
    APPROVAL_NEEDED = "approval-needed"
    """A check of a batch has no result, and the policy says `hold`."""
    STEP_WAITING = "step-waiting"
    """A step of a release in steps has passed, and a person has to promote the release."""
    STEP_FAILED = "step-failed"
    """A release in steps failed: it takes no further step."""
    OVERRIDE_USED = "override-used"
    """A ReleaseOverride let the release pass closed gates."""
    UNGATED = "ungated"
    """No gatekeeper reviewed the release."""
    SUCCEEDED = "succeeded"
    """The release succeeded. Receivers are notified of it only if their `events` name it."""
    TEST = "test"
    """A notification of `altershield notify test`."""


class Selection(StrEnum):
    """The releases that a receiver is notified about, by their DefensePolicies."""

    DEFAULT = "default"
    """Those whose policy names the receiver or has no `notify`, and those without a policy."""
    NAMED = "named"
    """Those whose policy names the receiver."""
    ALWAYS = "always"
    """All. No policy can exclude the receiver."""


class NotificationResult(StrEnum):
    """How a notification ended."""

    SENT = "sent"
    FAILED = "failed"
    """The receiver refused the notification."""
    DROPPED = "dropped"
    """Too many notifications waited, or this one could not be sent for an hour."""
