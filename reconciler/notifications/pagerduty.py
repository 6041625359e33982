"""The events for PagerDuty's Events API v2. Pure functions."""

from typing import Any

from kube_base.times import rfc3339
from reconciler.notifications.occurrences import Occurrence
from reconciler.notifications.texts import Words
from reconciler.receivers.vocabulary import Event

PATH = "/v2/enqueue"

_SEVERITIES = {
    Event.SUSPENDED: "error",
    Event.STEP_FAILED: "error",
    Event.OVERRIDE_USED: "info",
    Event.TEST: "info",
}
_OTHER_SEVERITY = "warning"


def event(routing_key: str, occurrence: Occurrence, words: Words) -> dict[str, Any]:
    """The event that opens an alert, or that ends it: both have the same `dedup_key`, of less than 255 characters."""
    common = {"routing_key": routing_key, "dedup_key": occurrence.begun_id}
    if occurrence.resolved:
        return {**common, "event_action": "resolve"}
    own = words.values
    source = (own["cluster"], own["namespace"], own["kind"].lower(), own["workload"])
    return {
        **common,
        "event_action": "trigger",
        "client": "AlterShield",
        "payload": {
            "summary": words.title,
            "source": "/".join(each for each in source if each),
            "severity": _SEVERITIES.get(occurrence.event, _OTHER_SEVERITY),
            "timestamp": rfc3339(occurrence.time),
            "component": own["workload"],
            "group": own["namespace"],
            "class": occurrence.event,
            "custom_details": {
                name: own[name]
                for name in ("version", "images", "release", "reason", "message", "command")
                if own[name]
            }
            | {"text": words.text},
        },
    }
