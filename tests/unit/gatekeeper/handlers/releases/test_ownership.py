"""Design rule 4: only AlterShield changes its labels."""

import copy
from typing import Any

import pytest

from altershield.api import labels
from tests.unit.gatekeeper.reviews import NEW, OLD, RECONCILER, deployment, mutate, relabelled, released, version_of

pytestmark = pytest.mark.usefixtures("every_kind")

Object = dict[str, Any]

SUSPENDED = "1683791175"


def ungated(own: str = "", carried: str | None = None) -> Object:
    """A Deployment after an ungated release. The reconciler added its version to the workload. The template has no
    version, or that of an earlier release."""
    version = own or version_of(deployment())
    return deployment(own={labels.VERSION: version, labels.DEFENSE_STATUS: labels.PROCESSED}, template_version=carried)


def test_manifest_without_the_labels_of_altershield_keeps_them_without_a_warning() -> None:
    """`kubectl replace`."""
    old = released(suspend=SUSPENDED)
    assert mutate(deployment(), old) == (old, [])


def test_template_that_a_later_webhook_completes_causes_no_warning() -> None:
    """`kubectl replace` with a webhook that adds a sidecar: the API server asks twice, first without the sidecar."""
    old = released(suspend=SUSPENDED)
    first, warnings = mutate(deployment("without-sidecar"), old)
    assert warnings == []
    assert first["metadata"]["labels"][labels.VERSION] != OLD
    first["spec"]["template"]["spec"] = copy.deepcopy(old["spec"]["template"]["spec"])
    assert mutate(first, old) == (old, [])


def test_manifest_with_a_new_template_keeps_the_suspend_label() -> None:
    result, warnings = mutate(deployment("busybox:2"), released(suspend=SUSPENDED))
    assert result["metadata"]["labels"][labels.SUSPEND] == SUSPENDED
    assert labels.DEFENSE_STATUS not in result["metadata"]["labels"]
    assert warnings == []


def test_removed_suspend_label_is_restored_with_a_warning() -> None:
    """`kubectl label deployment sleep …/suspend-`."""
    old = released(suspend=SUSPENDED)
    result, warnings = mutate(relabelled(released(suspend=SUSPENDED), suspend=None), old)
    assert result == old
    assert len(warnings) == 1
    assert labels.SUSPEND in warnings[0]


def test_removed_suspend_label_is_restored_with_a_warning_if_it_is_the_only_label() -> None:
    old = deployment(own={labels.SUSPEND: SUSPENDED})
    result, warnings = mutate(deployment(), old)
    assert result == old
    assert len(warnings) == 1


@pytest.mark.parametrize("name", ["version", "defense_status"])
def test_removed_label_other_than_suspend_is_restored_without_a_warning(name: str) -> None:
    assert mutate(relabelled(released(), **{name: None}), released()) == (released(), [])


@pytest.mark.parametrize(
    ("name", "value"), [("version", NEW), ("defense_status", "x"), ("suspend", "2"), ("version", "")]
)
def test_changed_label_is_restored_with_a_warning(name: str, value: str) -> None:
    old = released(suspend=SUSPENDED)
    result, warnings = mutate(relabelled(released(suspend=SUSPENDED), **{name: value}), old)
    assert result == old
    assert len(warnings) == 1


@pytest.mark.parametrize("name", ["version", "defense_status", "suspend"])
def test_added_label_is_removed_with_a_warning(name: str) -> None:
    result, warnings = mutate(relabelled(deployment(), **{name: NEW}), deployment())
    assert result == deployment()
    assert len(warnings) == 1


def test_changed_version_in_the_template_is_restored_with_a_warning() -> None:
    new = released()
    new["spec"]["template"]["metadata"]["labels"][labels.VERSION] = NEW
    result, warnings = mutate(new, released())
    assert result == released()
    assert len(warnings) == 1


def test_users_may_change_ignored_suspend() -> None:
    for old, new in [
        (released(suspend=SUSPENDED), released(suspend=SUSPENDED, ignored_suspend="true")),
        (released(ignored_suspend="true"), released()),
        (released(ignored_suspend="true"), released(ignored_suspend="no")),
    ]:
        assert mutate(new, old) == (new, [])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (released(), released(suspend=SUSPENDED)),
        (released(suspend=SUSPENDED), released()),
        (relabelled(released(), defense_status=None), released()),
        (released(ignored_suspend="true"), released()),
        (deployment(), ungated()),  # the reconciler adds the version of an ungated release
        (ungated(carried=OLD), ungated(own=NEW, carried=OLD)),
    ],
)
def test_reconciler_may_change_the_labels_of_altershield(old: Object, new: Object) -> None:
    assert mutate(new, old, user=RECONCILER) == (new, [])


def test_reconciler_may_not_change_the_version_in_a_template() -> None:
    for old in (released(), ungated()):
        new = copy.deepcopy(old)
        new["spec"]["template"]["metadata"]["labels"][labels.VERSION] = NEW
        assert mutate(new, old, user=RECONCILER)[0] == old


# After an ungated release, the template has another version than the workload, or none. A change of the template would
# restart its pods.


@pytest.mark.parametrize("carried", [None, OLD])
@pytest.mark.parametrize("sent", [deployment(), deployment(template_version=OLD), deployment(template_version=NEW)])
def test_manifest_does_not_change_the_versions_of_an_ungated_release(sent: Object, carried: str | None) -> None:
    old = ungated(carried=carried)
    assert mutate(sent, old)[0] == old


@pytest.mark.parametrize("carried", [None, OLD])
def test_annotating_or_scaling_an_ungated_release_changes_no_label(carried: str | None) -> None:
    old = ungated(carried=carried)
    new = copy.deepcopy(old)
    new["metadata"]["annotations"]["team"] = "shop"
    new["spec"]["replicas"] = 7
    assert mutate(new, old) == (new, [])


@pytest.mark.parametrize("carried", [None, OLD])
def test_release_after_an_ungated_release_gets_its_version_in_both_places(carried: str | None) -> None:
    new = ungated(carried=carried)
    new["spec"]["template"]["spec"]["containers"][0]["image"] = "busybox:2"
    result, warnings = mutate(new, ungated(carried=carried))
    version = version_of(deployment("busybox:2"))
    assert result["metadata"]["labels"] == {"app": "sleep", labels.VERSION: version}
    assert result["spec"]["template"]["metadata"]["labels"] == {"app": "sleep", labels.VERSION: version}
    assert warnings == []


@pytest.mark.parametrize("user", ["", "system:serviceaccount:default:altershield", "system:serviceaccount", "admin"])
def test_user_with_a_name_similar_to_the_reconciler_is_not_the_reconciler(user: str) -> None:
    result, _ = mutate(released(), released(suspend=SUSPENDED), user=user)
    assert result == released(suspend=SUSPENDED)


def test_warning_gives_the_value_that_the_label_keeps() -> None:
    _, (warning,) = mutate(relabelled(released(suspend=SUSPENDED), suspend="1"), released(suspend=SUSPENDED))
    assert f"its value is still '{SUSPENDED}'" in warning


def test_version_changed_in_both_places_causes_one_warning() -> None:
    new = relabelled(released(), version=NEW)
    new["spec"]["template"]["metadata"]["labels"][labels.VERSION] = NEW
    result, warnings = mutate(new, released())
    assert result == released()
    assert len(warnings) == 1
