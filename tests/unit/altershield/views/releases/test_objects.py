"""Objects in JSON and YAML."""

import json
from typing import Any

import pytest
import yaml

from altershield.views.releases.objects import to_json, to_yaml

HOSTILE = ["\x1b[31m", "\x9b31m", "\x7f", "a\u202eb", "\u200b", "\u2028", "\ud83d\ude00\U000e0001", "\ufeff"]


@pytest.mark.parametrize("text", HOSTILE)
def test_characters_that_change_the_terminal_are_escaped_and_read_back(text: str) -> None:
    text = text.encode("utf-16", "surrogatepass").decode("utf-16")
    obj: dict[str, Any] = {"message": text, "list": [f"grün {text}"]}
    for made, read in ((to_json(obj), json.loads), (to_yaml(obj), yaml.safe_load)):
        assert made.replace("\n", "").isprintable()
        assert read(made) == obj


def test_other_characters_stay_readable() -> None:
    obj = {"message": "Grüße: 日本 😀"}
    assert "Grüße: 日本 😀" in to_json(obj)
    assert "Grüße: 日本 😀" in to_yaml(obj)
