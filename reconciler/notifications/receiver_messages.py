"""The requests that notify a receiver about an event. Pure functions."""

import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from altershield.api.resources import API_VERSION, CHANGE_WORKLOADS
from altershield.texts import one_line
from kube_base.times import rfc3339
from reconciler.notifications.occurrences import Occurrence
from reconciler.receivers.file import PLACEHOLDER, Receiver
from reconciler.receivers.vocabulary import Event, Type

ALERT_SECONDS = 24 * 3600
"""Seconds after which an alert of Alertmanager ends by itself, because the reconciler may have been uninstalled."""

_MAX_TEXT = 2000  # bytes; Slack cuts a longer text
_MAX_VALUE = 1024

_TITLES = {
    Event.SUSPENDED: "failed its verification: further releases are denied",
    Event.ROLLED_BACK: "was rolled back",
    Event.APPROVAL_NEEDED: "waits for your verdict",
    Event.STEP_WAITING: "waits for your promotion",
    Event.STEP_FAILED: "failed in a step: no further pod gets its version",
    Event.OVERRIDE_USED: "passed closed gates by an override",
    Event.UNGATED: "was not reviewed by a gatekeeper",
    Event.TEST: "is a test of AlterShield's notifications",
}
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
"""The names differ from those of the chart's alerts, which come from metrics."""

_VERBS = {Event.STEP_WAITING: "promote"}
"""The command that a message names, if it is not `altershield why`."""

_DIRECTIONS = re.compile(r"[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that change the direction of the text around them."""

_MARKUP = re.compile(r"(?i)(?<!\w)@(?=\w)|:(?=//)|(?<=\bwww)\.|\](?=\()|<(?=[!@#/\w])")
"""Where a mention or a link begins: in Slack, in the Markdown of Mattermost and Rocket.Chat, and in the messages that
Alertmanager sends to Slack."""

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
    text = _text(receiver, occurrence, cluster)
    match receiver.type:
        case Type.SLACK:
            body: Any = {"text": text}
        case Type.CLOUD_EVENTS:
            content = "application/cloudevents+json; charset=UTF-8"
            body = _cloud_event(occurrence, cluster, text)
        case _:
            url = url.rstrip("/") + "/api/v2/alerts"
            body = [_alert(occurrence, cluster, text, now)]
    authorization = {"Authorization": f"Bearer {receiver.token}"} if receiver.token else {}
    return Message(url, {"Content-Type": content, **authorization}, msgspec.json.encode(body))


def _text(receiver: Receiver, occurrence: Occurrence, cluster: str) -> str:
    values = {name: _plain(value) for name, value in _values(occurrence, cluster).items()}
    if receiver.type == Type.SLACK:
        values = {name: _slack(value) for name, value in values.items()}
    where = f" of {values['cluster']}" if cluster else ""
    name = f"{values['kind']} {values['namespace']}/{values['workload']}"
    summary = f"AlterShield{where}: the release of {name} {_TITLES[occurrence.event]}. {values['message']}".rstrip()
    verb = _VERBS.get(occurrence.event, "why")
    command = f"altershield {verb} {values['kind'].lower()}/{values['workload']} -n {values['namespace']}"
    if receiver.template:
        values |= {"summary": summary, "command": command}
        text = PLACEHOLDER.sub(lambda match: values[match[1]], receiver.template)
    else:
        text = f"{summary}\nVersion {values['version']}. What to do: {command}"
    return text.encode()[:_MAX_TEXT].decode(errors="ignore")


def _plain(text: str) -> str:
    """The text on one line, shortened, and without mentions and links: the message of a pod must not notify everybody
    in a channel, or lead people to another site. A space without width breaks each, so the text looks the same."""
    line = one_line(_DIRECTIONS.sub("", text), _MAX_VALUE)
    return _MARKUP.sub(lambda match: f"{match[0]}\u200b", line)


def _slack(text: str) -> str:
    """The text with escaped markup characters of Slack."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _values(occurrence: Occurrence, cluster: str) -> dict[str, str]:
    return {
        "event": occurrence.event,
        "namespace": occurrence.namespace,
        "kind": occurrence.kind,
        "workload": occurrence.workload,
        "version": occurrence.version,
        "release": occurrence.release,
        "reason": occurrence.reason,
        "message": occurrence.message,
        "time": rfc3339(occurrence.since),
        "cluster": cluster,
    }


def _cloud_event(occurrence: Occurrence, cluster: str, text: str) -> dict[str, Any]:
    """CloudEvents 1.0, JSON format. `source` and `id` together identify the event."""
    source = f"/altershield/{urllib.parse.quote(cluster, safe='')}" if cluster else "/altershield"
    return {
        "specversion": "1.0",
        "id": occurrence.id,
        "source": source,
        "type": _TYPE_PREFIX + occurrence.event,
        "subject": f"{occurrence.namespace}/{occurrence.kind}/{occurrence.workload}",
        "time": rfc3339(occurrence.since),
        "datacontenttype": "application/json",
        "data": {
            **{name: value for name, value in _values(occurrence, cluster).items() if value},
            "changeWorkload": {
                "apiVersion": API_VERSION,
                "kind": CHANGE_WORKLOADS.kind,
                "name": occurrence.release,
                "uid": occurrence.uid,
            },
            "text": text,
        },
    }


def _alert(occurrence: Occurrence, cluster: str, text: str, now: float) -> dict[str, Any]:
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
        "annotations": {"summary": text.partition("\n")[0], "description": text, "id": occurrence.id},
        "startsAt": rfc3339(occurrence.since),
        "endsAt": rfc3339(now if occurrence.resolved else now + ALERT_SECONDS),
    }
