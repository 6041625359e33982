import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api.resources import DEPLOYMENTS
from altershield.workloads import ADAPTERS, Adapter
from gatekeeper.errors import ReviewError
from gatekeeper.gates import decide
from gatekeeper.review import Denial, Response, read, write

from .malformed import MALFORMED
from .reviews import MUTATE, UID, VALIDATE, StaticView, about_kind, deployment, encode, released, review, webhook


def judge(data: bytes) -> None:
    for asked in (webhook(MUTATE), webhook(VALIDATE)):
        decide(asked, read(data, asked.resource), StaticView())


def code(data: bytes) -> int:
    """The HTTP status that the request is answered with."""
    try:
        judge(data)
    except ReviewError as error:
        return error.code
    return 200


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_no_review_is_refused_with_a_sentence_that_says_what_is_wrong(name: str) -> None:
    data, word = MALFORMED[name]
    with pytest.raises(ReviewError) as caught:
        judge(data)
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
def test_a_review_with_anything_anywhere_is_judged_or_refused(path: tuple[Any, ...], value: Any) -> None:
    body = json.loads(json.dumps(BODY))
    place = body
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert code(json.dumps(body).encode()) in (200, 400)


@given(st.binary())
def test_any_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ReviewError):
        read(data, DEPLOYMENTS)


@given(st.integers(0, len(encode(BODY)) - 1), st.binary(min_size=1, max_size=4))
def test_a_damaged_review_is_judged_or_refused(at: int, noise: bytes) -> None:
    data = encode(BODY)
    assert code(data[:at] + noise + data[at + len(noise) :]) in (200, 400)


@pytest.mark.parametrize("place", ["metadata", "spec"])
@pytest.mark.parametrize("depth", [*range(245, 260), *range(900, 1000)])
def test_at_any_depth_a_review_is_judged_or_refused(place: str, depth: int) -> None:
    new, old = deployment(), deployment("busybox:2")
    for obj in (new, old):
        obj["spec"]["template"][place]["deep"] = "DEEP"
    for data in (encode(review(new, old)), encode(review(new, new))):
        assert code(data.replace(b'"DEEP"', b'{"a":' * depth + b"1" + b"}" * depth)) in (200, 400)


@pytest.mark.parametrize("judged", ADAPTERS, ids=lambda each: each.resource.plural)
@pytest.mark.parametrize("sent", ADAPTERS, ids=lambda each: each.resource.plural)
def test_the_webhook_of_a_kind_judges_that_kind_alone(judged: Adapter, sent: Adapter) -> None:
    with about_kind(sent.resource):
        body = review(released("busybox:2"), released())
    data = encode(body)
    if judged is sent:
        assert read(data, judged.resource).change is not None
        return
    with pytest.raises(ReviewError, match="correct the rules of the webhook configuration"):
        read(data, judged.resource)
    del body["request"]["resource"]
    with pytest.raises(ReviewError, match=f"not a {judged.resource.kind} of {judged.resource.api_version}"):
        read(encode(body), judged.resource)


def test_what_the_api_server_sends_is_read() -> None:
    found = read(encode(review(released("busybox:2"), released(), user="jane")), DEPLOYMENTS)
    assert (found.uid, found.operation) == (UID, "UPDATE")
    assert found.change is not None
    assert (found.change.kind, found.change.name, found.change.namespace) == ("deployment", "sleep", "default")
    assert found.change.user == "jane"
    assert found.change.new.labels == released("busybox:2")["metadata"]["labels"]


def test_a_request_whose_name_is_yet_to_be_generated_is_read() -> None:
    obj = deployment()
    del obj["metadata"]["name"]
    obj["metadata"]["generateName"] = "sleep-"
    found = read(encode(review(obj, name="")), DEPLOYMENTS)
    assert found.change is not None
    assert found.change.name == ""


def test_a_response_without_anything_to_say_has_only_what_the_protocol_needs() -> None:
    assert json.loads(write("u", Response("allowed", "passed"))) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "u", "allowed": True},
    }


def test_a_denial_carries_no_patch() -> None:
    response = Response(
        "denied", "test", patch=[{"op": "remove", "path": "/a"}], denial=Denial(message="no", reason="no")
    )
    assert json.loads(write("u", response))["response"] == {
        "uid": "u",
        "allowed": False,
        "status": {"status": "Failure", "message": "no", "reason": "no", "code": 403},
    }
