"""Protobuf bodies, as typed clients send them."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_sandbox.apiserver.http import protobuf
from kube_sandbox.apiserver.http.protobuf_fields import messages
from kube_sandbox.apiserver.schema import types
from support.requests import serving

_HEAD = b"k8s\x00"


def _field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2, len(data)]) + data


def _envelope(api_version: bytes, kind: bytes, raw: bytes) -> bytes:
    return _HEAD + _field(1, _field(1, api_version) + _field(2, kind)) + _field(2, raw)


_SECRET = _envelope(
    b"v1",
    b"Secret",
    _field(1, _field(1, b"s") + _field(11, _field(1, b"app") + _field(2, b"web")))
    + _field(2, _field(1, b"k") + _field(2, b"v")),
)


def test_secret_with_labels_and_data_is_decoded() -> None:
    assert protobuf.decode(_SECRET) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "labels": {"app": "web"}},
        "data": {"k": base64.b64encode(b"v").decode()},
    }


async def test_secret_sent_in_protobuf_is_stored_and_answered_in_json() -> None:
    async with serving() as http:
        path = "/api/v1/namespaces/default/secrets"
        answer = await http("POST", path, _SECRET, type_=protobuf.MEDIA_TYPE)
        assert (answer.status, answer.json["type"]) == (201, "Opaque")
        assert answer.headers["Content-Type"] == "application/json"


@given(st.binary(max_size=200))
def test_random_bytes_are_decoded_or_raise_an_expected_error(data: bytes) -> None:
    for body in (data, _HEAD + data, _envelope(b"apps/v1", b"Deployment", data)):
        try:
            protobuf.decode(body)
        except (ValueError, LookupError, OverflowError):
            continue


def test_unknown_kind_is_named_in_the_error() -> None:
    with pytest.raises(LookupError, match='no kind "Foo" is registered for version "v1"'):
        protobuf.decode(_envelope(b"v1", b"Foo", b""))


def test_every_protobuf_field_is_a_field_of_its_model() -> None:
    for model, numbers in messages().items():
        known = types.fields(model)
        for name in numbers.values():
            assert all(part in known for part in ([name] if isinstance(name, str) else name.values())), (model, name)
