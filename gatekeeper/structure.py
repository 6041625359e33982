"""How many values a JSON text has and how deeply they are nested, found without decoding it.

A few bytes of JSON become an object of a hundred bytes, so a text within the size limit may cost seconds and hundreds
of megabytes. All steps here run over the bytes in C and make no object for each value.
"""

MAX_VALUES = 200_000
"""Of a review. The largest object that etcd takes (1.5 MiB), sent twice, has about 170,000."""
MAX_DEPTH = 128
"""Of a review that is measured. Smaller ones are bounded by the JSON decoders."""

_MARKS = b'[]{},"'
_NO_MARKS = bytes(sorted(set(range(256)) - set(_MARKS)))


def problem(data: bytes) -> str:
    """Why a JSON text must not be decoded; empty if it may be."""
    marks = _without_strings(data)
    if marks is None or marks.count(b",") + marks.count(b"[") + marks.count(b"{") > MAX_VALUES:
        return f"has more than {MAX_VALUES:,} values"
    return f"is nested more than {MAX_DEPTH} levels deep" if _too_deep(marks.translate(None, b",")) else ""


def _without_strings(data: bytes) -> bytes | None:
    """The brackets and commas outside of strings; None for more strings than values are allowed."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    # A string without marks in it becomes an empty string, and goes. In what is left, each quotation mark still
    # changes between inside and outside.
    marks = data.translate(None, _NO_MARKS).replace(b'""', b"")
    quotes = marks.count(b'"')
    if quotes > 2 * MAX_VALUES:
        return None
    return b"".join(marks.split(b'"')[::2]) if quotes else marks


def _too_deep(brackets: bytes) -> bool:
    """Each pass removes the innermost level. Brackets that do not match are for the decoder to report."""
    for _ in range(MAX_DEPTH):
        rest = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if not rest or len(rest) == len(brackets):
            return False
        brackets = rest
    return True
