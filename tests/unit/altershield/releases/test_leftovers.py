"""Which fields a rollback brought back, and which of them a later template still has."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api import labels
from altershield.api.change_workload import MAX_RESTORED
from altershield.releases.leftovers import leftovers, restored_paths

Object = dict[str, Any]


def template(*containers: Object, **spec: Any) -> Object:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": list(containers), **spec}}


def app(**fields: Any) -> Object:
    return {"name": "app", "image": "web:1", **fields}


def env(*names: str) -> Object:
    return {"env": [{"name": name, "value": "1"} for name in names]}


@pytest.mark.parametrize(
    ("older", "failed", "paths"),
    [
        (template(app(**env("A", "B"))), template(app(**env("B"))), ["spec.containers[app].env[A]"]),
        (template(app(**env("A", "B"))), template(app()), ["spec.containers[app].env"]),
        (template(app(), {"name": "agent", **env("A")}), template(app()), ["spec.containers[agent]"]),
        (template(app(), priority=1), template(app()), ["spec.priority"]),
        (
            template(app(), nodeSelector={"a": "1", "b": "1"}),
            template(app(), nodeSelector={"a": "1"}),
            ["spec.nodeSelector.b"],
        ),
        # a changed value, and a list without a merge key, are replaced as a whole by every client
        (template(app(command=["a", "b"])), template(app(command=["a"])), []),
        (template(app(image="web:1")), template(app(image="web:2")), []),
        (template(app()), template(app(**env("A"))), []),
        # the API server's default
        (
            template(app(ports=[{"containerPort": 80}])),
            template(app(ports=[{"containerPort": 80, "protocol": "TCP"}])),
            [],
        ),
        (
            template(app(ports=[{"containerPort": 53, "protocol": "UDP"}])),
            template(app(ports=[{"containerPort": 53}])),
            ["spec.containers[app].ports[53/UDP]"],
        ),
    ],
)
def test_outermost_fields_that_the_failed_version_lacks_are_restored(
    older: Object, failed: Object, paths: list[str]
) -> None:
    assert [*restored_paths(older, failed)] == paths


def test_labels_of_altershield_are_no_fields() -> None:
    older = {"metadata": {"labels": {"app": "web", labels.VERSION: "1", "a.example.com/b": "1"}}}
    assert restored_paths(older, {"metadata": {"labels": {"app": "web"}}}) == ("metadata.labels[a.example.com/b]",)


def test_paths_are_bounded() -> None:
    older = template(app(**env(*(f"V{number}" for number in range(100)))), **{"x" * 300: 1})
    assert len(restored_paths(older, template(app(env=[])))) == MAX_RESTORED


def test_field_that_the_manifest_has_is_not_left() -> None:
    paths = restored_paths(old := template(app(**env("A", "B"))), template(app(env=[])))
    assert leftovers(paths, old, None) == ("spec.containers[app].env[A]", "spec.containers[app].env[B]")
    assert leftovers(paths, old, template(app(**env("B")))) == ("spec.containers[app].env[A]",)
    assert leftovers(paths, template(app(env=[])), None) == ()


values = st.recursive(
    st.integers(0, 2), lambda below: st.dictionaries(st.sampled_from("ab.c"), below) | st.lists(below)
)


@given(st.dictionaries(st.sampled_from(("metadata", "spec")), values), st.dictionaries(st.just("spec"), values))
def test_every_restored_field_of_any_template_is_there_in_it_and_missing_in_the_failed_one(
    older: Object, failed: Object
) -> None:
    paths = restored_paths(older, failed)
    assert leftovers(paths, older, None) == paths
    assert leftovers(paths, failed, None) == ()


def test_elements_with_the_same_name_are_one_path() -> None:
    older = template(app(**env("A", "A", "C")))
    assert restored_paths(older, template(app(**env("B")))) == (
        "spec.containers[app].env[A]",
        "spec.containers[app].env[C]",
    )
