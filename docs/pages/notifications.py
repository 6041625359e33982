"""The body of a notification of each type."""

import json

from docs.pages.markdown import GENERATED
from reconciler.notifications.occurrences import Occurrence
from reconciler.notifications.receiver_messages import Message, message
from reconciler.receivers.file import Receiver
from reconciler.receivers.vocabulary import Event, Type

_NOW = 1_700_000_000
_ENDED = _NOW + 600
_VERSION = "0c4e6a2f4d1b7a90c4e6a2f4d1b7a90c"
_ADDRESSES = {
    Type.SLACK: "https://hooks.slack.com/services/…",
    Type.CLOUD_EVENTS: "http://events.tools.svc:8080/",
    Type.ALERTMANAGER: "http://alertmanager.monitoring.svc:9093",
    Type.TEAMS: "https://….environment.api.powerplatform.com/…",
    Type.PAGERDUTY: "https://events.pagerduty.com",
}
_HEAD = f"""\
# Notifications

{GENERATED}

Each [receiver](../notifications.md) gets a POST request with this body, here about a release that failed. People see
it like this:

![A notification in Slack, in Microsoft Teams and in PagerDuty](notifications.svg)
"""


def page() -> str:
    sections = [_HEAD]
    for type_ in Type:
        sections.append(f"## {type_}\n\n{_request(type_, _occurrence())}")
    sections.append(f"The end of the same alert:\n\n{_request(Type.PAGERDUTY, _occurrence(resolved=True))}")
    return "\n".join(sections)


def _occurrence(*, resolved: bool = False) -> Occurrence:
    return Occurrence(
        Event.SUSPENDED,
        _NOW,
        namespace="shop",
        kind="Deployment",
        workload="web",
        version=_VERSION,
        images="web:2.3",
        release=f"web--x--{_VERSION}",
        uid="6f1c0a52-8a34-4a7e-9d43-0d6f3c1b2a55",
        reason="FailedByCheck",
        message="failed: web-7f9c-x2x4d (errors: 0.041 is above max 0.01)",
        resolved=resolved,
    )


def body(type_: Type) -> bytes:
    """The body about a release that failed."""
    return _message(type_, _occurrence()).body


def _request(type_: Type, occurrence: Occurrence) -> str:
    made = _message(type_, occurrence)
    shown = json.dumps(json.loads(made.body), indent=2, ensure_ascii=False)
    return f"`POST {made.url}`\n\n```json\n{shown}\n```\n"


def _message(type_: Type, occurrence: Occurrence) -> Message:
    key = "0" * 32 if type_ is Type.PAGERDUTY else ""
    return message(Receiver("team", type_, _ADDRESSES[type_], routing_key=key), occurrence, "prod-eu", _ENDED)
