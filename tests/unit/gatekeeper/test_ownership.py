"""Design rule 4: AlterShield's labels are AlterShield's alone."""

import copy
from typing import Any

import pytest

from altershield.api import labels

from .reviews import NEW, OLD, RECONCILER, deployment, mutate, released, version_of

pytestmark = pytest.mark.usefixtures("every_kind")

Object = dict[str, Any]

SUSPENDED = "1683791175"


def ungated(own: str = "", carried: str | None = None) -> Object:
    """A Deployment that no gatekeeper reviewed and got its version since; its template carries none, or that of an
    earlier release."""
    version = own or version_of(deployment())
    return deployment(own={labels.VERSION: version, labels.DEFENSE_STATUS: labels.PROCESSED}, template_version=carried)


def relabelled(obj: Object, **changes: str | None) -> Object:
    """`obj` with labels (named without their prefix) changed, or None: taken off."""
    for name, value in changes.items():
        key = {"version": labels.VERSION, "defense_status": labels.DEFENSE_STATUS, "suspend": labels.SUSPEND}[name]
        if value is None:
            obj["metadata"]["labels"].pop(key)
        else:
            obj["metadata"]["labels"][key] = value
    return obj


def test_what_a_manifest_without_our_labels_dropped_comes_back_silently() -> None:
    """`kubectl replace`."""
    old = released(suspend=SUSPENDED)
    assert mutate(deployment(), old) == (old, [])


def test_a_manifest_with_a_new_template_does_not_lose_the_suspension() -> None:
    result, warnings = mutate(deployment("busybox:2"), released(suspend=SUSPENDED))
    assert result["metadata"]["labels"][labels.SUSPEND] == SUSPENDED
    assert labels.DEFENSE_STATUS not in result["metadata"]["labels"]
    assert warnings == []


def test_a_suspension_taken_off_on_purpose_is_put_back_with_a_warning() -> None:
    """`kubectl label deployment sleep …/suspend-`."""
    old = released(suspend=SUSPENDED)
    result, warnings = mutate(relabelled(released(suspend=SUSPENDED), suspend=None), old)
    assert result == old
    assert len(warnings) == 1
    assert labels.SUSPEND in warnings[0]


def test_a_suspension_taken_off_where_it_was_our_only_label_is_put_back_with_a_warning() -> None:
    old = deployment(own={labels.SUSPEND: SUSPENDED})
    result, warnings = mutate(deployment(), old)
    assert result == old
    assert len(warnings) == 1


@pytest.mark.parametrize("name", ["version", "defense_status"])
def test_another_label_that_was_dropped_comes_back_silently(name: str) -> None:
    assert mutate(relabelled(released(), **{name: None}), released()) == (released(), [])


@pytest.mark.parametrize(
    ("name", "value"), [("version", NEW), ("defense_status", "x"), ("suspend", "2"), ("version", "")]
)
def test_a_changed_label_is_put_back_with_a_warning(name: str, value: str) -> None:
    old = released(suspend=SUSPENDED)
    result, warnings = mutate(relabelled(released(suspend=SUSPENDED), **{name: value}), old)
    assert result == old
    assert len(warnings) == 1


@pytest.mark.parametrize("name", ["version", "defense_status", "suspend"])
def test_an_added_label_is_taken_off_with_a_warning(name: str) -> None:
    result, warnings = mutate(relabelled(deployment(), **{name: NEW}), deployment())
    assert result == deployment()
    assert len(warnings) == 1


def test_a_version_changed_in_the_template_is_put_back_with_a_warning() -> None:
    new = released()
    new["spec"]["template"]["metadata"]["labels"][labels.VERSION] = NEW
    result, warnings = mutate(new, released())
    assert result == released()
    assert len(warnings) == 1


def test_ignored_suspend_is_the_users() -> None:
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
        (deployment(), ungated()),  # an ungated release gets its version
        (ungated(carried=OLD), ungated(own=NEW, carried=OLD)),
    ],
)
def test_the_reconciler_writes_its_labels(old: Object, new: Object) -> None:
    assert mutate(new, old, user=RECONCILER) == (new, [])


def test_not_even_the_reconciler_writes_a_version_into_a_template() -> None:
    for old in (released(), ungated()):
        new = copy.deepcopy(old)
        new["spec"]["template"]["metadata"]["labels"][labels.VERSION] = NEW
        assert mutate(new, old, user=RECONCILER)[0] == old


# An ungated release has its version on the workload, and another one or none in its template. Were they made
# equal, its pods would be restarted.


@pytest.mark.parametrize("carried", [None, OLD])
@pytest.mark.parametrize("sent", [deployment(), deployment(template_version=OLD), deployment(template_version=NEW)])
def test_a_manifest_does_not_change_the_versions_of_what_ungated(sent: Object, carried: str | None) -> None:
    old = ungated(carried=carried)
    assert mutate(sent, old)[0] == old


@pytest.mark.parametrize("carried", [None, OLD])
def test_annotating_or_scaling_what_ungated_changes_nothing_else(carried: str | None) -> None:
    old = ungated(carried=carried)
    new = copy.deepcopy(old)
    new["metadata"]["annotations"]["team"] = "shop"
    new["spec"]["replicas"] = 7
    assert mutate(new, old) == (new, [])


@pytest.mark.parametrize("carried", [None, OLD])
def test_the_release_after_one_that_ungated_is_stamped_in_both_places(carried: str | None) -> None:
    new = ungated(carried=carried)
    new["spec"]["template"]["spec"]["containers"][0]["image"] = "busybox:2"
    result, warnings = mutate(new, ungated(carried=carried))
    version = version_of(deployment("busybox:2"))
    assert result["metadata"]["labels"] == {"app": "sleep", labels.VERSION: version}
    assert result["spec"]["template"]["metadata"]["labels"] == {"app": "sleep", labels.VERSION: version}
    assert warnings == []


@pytest.mark.parametrize("user", ["", "system:serviceaccount:default:altershield", "system:serviceaccount", "admin"])
def test_nobody_passes_for_the_reconciler_by_a_similar_name(user: str) -> None:
    result, _ = mutate(released(), released(suspend=SUSPENDED), user=user)
    assert result == released(suspend=SUSPENDED)


def test_the_warning_says_which_value_the_label_keeps() -> None:
    _, (warning,) = mutate(relabelled(released(suspend=SUSPENDED), suspend="1"), released(suspend=SUSPENDED))
    assert f"its value is still '{SUSPENDED}'" in warning


def test_a_version_changed_in_both_places_is_warned_about_once() -> None:
    new = relabelled(released(), version=NEW)
    new["spec"]["template"]["metadata"]["labels"][labels.VERSION] = NEW
    result, warnings = mutate(new, released())
    assert result == released()
    assert len(warnings) == 1
