"""The answers of Prometheus' HTTP API (/api/v1/query_range). They come from an address in a DefensePolicy, so nothing
in them is trusted."""

import math
import re
from typing import Literal

import msgspec

from altershield.texts import one_line

MAX_ANSWER = 1 << 20
"""The maximum number of bytes of an answer."""

Reading = float | str
"""A number, or the sentence that says why it is not known."""

NO_DATA = "no data"

_MAX_TEXT = 200
_CLOCK_STEP = 0.002  # Prometheus computes in milliseconds

# Prometheus writes this for a counter whose name does not end in _total. It says nothing about the data.
_HARMLESS = "PromQL info: metric might not be a counter"

_NUMBER = re.compile(r"[-+]?[0-9]{1,400}(\.[0-9]{1,400})?(e[-+]?[0-9]{1,4})?", re.ASCII | re.IGNORECASE)


class _Series(msgspec.Struct, frozen=True):
    values: tuple[tuple[float, str], ...] = ()
    histograms: tuple[tuple[float, msgspec.Raw], ...] = ()


class _Data(msgspec.Struct, frozen=True, rename="camel"):
    result_type: str
    result: msgspec.Raw


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    status: Literal["success", "error"]
    data: _Data | None = None
    error_type: str = ""
    error: str = ""
    warnings: tuple[str, ...] = ()
    infos: tuple[str, ...] = ()


_decode_answer = msgspec.json.Decoder(_Answer).decode
_decode_matrix = msgspec.json.Decoder(tuple[_Series, ...]).decode


def read(status: int, body: bytes, *, start: float, step: int, count: int) -> list[Reading]:
    """The readings at `count` times, from `start` (Unix seconds), every `step` seconds.

    ValueError, as a sentence, if the answer says nothing about any of them. A text of a server that does not answer as
    Prometheus does is never part of the sentence.
    """
    answer = _answer(status, body)
    # Prometheus 2 has infos among its warnings
    if notes := [text for text in answer.warnings + answer.infos if not text.startswith(_HARMLESS)]:
        raise ValueError(f"the answer may be partial: {one_line(notes[0], _MAX_TEXT)}")
    if answer.data is None or answer.data.result_type != "matrix":
        raise ValueError("the answer is not the result of a range query")
    try:
        matrix = _decode_matrix(answer.data.result)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"the answer is not one of Prometheus: {one_line(str(error), _MAX_TEXT)}") from error
    readings: list[Reading] = [NO_DATA] * count
    for series in matrix:
        for time, text in series.values:
            index = _index(time, start, step, count)
            readings[index] = number(text) if readings[index] is NO_DATA else "several series"
        for time, _ in series.histograms:
            readings[_index(time, start, step, count)] = "a histogram, which is not a number"
    return readings


def number(text: str) -> Reading:
    """The reading of a sample's value."""
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    return value if math.isfinite(value) else f"the value is {one_line(text, 32)}"


def _answer(status: int, body: bytes) -> _Answer:
    try:
        answer = _decode_answer(body)
    except (msgspec.DecodeError, RecursionError) as error:
        shown = f"HTTP {status}" if status != 200 else one_line(str(error), _MAX_TEXT)
        raise ValueError(f"the answer is not one of Prometheus: {shown}") from error
    if answer.status == "error" or status != 200:
        cause = one_line(f"{answer.error_type}: {answer.error}", _MAX_TEXT)
        raise ValueError(f"Prometheus answers HTTP {status}: {cause}")
    return answer


def _index(time: float, start: float, step: int, count: int) -> int:
    index = round((time - start) / step)
    if not 0 <= index < count or abs(start + index * step - time) > _CLOCK_STEP:
        raise ValueError("the answer has samples of other times")
    return index
