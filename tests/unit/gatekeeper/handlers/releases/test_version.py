"""Design rules 1 to 3: when a workload gets a version and when it keeps its version."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api import labels, released_by
from tests.unit.gatekeeper.reviews import NEW, OLD, RECONCILER, deployment, mutate, released, version_of

pytestmark = pytest.mark.usefixtures("every_kind")

Object = dict[str, Any]


def own(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}  # type: ignore[no-any-return]


def template(obj: Object) -> dict[str, str]:
    return obj["spec"]["template"]["metadata"].get("labels") or {}  # type: ignore[no-any-return]


def test_created_workload_and_its_template_get_the_version() -> None:
    result, warnings = mutate(deployment())
    assert own(result)[labels.VERSION] == template(result)[labels.VERSION] == version_of(deployment())
    assert own(result)["app"] == template(result)["app"] == "sleep"
    assert warnings == []


@pytest.mark.parametrize(
    "metadata", [{}, {"creationTimestamp": None}, {"labels": None}, {"labels": {}}, None, "absent"]
)
def test_workload_without_labels_gets_the_version(metadata: Any) -> None:
    obj = deployment()
    del obj["metadata"]["labels"]
    if metadata == "absent":
        del obj["spec"]["template"]["metadata"]
    else:
        obj["spec"]["template"]["metadata"] = metadata
    result, _ = mutate(obj)
    assert own(result) == template(result) == {labels.VERSION: own(result)[labels.VERSION]}


def test_changed_template_gets_a_version_and_the_workload_loses_defense_status() -> None:
    old = released("busybox")
    new = released("busybox")
    new["spec"]["template"]["spec"]["containers"][0]["image"] = "busybox:2"
    result, warnings = mutate(new, old)
    assert own(result)[labels.VERSION] == template(result)[labels.VERSION] == version_of(deployment("busybox:2"))
    assert labels.DEFENSE_STATUS not in own(result)
    assert warnings == []


@pytest.mark.parametrize(
    ("stored", "image", "sent", "kept"),
    [
        ("true", "busybox:2", None, "true"),
        ("true", "busybox", None, None),  # no release: the user takes the pass back
        ("true", "busybox:2", "false", "false"),
        ("yes", "busybox:2", None, None),
        (None, "busybox:2", None, None),
    ],
)
def test_release_keeps_the_label_ignored_suspend_that_it_removes(
    stored: str | None, image: str, sent: str | None, kept: str | None
) -> None:
    old, new = released("busybox", suspend="1"), released("busybox", suspend="1")
    new["spec"]["template"]["spec"]["containers"][0]["image"] = image
    for obj, value in ((old, stored), (new, sent)):
        if value is not None:
            own(obj)[labels.IGNORED_SUSPEND] = value
    result, warnings = mutate(new, old)
    assert (own(result).get(labels.IGNORED_SUSPEND), warnings) == (kept, [])


def test_release_by_the_reconciler_removes_defense_status() -> None:
    result, _ = mutate({**released("busybox"), "spec": deployment("busybox:2")["spec"]}, released(), user=RECONCILER)
    assert labels.DEFENSE_STATUS not in own(result)
    assert own(result)[labels.VERSION] == version_of(deployment("busybox:2"))


def test_old_template_gets_its_old_version_again() -> None:
    """`kubectl rollout undo` sends the template of the ReplicaSet, which includes the version label."""
    old = released("busybox:2")
    new = {**copy.deepcopy(old), "spec": released("busybox")["spec"]}
    result, warnings = mutate(new, old)
    assert own(result)[labels.VERSION] == template(result)[labels.VERSION] == version_of(deployment("busybox"))
    assert warnings == []


def test_rollout_restart_is_a_release() -> None:
    new = released()
    new["spec"]["template"]["metadata"]["annotations"] = {"kubectl.kubernetes.io/restartedAt": "2026-08-21T07:29:49Z"}
    result, _ = mutate(new, released())
    assert own(result)[labels.VERSION] not in (own(released())[labels.VERSION], "")


@pytest.mark.parametrize("places", ["workload", "template", "both"])
def test_removed_version_is_restored_without_a_warning(places: str) -> None:
    new = released()
    if places in ("workload", "both"):
        del new["metadata"]["labels"][labels.VERSION]
    if places in ("template", "both"):
        del new["spec"]["template"]["metadata"]["labels"][labels.VERSION]
    assert mutate(new, released()) == (released(), [])


def test_update_without_a_release_adds_no_version() -> None:
    old, new = deployment(), deployment()
    new["spec"]["replicas"] = 9
    new["metadata"]["annotations"] = {"a": "b"}
    assert mutate(new, old) == (new, [])


def test_first_release_of_a_workload_without_version_adds_the_version() -> None:
    result, _ = mutate(deployment("busybox:2"), deployment())
    assert own(result)[labels.VERSION] == version_of(deployment("busybox:2"))


@pytest.mark.parametrize("place", ["workload", "template"])
def test_version_in_one_place_only_stays_unchanged(place: str) -> None:
    old = deployment(own={labels.VERSION: OLD}) if place == "workload" else deployment(template_version=OLD)
    assert mutate(old, old) == (old, [])
    assert mutate(deployment(), old) == (old, [])


@pytest.mark.parametrize("forged", ["bogus", NEW, ""])
def test_version_from_the_user_is_replaced_with_a_warning(forged: str) -> None:
    result, warnings = mutate(deployment(own={labels.VERSION: forged}))
    assert own(result)[labels.VERSION] == version_of(deployment())
    assert [labels.VERSION in warning for warning in warnings] == [True]


def test_version_from_an_earlier_call_of_the_webhook_is_replaced_without_a_warning() -> None:
    stamped, _ = mutate(deployment("busybox:2"), released())
    stamped["spec"]["template"]["spec"]["containers"].append({"name": "sidecar", "image": "proxy"})
    result, warnings = mutate(stamped, released())
    assert own(result)[labels.VERSION] == template(result)[labels.VERSION] != own(stamped)[labels.VERSION]
    assert warnings == []


def test_copy_of_another_workload_loses_its_defense_status_and_suspension() -> None:
    """Created from the output of `kubectl get -o yaml`: the labels are those of the other workload."""
    result, warnings = mutate(released(suspend="1683791175"))
    assert labels.DEFENSE_STATUS not in own(result)
    assert labels.SUSPEND not in own(result)
    assert own(result)[labels.VERSION] == version_of(deployment())
    assert len(warnings) == 2


owned = st.dictionaries(
    st.sampled_from([*labels.OWNED, labels.IGNORED_SUSPEND]),
    st.sampled_from([OLD, NEW, "true", "processed", "1683791175"]),
)
objects = st.builds(
    lambda image, own, version, more: deployment(image, own, version, **more),
    st.sampled_from(["busybox", "busybox:2"]),
    owned,
    st.none() | st.sampled_from([OLD, NEW, "x"]),
    st.dictionaries(st.sampled_from(labels.NOT_IN_TEMPLATES), st.sampled_from(["1", "2"])),
)


@given(objects, st.none() | objects, st.sampled_from(["kubernetes-admin", RECONCILER]))
def test_second_call_with_the_patched_object_gives_no_patch_and_no_warning(
    new: Object, old: Object | None, user: str
) -> None:
    once, _ = mutate(new, old, user=user)
    assert mutate(once, old, user=user) == (once, [])


@given(objects, st.none() | objects)
def test_patch_changes_only_labels_and_the_annotation_of_altershield(new: Object, old: Object | None) -> None:
    result, _ = mutate(new, old)
    result["metadata"]["annotations"].pop(released_by.ANNOTATION, None)
    if old is not None and own(old).get(labels.IGNORED_SUSPEND) == "true" and labels.IGNORED_SUSPEND not in own(new):
        assert own(result).pop(labels.IGNORED_SUSPEND, "true") == "true"
    for obj in (result, new):
        for key in (*labels.OWNED, *labels.NOT_IN_TEMPLATES):
            own(obj).pop(key, None)
            template(obj).pop(key, None)
    assert result == new


@pytest.mark.parametrize("place", ["workload", "template"])
def test_version_from_the_user_in_one_place_is_replaced_with_a_warning(place: str) -> None:
    new = deployment(own={labels.VERSION: NEW}) if place == "workload" else deployment(template_version=NEW)
    result, (warning,) = mutate(new)
    assert (own(result), template(result)) == (own(expected := mutate(deployment())[0]), template(expected))
    assert result["spec"] == expected["spec"]
    assert labels.VERSION in warning


@pytest.mark.parametrize("forged", ["mine", "abc"])
def test_invalid_version_in_both_places_is_replaced_with_a_warning(forged: str) -> None:
    _, warnings = mutate(deployment(own={labels.VERSION: forged}, template_version=forged))
    assert len(warnings) == 1


def test_stored_versions_of_both_places_cause_no_warning() -> None:
    old = deployment(own={labels.VERSION: OLD}, template_version=NEW)
    new = deployment("busybox:2", own={labels.VERSION: OLD, "team": "a"}, template_version=NEW)
    assert mutate(new, old)[1] == []
