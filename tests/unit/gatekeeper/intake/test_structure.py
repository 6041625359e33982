"""The number of values and the depth of a JSON text, without decoding it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatekeeper.intake import structure
from tests.unit.gatekeeper.reviews import deployment, encode, released, review

texts = st.text(alphabet='[]{},"\\:a \n', max_size=12)
values = st.recursive(
    st.none() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=40,
)


def depth(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


def count(value: Any) -> int:
    """Lists, objects, and what follows a comma."""
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(0, len(value) - 1) + sum(map(count, value)) if isinstance(value, list) else 0


@given(values, st.integers(13, 20), st.booleans())
def test_depth_and_number_of_values_are_right_for_any_strings(value: Any, limit: int, ascii: bool) -> None:
    for _ in range(8):
        value = [value, "]"]
    data = json.dumps(value, ensure_ascii=ascii).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(structure, "MAX_DEPTH", limit)
        assert ("levels deep" in structure.problem(data)) == (depth(value) > limit)
        patched.setattr(structure, "MAX_VALUES", count(value) - 1)
        assert "values" in structure.problem(data)
        patched.setattr(structure, "MAX_VALUES", count(value))
        assert "values" not in structure.problem(data)


@pytest.mark.parametrize("data", [b"", b"]]]]", b"{[", b'"' * 5, b"[" * 100 + b"}" * 50, b"\\" * 9])
def test_texts_that_are_not_json_are_left_to_the_decoder(data: bytes) -> None:
    assert structure.problem(data) == ""


def test_a_kubernetes_object_is_neither_dense_nor_too_large() -> None:
    data = encode(review(released("busybox:2"), released()))
    assert not structure.is_dense(data * 8)
    assert structure.problem(data) == ""


def wide(value: bytes, size: int = 30_000) -> bytes:
    """A review with so many bytes of this value."""
    values = b"[" + b",".join([value] * (size // len(value))) + b"]"
    return encode(review(deployment("WIDE"))).replace(b'"WIDE"', values)


def test_a_text_with_many_more_lists_than_a_kubernetes_object_is_dense() -> None:
    assert structure.is_dense(wide(b'["a value",1]'))


@pytest.mark.parametrize("value", [b"[]", b"{}", b"[" * 100 + b"]" * 100])
def test_a_text_with_too_many_lists_for_its_size_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError, match="more lists and objects"):
        structure.is_dense(wide(value))


@pytest.mark.parametrize("value", [b"[]", b"1", b'"["', b'{"a":1}', b'""'])
def test_too_many_values_of_any_kind_are_a_problem(value: bytes) -> None:
    data = b"[" + b",".join([value] * (structure.MAX_VALUES + 1)) + b"]"
    assert structure.problem(data) == "has more than 200,000 values"


@pytest.mark.parametrize(("depth", "refused"), [(structure.MAX_DEPTH, False), (structure.MAX_DEPTH + 2, True)])
def test_levels_of_alternating_kinds_count_one_by_one(depth: int, refused: bool) -> None:
    data = b'[{"a":' * (depth // 2) + b"1" + b"}]" * (depth // 2)
    assert bool(structure.problem(data)) == refused
