"""The title and the text of a notification, from the templates of its receiver. Pure functions."""

import re
from dataclasses import dataclass

from altershield.texts import beginning, one_line
from kube_base.times import rfc3339
from reconciler.notifications.occurrences import Occurrence
from reconciler.receivers.file import PLACEHOLDER, Receiver
from reconciler.receivers.vocabulary import Event, Type

MAX_TITLE = 1024
"""Bytes. PagerDuty takes so many characters."""

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
    Event.SUCCEEDED: "succeeded",
    Event.TEST: "is a test of AlterShield's notifications",
}
_VERBS = {Event.STEP_WAITING: "promote"}
"""The command that a message names, if it is not `altershield why`."""

_DIRECTIONS = re.compile(r"[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that change the direction of the text around them."""

_MARKUP = re.compile(r"(?i)(?<!\w)@(?=\w)|:(?=//)|(?<=\bwww)\.|\](?=\()|<(?=[!@#/\w])")
"""Where a mention or a link begins: in Slack, in the Markdown of Mattermost, Rocket.Chat and Teams, and in the messages
that Alertmanager sends to Slack."""


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a notification. Values of tenants in them are escaped for the format of the receiver."""

    title: str
    """On one line, in at most `MAX_TITLE` bytes."""
    text: str
    values: dict[str, str]
    """By the names of the placeholders."""


def words(receiver: Receiver, occurrence: Occurrence, cluster: str) -> Words:
    """The words for this receiver."""
    found = {name: _plain(value) for name, value in values(occurrence, cluster).items()}
    match receiver.type:
        case Type.SLACK:
            found = {name: _slack(value) for name, value in found.items()}
        case Type.TEAMS:
            found = {name: _card(value) for name, value in found.items()}
    where = f" of {found['cluster']}" if cluster else ""
    name = f"{found['kind']} {found['namespace']}/{found['workload']}"
    title = f"AlterShield{where}: the release of {name} {_TITLES[occurrence.event]}"
    verb = _VERBS.get(occurrence.event, "why")
    command = f"altershield {verb} {found['kind'].lower()}/{found['workload']} -n {found['namespace']}"
    found |= {"title": title, "summary": f"{title}. {found['message']}".rstrip(), "command": command}
    images = " ({{images}})" if occurrence.images else ""
    text = receiver.template or f"{{{{summary}}}}\nVersion {{{{version}}}}{images}. What to do: {{{{command}}}}"
    return Words(
        one_line(_filled(receiver.title, found), MAX_TITLE) or one_line(found["summary"], MAX_TITLE),
        beginning(_filled(text, found).encode(), _MAX_TEXT),
        found,
    )


def values(occurrence: Occurrence, cluster: str) -> dict[str, str]:
    """The values as they are, by the names of their placeholders."""
    return {
        "event": occurrence.event,
        "namespace": occurrence.namespace,
        "kind": occurrence.kind,
        "workload": occurrence.workload,
        "version": occurrence.version,
        "images": occurrence.images,
        "release": occurrence.release,
        "reason": occurrence.reason,
        "message": occurrence.message,
        "time": rfc3339(occurrence.time),
        "cluster": cluster,
    }


def _filled(template: str, found: dict[str, str]) -> str:
    return PLACEHOLDER.sub(lambda match: found[match[1]], template)


def _plain(text: str) -> str:
    """The text on one line, shortened, and without mentions and links: the message of a pod must not notify everybody
    in a channel, or lead people to another site. A space without width breaks each, so the text looks the same."""
    line = one_line(_DIRECTIONS.sub("", text), _MAX_VALUE)
    return _MARKUP.sub(lambda match: f"{match[0]}\u200b", line)


def _card(text: str) -> str:
    """The text without functions of Adaptive Cards, such as `{{DATE(…)}}`."""
    return re.sub(r"\{(?=\{)", "{\u200b", text)


def _slack(text: str) -> str:
    """The text with escaped markup characters of Slack."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
