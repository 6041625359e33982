"""The message for a webhook of Microsoft Teams' Workflows ("Send webhook alerts to a channel"): one Adaptive Card. Pure
functions."""

from typing import Any

from reconciler.notifications.occurrences import Occurrence
from reconciler.notifications.texts import Words
from reconciler.receivers.vocabulary import Event

_COLORS = {Event.SUSPENDED: "attention", Event.STEP_FAILED: "attention", Event.SUCCEEDED: "good", Event.TEST: "accent"}
_OTHER_COLOR = "warning"

_FACTS = (
    ("Cluster", "cluster"),
    ("Version", "version"),
    ("Images", "images"),
    ("Reason", "reason"),
    ("What to do", "command"),
)


def card(occurrence: Occurrence, words: Words, *, title: bool, template: bool) -> dict[str, Any]:
    """The message. `title`, `template`: whether the receiver has its own."""
    own = words.values
    heading = _text(words.title if title else own["title"])
    heading |= {"size": "medium", "weight": "bolder", "color": _COLORS.get(occurrence.event, _OTHER_COLOR)}
    body = [heading]
    if template:
        # a single line feed is no new line in Markdown
        body += [_text(line) for line in words.text.splitlines() if line.strip()]
    else:
        body += [_text(own["message"])] if own["message"] else []
        facts = [{"title": name, "value": own[key]} for name, key in _FACTS if own[key]]
        body.append({"type": "FactSet", "facts": facts})
    return {
        "type": "message",
        "attachments": [
            {
                "contentType": "application/vnd.microsoft.card.adaptive",
                "contentUrl": None,
                "content": {
                    "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                    "type": "AdaptiveCard",
                    "version": "1.2",
                    "msteams": {"width": "Full"},
                    "body": body,
                },
            }
        ],
    }


def _text(text: str) -> dict[str, Any]:
    return {"type": "TextBlock", "text": text, "wrap": True}
