"""Texts of the cluster in pages. Users write names, reasons and messages; some of them are hostile."""

import unicodedata

MAX_TEXT = 2000
"""Characters of one text that are shown."""

_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Categories of characters that a reader does not see: controls, direction marks, characters without width."""

_BLANK = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and symbols that fonts draw as nothing."""


def shown(text: object) -> str:
    """The text with hidden characters as their numbers (`U+202E`), cut after `MAX_TEXT` characters."""
    found = str(text)
    made = "".join(_visible(each) for each in found[:MAX_TEXT])
    return f"{made} … ({len(found) - MAX_TEXT} more characters)" if len(found) > MAX_TEXT else made


def _visible(character: str) -> str:
    if (character.isprintable() and character not in _BLANK) or character in "\n\t":
        return character
    if character in _BLANK or unicodedata.category(character) in _HIDDEN:
        return f"U+{ord(character):04X}"
    return " "
