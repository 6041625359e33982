"""The values of Warning headers: without repetitions, and shortened when their total length exceeds a limit.

The rules are those of kube-apiserver's `pkg/endpoints/filters/warning.go`.
"""

import unicodedata
from collections.abc import Iterable

_TOTAL = 4 * 1024  # characters of all texts; beyond this limit, each text is shortened
_SHORTENED = 256


def headers(warnings: Iterable[str]) -> list[str]:
    """The values of the Warning headers. Texts with control characters are omitted, because headers cannot contain
    them."""
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
