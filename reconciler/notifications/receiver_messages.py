"""The requests that notify a receiver about an event. Pure functions."""

import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from altershield.api.resources import API_VERSION, CHANGE_WORKLOADS
from kube_base.times import rfc3339
from reconciler.notifications import pagerduty, teams
from reconciler.notifications.occurrences import Occurrence
from reconciler.notifications.texts import Words, values, words
from reconciler.receivers.file import Receiver
from reconciler.receivers.vocabulary import Event, Type

ALERT_SECONDS = 24 * 3600
"""Seconds after which an alert of Alertmanager ends by itself, because the reconciler may have been uninstalled."""

_ALERTS = {
    Event.SUSPENDED: "AlterShieldReleaseSuspendedNotification",
    Event.ROLLED_BACK: "AlterShieldReleaseRolledBackNotification",
    Event.APPROVAL_NEEDED: "AlterShieldApprovalNeededNotification",
    Event.STEP_WAITING: "AlterShieldStepWaitingNotification",
    Event.STEP_FAILED: "AlterShieldStepFailedNotification",
    Event.OVERRIDE_USED: "AlterShieldOverrideUsedNotification",
    Event.UNGATED: "AlterShieldUngatedReleaseNotification",
    Event.TEST: "AlterShieldTestNotification",
}
"""The names differ from those of the chart's alerts, which come from metrics. The file of the receivers admits no other
event for Alertmanager."""

_TYPE_PREFIX = "com.antgroup.defense.altershield.release."


@dataclass(frozen=True, slots=True)
class Message:
    """A POST request."""

    url: str
    headers: Mapping[str, str]
    body: bytes


def message(receiver: Receiver, occurrence: Occurrence, cluster: str, now: float) -> Message:
    """The request for this receiver. `now` is in Unix seconds."""
    url, content = receiver.url, "application/json"
    found = words(receiver, occurrence, cluster)
    body: Any
    match Type(receiver.type):
        case Type.SLACK:
            body = {"text": found.text}
        case Type.CLOUD_EVENTS:
            content = "application/cloudevents+json; charset=UTF-8"
            body = _cloud_event(occurrence, cluster, found.text)
        case Type.TEAMS:
            body = teams.card(occurrence, found, title=bool(receiver.title), template=bool(receiver.template))
        case Type.PAGERDUTY:
            url = url.rstrip("/") + pagerduty.PATH
            body = pagerduty.event(receiver.routing_key, occurrence, found)
        case Type.ALERTMANAGER:
            url = url.rstrip("/") + "/api/v2/alerts"
            title = found.title if receiver.title else found.text.partition("\n")[0]
            body = [_alert(occurrence, cluster, Words(title, found.text, found.values), now)]
    authorization = {"Authorization": f"Bearer {receiver.token}"} if receiver.token else {}
    return Message(url, {"Content-Type": content, **authorization}, msgspec.json.encode(body))


def _cloud_event(occurrence: Occurrence, cluster: str, text: str) -> dict[str, Any]:
    """CloudEvents 1.0, JSON format. `source` and `id` together identify the event."""
    source = f"/altershield/{urllib.parse.quote(cluster, safe='')}" if cluster else "/altershield"
    return {
        "specversion": "1.0",
        "id": occurrence.id,
        "source": source,
        "type": _TYPE_PREFIX + occurrence.event,
        "subject": f"{occurrence.namespace}/{occurrence.kind}/{occurrence.workload}",
        "time": rfc3339(occurrence.time),
        "datacontenttype": "application/json",
        "data": {
            **{name: value for name, value in values(occurrence, cluster).items() if value},
            "changeWorkload": {
                "apiVersion": API_VERSION,
                "kind": CHANGE_WORKLOADS.kind,
                "name": occurrence.release,
                "uid": occurrence.uid,
            },
            "text": text,
        },
    }


def _alert(occurrence: Occurrence, cluster: str, found: Words, now: float) -> dict[str, Any]:
    """An alert of Alertmanager's API v2. Its labels identify it, so they are the same when it ends."""
    labels = {
        "alertname": _ALERTS[occurrence.event],
        "severity": "info" if occurrence.event is Event.TEST else "warning",
        "namespace": occurrence.namespace,
        "kind": occurrence.kind,
        "workload": occurrence.workload,
        "version": occurrence.version,
        "cluster": cluster,
    }
    return {
        "labels": {name: value for name, value in labels.items() if value},
        "annotations": {"summary": found.title, "description": found.text, "id": occurrence.id},
        "startsAt": rfc3339(occurrence.since),
        "endsAt": rfc3339(now if occurrence.resolved else now + ALERT_SECONDS),
    }
