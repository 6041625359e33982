import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.workloads import ADAPTERS, Adapter
from gatekeeper.dispatch import decide
from gatekeeper.errors import ReviewError
from gatekeeper.request import Request
from gatekeeper.response import Denial
from gatekeeper.review import write

from .malformed import MALFORMED
from .reviews import MUTATE, VALIDATE, StaticListers, about_kind, deployment, encode, released, review, route


def review_both(data: bytes) -> None:
    for served in (route(MUTATE), route(VALIDATE)):
        decide(served, served.decode(data), StaticListers())


def read(data: bytes) -> Request[Any]:
    """The request for the mutating handlers of the present kind."""
    served = route(MUTATE)
    (request,) = served.requests(served.decode(data)).values()
    return request


def code(data: bytes) -> int:
    """The HTTP status of the answer."""
    try:
        review_both(data)
    except ReviewError as error:
        return error.code
    return 200


@pytest.mark.parametrize("name", MALFORMED)
def test_body_that_is_not_a_review_is_refused_with_a_sentence_that_names_the_cause(name: str) -> None:
    data, word = MALFORMED[name]
    with pytest.raises(ReviewError) as caught:
        review_both(data)
    assert caught.value.code == 400
    assert word.lower() in str(caught.value).lower()
    assert len(str(caught.value)) <= 512


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def paths(value: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [prefix, *(path for key, inner in value.items() for path in paths(inner, (*prefix, key)))]
    return [prefix]


BODY = review(released("busybox:2", suspend="1"), released(suspend="1"))


@given(st.sampled_from(paths(BODY)[1:]), json_values)
def test_review_with_any_value_in_any_place_is_answered_or_refused(path: tuple[Any, ...], value: Any) -> None:
    body = json.loads(json.dumps(BODY))
    place = body
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert code(json.dumps(body).encode()) in (200, 400)


@given(st.binary())
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ReviewError):
        read(data)


@given(st.integers(0, len(encode(BODY)) - 1), st.binary(min_size=1, max_size=4))
def test_damaged_review_is_answered_or_refused(at: int, noise: bytes) -> None:
    data = encode(BODY)
    assert code(data[:at] + noise + data[at + len(noise) :]) in (200, 400)


@pytest.mark.parametrize("place", ["metadata", "spec"])
def test_deeply_nested_review_is_answered_or_refused(place: str) -> None:
    new, old = deployment(), deployment("busybox:2")
    for obj in (new, old):
        obj["spec"]["template"][place]["deep"] = "DEEP"
    for data in (encode(review(new, old)), encode(review(new, new))):
        for depth in (*range(245, 260), *range(900, 1000)):
            assert code(data.replace(b'"DEEP"', b'{"a":' * depth + b"1" + b"}" * depth)) in (200, 400), depth


@pytest.mark.parametrize("served", ADAPTERS, ids=lambda each: each.resource.plural)
@pytest.mark.parametrize("sent", ADAPTERS, ids=lambda each: each.resource.plural)
def test_webhook_of_a_kind_refuses_reviews_of_other_kinds(served: Adapter, sent: Adapter) -> None:
    with about_kind(sent.resource):
        body = review(released("busybox:2"), released())
    data = encode(body)
    with about_kind(served.resource):
        if served is sent:
            assert read(data).object is not None
            return
        with pytest.raises(ReviewError, match="correct the rules of the webhook configuration"):
            read(data)
        del body["request"]["resource"]
        with pytest.raises(ReviewError, match=f"not a {served.resource.kind} of {served.resource.api_version}"):
            read(encode(body))


def test_handlers_get_every_field_of_the_request() -> None:
    options = {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "kubectl"}
    body = review(released("busybox:2"), released(), user="jane", dryRun=True, options=options)
    found = read(encode(body))
    assert (found.operation, found.subresource, found.kind) == ("UPDATE", "", "deployment")
    assert (found.name, found.namespace) == ("sleep", "default")
    assert (found.user, found.groups, found.dry_run) == ("jane", ("system:authenticated",), True)
    assert found.options == options
    assert found.object.labels == released("busybox:2")["metadata"]["labels"]
    assert found.old_object is not None
    assert found.old_object.labels == released()["metadata"]["labels"]


def test_request_without_a_generated_name_is_read() -> None:
    obj = deployment()
    del obj["metadata"]["name"]
    obj["metadata"]["generateName"] = "sleep-"
    assert read(encode(review(obj, name=""))).name == ""


def test_response_without_content_has_only_the_required_fields() -> None:
    assert json.loads(write("u")) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "u", "allowed": True},
    }


def test_denial_has_no_patch() -> None:
    denial = Denial(message="no", reason="no")
    assert json.loads(write("u", status=denial.status, patch=[{"op": "remove", "path": "/a"}]))["response"] == {
        "uid": "u",
        "allowed": False,
        "status": {"status": "Failure", "message": "no", "reason": "no", "code": 403},
    }
