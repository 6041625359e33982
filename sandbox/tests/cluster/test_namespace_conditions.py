"""The conditions of a namespace that is being deleted."""

from kube_base.resources import CONFIG_MAPS, DEPLOYMENTS
from kube_sandbox.cluster.kinds import Object
from kube_sandbox.cluster.namespaces.conditions import Outcome, conditions

BEFORE, NOW = "2026-11-23T02:00:00Z", "2026-11-23T03:00:00Z"


def by_type(found: list[Object]) -> dict[str, tuple[str, str, str]]:
    return {one["type"]: (one["status"], one["reason"], one["lastTransitionTime"]) for one in found}


def test_conditions_name_what_remains_and_keep_their_time() -> None:
    outcome = Outcome(["denied"], {DEPLOYMENTS: 1, CONFIG_MAPS: 2}, {"example.com/held": 2})
    found = conditions([{"type": "Other"}], outcome, BEFORE, only_pods=False)
    messages = {one["type"]: one.get("message") for one in found}
    assert messages["NamespaceContentRemaining"] == (
        "Some resources are remaining: configmaps. has 2 resource instances, deployments.apps has 1 resource instances"
    )
    assert messages["NamespaceFinalizersRemaining"] == (
        "Some content in the namespace has finalizers remaining: example.com/held in 2 resource instances"
    )
    assert messages["NamespaceDeletionContentFailure"] == "Failed to delete all resource types, 1 remaining: denied"
    later = by_type(conditions(found[1:], Outcome(remaining={CONFIG_MAPS: 1}), NOW, only_pods=False))
    assert later["NamespaceContentRemaining"] == ("True", "SomeResourcesRemain", BEFORE)
    assert later["NamespaceFinalizersRemaining"] == ("False", "ContentHasNoFinalizers", NOW)
    assert later["NamespaceDeletionContentFailure"] == ("False", "ContentDeleted", NOW)


def test_only_errors_are_reported_while_pods_remain() -> None:
    found = by_type(conditions([], Outcome(["denied"], {CONFIG_MAPS: 1}), NOW, only_pods=True))
    assert [type_ for type_, (status, *_) in found.items() if status == "True"] == ["NamespaceDeletionContentFailure"]
