"""Answers of Prometheus, and of servers that are none."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.checks.prometheus_answers import NO_DATA, Reading, number, read

START, STEP = 1_700_000_010.0, 10


def matrix(*series: list[tuple[float, str]], **fields: Any) -> dict[str, Any]:
    result = [{"metric": {"pod": str(index)}, "values": values} for index, values in enumerate(series)]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}, **fields}


def readings(answer: Any, *, status: int = 200, count: int = 3) -> list[Reading]:
    return read(status, json.dumps(answer).encode(), start=START, step=STEP, count=count)


def test_values_are_assigned_to_their_times_and_others_have_no_data() -> None:
    assert readings(matrix([(START, "1"), (START + 20, "2.5e-7")])) == [1.0, NO_DATA, 2.5e-7]
    assert readings(matrix()) == [NO_DATA] * 3


def test_several_series_are_unknown_at_the_times_that_they_share() -> None:
    found = readings(matrix([(START, "1"), (START + 10, "1")], [(START + 10, "2"), (START + 20, "3")]))
    assert found == [1.0, "several series", 3.0]


@pytest.mark.parametrize("text", ["NaN", "+Inf", "-Inf", "1e999", "", "1_0", " 1", "0x1", "١", "1" * 500, "nan\n"])
def test_value_that_is_not_a_finite_number_is_unknown(text: str) -> None:
    (reading,) = readings(matrix([(START, text)]), count=1)
    assert isinstance(reading, str)
    assert reading.startswith("the value is ")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_each_finite_number_is_read_as_it_was_written(value: float) -> None:
    assert number(repr(value)) == value


def test_histogram_is_unknown() -> None:
    answer = matrix()
    answer["data"]["result"] = [{"metric": {}, "histograms": [[START, {"count": "1", "sum": "1"}]]}]
    assert readings(answer, count=1) == ["a histogram, which is not a number"]


def test_partial_answer_is_an_error() -> None:
    with pytest.raises(ValueError, match="may be partial: receive series from Addr"):
        readings(matrix([(START, "1")], warnings=["receive series from Addr: store-1: timeout"]))
    with pytest.raises(ValueError, match="may be partial: PromQL info: ignored histogram"):
        readings(matrix([(START, "1")], infos=["PromQL info: ignored histogram in a range"]))


def test_info_about_the_name_of_a_counter_has_no_effect() -> None:
    info = 'PromQL info: metric might not be a counter, name does not end in _total/_sum/_count/_bucket: "hits"'
    for field in ("infos", "warnings"):  # of Prometheus 3 and 2
        assert readings(matrix([(START, "1")], **{field: [info]}), count=1) == [1.0]


@pytest.mark.parametrize(
    ("status", "answer", "text"),
    [
        (
            400,
            {"status": "error", "errorType": "bad_data", "error": "parse error:\nx"},
            "HTTP 400: bad_data: parse error: x",
        ),
        (200, {"status": "error", "errorType": "timeout", "error": "query timed out"}, "HTTP 200: timeout"),
        (503, matrix([(START, "1")]), "HTTP 503"),
        (302, "moved", "not one of Prometheus: HTTP 302"),
        (200, {"status": "success"}, "not the result of a range query"),
        (200, {"status": "success", "data": {"resultType": "vector", "result": []}}, "not the result of a range query"),
        (200, {"status": "fine"}, "not one of Prometheus"),
        (200, [], "not one of Prometheus"),
        (200, matrix([(START + 5, "1")]), "other times"),
        (200, matrix([(START + 30, "1")]), "other times"),
        (200, matrix([(START - 10, "1")]), "other times"),
        (200, matrix([(1e308, "1")]), "other times"),
        (200, matrix([(START, 1)]), "not one of Prometheus"),  # type: ignore[list-item]
    ],
)
def test_answer_without_samples_is_an_error_with_its_reason(status: int, answer: Any, text: str) -> None:
    with pytest.raises(ValueError, match="answer") as caught:
        readings(answer, status=status)
    assert text in str(caught.value)


def test_body_of_another_server_is_not_quoted() -> None:
    for body in (b"password=hunter2", b'{"password": "hunter2"}', b'{"status": "error", "error": ["hunter2"]}'):
        with pytest.raises(ValueError, match="not one of Prometheus") as caught:
            read(403, body, start=START, step=STEP, count=1)
        assert "hunter2" not in str(caught.value)


def test_deeply_nested_answer_is_an_error() -> None:
    for body in (b"[" * 100_000, b'{"data": {"resultType": "matrix", "result": ' + b"[" * 100_000):
        with pytest.raises(ValueError, match="not one of Prometheus"):
            read(200, body, start=START, step=STEP, count=1)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text() | st.just("success") | st.just("matrix"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("status", "data", "resultType", "result", "values", "histograms", "warnings", "error")),
            inner,
        )
    ),
    max_leaves=20,
)


@given(st.integers(100, 599), JSON | st.builds(lambda inner: matrix([(START, inner)]), JSON))
def test_any_json_is_read_or_refused(status: int, answer: Any) -> None:
    try:
        found = read(status, json.dumps(answer).encode(), start=START, step=STEP, count=3)
    except ValueError:
        return
    assert len(found) == 3
    assert all(isinstance(reading, str) or math.isfinite(reading) for reading in found)


@given(st.binary())
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="answer"):
        read(200, body, start=START, step=STEP, count=1)
