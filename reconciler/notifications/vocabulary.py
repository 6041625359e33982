"""The types of receivers, and the results of notifications."""

from enum import StrEnum


class Type(StrEnum):
    """The format of a receiver's messages."""

    SLACK = "slack"
    """The JSON of Slack's incoming webhooks, which Mattermost, Rocket.Chat and others understand."""
    CLOUD_EVENTS = "cloudevents"
    """A CloudEvent 1.0 in JSON, in structured mode."""
    ALERTMANAGER = "alertmanager"
    """Alerts by the API v2 of Alertmanager. `url` is its address, without `/api/v2`."""


class NotificationResult(StrEnum):
    """How a notification ended."""

    SENT = "sent"
    FAILED = "failed"
    """The receiver refused it."""
    DROPPED = "dropped"
    """Too many waited, or it could not be sent for an hour."""
