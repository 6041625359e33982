"""Texts of users in pages."""

import re
from pathlib import Path

import pytest

import console
from console.texts import MAX_TEXT, shown

TEMPLATES = Path(console.__file__).with_name("templates")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\u202egnp.exe", "U+202Egnp.exe"),
        ("ad\u200bmin", "adU+200Bmin"),
        ("ad\u3164min\u115f\u1160\u2800\uffa0", "adU+3164minU+115FU+1160U+2800U+FFA0"),
        ("\x1b[31mred", "U+001B[31mred"),
        ("\x00", "U+0000"),
        ("\ud800", "U+D800"),
        ("no-break\u00a0space", "no-break space"),
        ("ünïcödé 漢字", "ünïcödé 漢字"),
    ],
)
def test_hidden_characters_are_shown(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_long_text_is_cut() -> None:
    assert shown("x" * (MAX_TEXT + 7)) == "x" * MAX_TEXT + " … (7 more characters)"


@pytest.mark.parametrize("template", sorted(TEMPLATES.iterdir()), ids=lambda path: path.name)
def test_no_template_switches_escaping_off(template: Path) -> None:
    found = re.search(r"\|\s*safe|autoescape|style=|<script|javascript:|\son[a-z]+=", template.read_text())
    assert found is None
