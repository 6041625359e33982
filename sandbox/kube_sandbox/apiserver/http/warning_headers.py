"""Warnings as header values: each once, shortened where all together would be too long.

Rules of kube-apiserver's `pkg/endpoints/filters/warning.go`.
"""

import unicodedata
from collections.abc import Iterable

_TOTAL = 4 * 1024  # characters of all texts, before they are shortened
_SHORTENED = 256


def headers(warnings: Iterable[str]) -> list[str]:
    """The values of the Warning headers. What holds control characters cannot be sent and is left out."""
    texts = list(dict.fromkeys(text for text in warnings if text))
    if sum(len(text) for text in texts if _can_be_sent(text)) > _TOTAL:
        texts = [text[:_SHORTENED] for text in texts]
    sent: list[str] = []
    written = 0
    for text in texts:
        if written >= _TOTAL:
            break
        if _can_be_sent(text):
            written += len(text)
            sent.append('299 - "' + text.replace("\\", r"\\").replace('"', r"\"") + '"')
    return sent


def _can_be_sent(text: str) -> bool:
    return not any(unicodedata.category(character) == "Cc" for character in text)
