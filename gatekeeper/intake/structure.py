"""The number of values in a JSON text and their nesting depth, without decoding the text.

A few bytes of JSON become a Python object of a hundred bytes. So decoding a text within the size limit may take seconds
and hundreds of megabytes. The functions here scan the bytes in C, and create no object for each value.
"""

from array import array
from itertools import accumulate

MAX_VALUES = 200_000
"""The most values of a review. The largest object that etcd stores (1.5 MiB), sent twice, has about 170,000."""
MAX_DEPTH = 128
"""The greatest depth of a review that is measured. The JSON decoders bound the depth of smaller ones."""

_FEW_VALUES = 4_000  # take about 0.5 ms; a Kubernetes object has about 50 in each KiB
_MANY_OPENED = 1_500  # lists and objects
_BYTES_EACH = 8  # of a list or object, on average, at least; the shortest entry of `managedFields` has 9
_PASSES = 12  # about the depth of a workload
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_STEPS = bytes.maketrans(b"[]", b"\x01\xff")  # one level down, one level up (-1)
_MAX_MARKS = 5 * MAX_VALUES  # a value has two brackets and a comma at most, a string with such characters two more
_MARKS = b'[]{},"'
_NO_MARKS = bytes(sorted(set(range(256)) - set(_MARKS)))


def is_dense(data: bytes) -> bool:
    """Whether a small text has many values: several times as many as a Kubernetes object of its size. ValueError if it
    has too many lists and objects for a Kubernetes object: finding this takes microseconds, decoding the text would
    take milliseconds."""
    opened = len(data) - len(data.translate(None, b"[{"))
    if opened > _MANY_OPENED and opened * _BYTES_EACH > len(data):
        raise ValueError("has more lists and objects than a Kubernetes object of its size")
    return opened > _FEW_VALUES or opened + data.count(b",") > _FEW_VALUES


def problem(data: bytes) -> str:
    """The reason why a JSON text must not be decoded. Empty if it may be decoded."""
    marks = _without_strings(data)
    if marks is None or marks.count(b",") + marks.count(b"[") + marks.count(b"{") > MAX_VALUES:
        return f"has more than {MAX_VALUES:,} values"
    return f"is nested more than {MAX_DEPTH} levels deep" if _too_deep(marks.translate(None, b",")) else ""


def _without_strings(data: bytes) -> bytes | None:
    """The brackets and commas outside of strings. None if there are too many."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    # A string without marks in it becomes an empty string and is removed. In the rest, each quotation mark still
    # changes between inside and outside of a string.
    marks = data.translate(None, _NO_MARKS).replace(b'""', b"")
    if len(marks) > _MAX_MARKS:
        return None
    quotes = marks.count(b'"')
    return b"".join(marks.split(b'"')[::2]) if quotes else marks


def _too_deep(brackets: bytes) -> bool:
    """Each pass removes the innermost level. Kubernetes objects are shallow, so a few passes remove all their brackets.
    If some are left, the depth is counted. The decoder reports brackets that do not match."""
    brackets = brackets.translate(_ONE_KIND)  # with two kinds, a pass could remove two levels: `{[]}`
    for _ in range(_PASSES):
        brackets = brackets.replace(b"[]", b"")
        if not brackets:
            return False
    return max(accumulate(array("b", brackets.translate(_STEPS)))) > MAX_DEPTH - _PASSES
