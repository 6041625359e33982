"""What the vendors' documentation says about the bodies of requests. Each function raises AssertionError."""

import re
from typing import Any

TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")


def teams(body: Any) -> None:
    """A message for the Workflows webhook of Teams: learn.microsoft.com/connectors/teams, "Microsoft Teams Webhook"; an
    Adaptive Card: adaptivecards.io/explorer. A message has at most 28 KB."""
    assert body.keys() == {"type", "attachments"}
    assert body["type"] == "message"
    (attachment,) = body["attachments"]
    assert attachment.keys() == {"contentType", "contentUrl", "content"}
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert attachment["contentUrl"] is None
    card = attachment["content"]
    assert card.keys() == {"$schema", "type", "version", "msteams", "body"}
    assert card["$schema"] == "http://adaptivecards.io/schemas/adaptive-card.json"
    assert (card["type"], card["version"], card["msteams"]) == ("AdaptiveCard", "1.2", {"width": "Full"})
    assert card["body"]
    for element in card["body"]:
        match element["type"]:
            case "TextBlock":
                assert element.keys() <= {"type", "text", "wrap", "size", "weight", "color"}
                assert isinstance(element["text"], str)
                assert element["text"]
                assert element["wrap"] is True
                assert element.get("size", "medium") in ("small", "default", "medium", "large", "extraLarge")
                assert element.get("weight", "bolder") in ("lighter", "default", "bolder")
                assert element.get("color", "good") in (
                    "default",
                    "dark",
                    "light",
                    "accent",
                    "good",
                    "warning",
                    "attention",
                )
            case "FactSet":
                assert element.keys() == {"type", "facts"}
                assert element["facts"]
                for fact in element["facts"]:
                    assert fact.keys() == {"title", "value"}
                    assert all(isinstance(each, str) and each for each in fact.values())
            case other:
                raise AssertionError(other)


def pagerduty(body: Any) -> None:
    """An event of PagerDuty's Events API v2: developer.pagerduty.com/docs/events-api-v2/trigger-events. An event has at
    most 512 KB."""
    assert re.fullmatch(r"[A-Za-z0-9]{32}", body["routing_key"])
    assert isinstance(body["dedup_key"], str)
    assert 0 < len(body["dedup_key"]) <= 255
    if body["event_action"] == "resolve":
        assert body.keys() == {"routing_key", "event_action", "dedup_key"}
        return
    assert body["event_action"] == "trigger"
    assert body.keys() == {"routing_key", "event_action", "dedup_key", "client", "payload"}
    assert isinstance(body["client"], str)
    payload = body["payload"]
    required = {"summary", "source", "severity"}
    assert required <= payload.keys() <= required | {"timestamp", "component", "group", "class", "custom_details"}
    assert 0 < len(payload["summary"]) <= 1024
    assert payload["source"]
    assert payload["severity"] in ("critical", "error", "warning", "info")
    assert TIME.fullmatch(payload["timestamp"])
    assert all(isinstance(payload[each], str) for each in ("source", "component", "group", "class"))
    assert isinstance(payload["custom_details"], dict)


CHECKS = {"teams": teams, "pagerduty": pagerduty}
