"""The annotation that says who released a version, and when."""

import copy
import json
from typing import Any

import pytest

from altershield.api import labels
from altershield.api.released_by import ANNOTATION, decode, encode
from gatekeeper import routes
from gatekeeper.dispatch import decide
from gatekeeper.handlers.releases.reasons import Reason
from gatekeeper.response import Decision
from tests.unit.gatekeeper.reviews import (
    MUTATE,
    RECONCILER,
    StaticListers,
    deployment,
    mutate,
    released,
    review,
    route,
    version_of,
)

pytestmark = pytest.mark.usefixtures("every_kind")

Object = dict[str, Any]

NOW = 1_700_000_000.0
TIME = "2023-11-14T22:13:20Z"


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes.time, "time", lambda: NOW)


def annotated(obj: Object, value: str | None) -> Object:
    obj = copy.deepcopy(obj)
    if value is None:
        obj["metadata"]["annotations"].pop(ANNOTATION, None)
    else:
        obj["metadata"]["annotations"][ANNOTATION] = value
    return obj


def annotation(obj: Object) -> Any:
    value = (obj["metadata"].get("annotations") or {}).get(ANNOTATION)
    return value if value is None else json.loads(value)


def by(user: str, image: str = "busybox") -> Object:
    return {"user": user, "time": TIME, "version": version_of(deployment(image))}


def test_created_workload_says_who_released_it_and_when() -> None:
    result, warnings = mutate(deployment(), user="alice")
    assert annotation(result) == by("alice")
    assert warnings == []


@pytest.mark.parametrize("annotations", [None, {}, "absent"])
def test_workload_without_annotations_gets_the_annotation(annotations: Any) -> None:
    obj = deployment()
    if annotations == "absent":
        del obj["metadata"]["annotations"]
    else:
        obj["metadata"]["annotations"] = annotations
    assert annotation(mutate(obj, user="alice")[0]) == by("alice")


def test_changed_template_replaces_the_annotation_of_the_release_before() -> None:
    old = annotated(released(), encode("alice", version_of(deployment()), 1.0))
    new = annotated(deployment("busybox:2"), annotation_text(old))
    assert annotation(mutate(new, old, user="bob")[0]) == by("bob", "busybox:2")


def annotation_text(obj: Object) -> str:
    return str(obj["metadata"]["annotations"][ANNOTATION])


@pytest.mark.parametrize("sent", ["alice's", "nonsense", None])
@pytest.mark.parametrize("before", [True, False])
def test_user_cannot_change_the_annotation_without_a_release(sent: str | None, before: bool) -> None:
    old = annotated(released(), encode("alice", version_of(deployment()), 1.0) if before else None)
    assert mutate(annotated(released(), sent), old, user="bob") == (old, [])


def test_user_cannot_choose_the_annotation_of_a_release() -> None:
    version = version_of(deployment())
    for value in ("nonsense", "{}", encode("alice", version, NOW), encode("bob", version, NOW - 60), "[" * 5000):
        assert annotation(mutate(annotated(deployment(), value), user="bob")[0]) == by("bob")


def test_second_call_for_the_same_request_does_not_change_the_annotation(monkeypatch: pytest.MonkeyPatch) -> None:
    once, _ = mutate(deployment(), user="alice")
    monkeypatch.setattr(routes.time, "time", lambda: NOW + 3)
    assert mutate(once, user="alice") == (once, [])


def test_reconciler_may_name_the_user_who_requested_a_rollback() -> None:
    old = annotated(released(), encode("alice", version_of(deployment()), 1.0))
    wanted = encode("carol", version_of(deployment("busybox:2")), NOW - 5)
    result, _ = mutate(annotated(deployment("busybox:2"), wanted), old, user=RECONCILER)
    assert annotation_text(result) == wanted


def test_reconciler_without_an_annotation_of_this_version_is_named_itself() -> None:
    old = annotated(released(), encode("alice", version_of(deployment()), 1.0))
    result, _ = mutate(annotated(deployment("busybox:2"), annotation_text(old)), old, user=RECONCILER)
    assert annotation(result) == by(RECONCILER, "busybox:2")


def test_change_of_a_label_keeps_the_annotation() -> None:
    old = annotated(released(), encode("alice", version_of(deployment()), 1.0))
    new = copy.deepcopy(old)
    new["metadata"]["labels"]["app"] = "other"
    assert mutate(new, old, user="bob") == (new, [])


def test_annotation_is_restored_together_with_the_labels() -> None:
    """`kubectl replace` with a manifest that has neither."""
    old = annotated(released(), encode("alice", version_of(deployment()), 1.0))
    manifest = deployment()
    result, warnings = mutate(manifest, old, user="bob")
    assert (result, warnings) == (old, [])
    assert labels.VERSION in result["metadata"]["labels"]


def test_reconciler_may_change_the_annotation_without_a_release() -> None:
    old = annotated(released(), encode("alice", version_of(deployment()), 1.0))
    assert mutate(annotated(released(), None), old, user=RECONCILER) == (annotated(released(), None), [])


def test_restored_annotation_is_counted_as_restored() -> None:
    old = annotated(released(), encode("alice", version_of(deployment()), 1.0))
    served = route(MUTATE)
    wire = served.decode(json.dumps(review(annotated(released(), "other"), old)).encode())
    answer = decide(served, wire, StaticListers())
    assert (answer.decision, answer.reason) == (Decision.PATCHED, Reason.RESTORED)


def test_long_user_name_is_cut() -> None:
    assert len(annotation(mutate(deployment(), user="x" * 5000)[0])["user"]) == 253


def test_annotation_of_another_version_or_without_its_fields_is_not_read() -> None:
    value = encode("alice", "a" * 32, NOW)
    assert decode(value, "b" * 32) is None
    assert decode(None, "a" * 32) is None
    assert decode('{"user": 1}', "a" * 32) is None
    found = decode(value, "a" * 32)
    assert found is not None
    assert (found.user, found.time) == ("alice", TIME)
