"""What is read of Kubernetes' own kinds, as real API servers send it."""

import msgspec

from altershield.api.views import ManagedDeployment, ReplicaSet


def test_a_condition_without_a_time_does_not_make_the_replica_set_unreadable() -> None:
    refused = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "lastTransitionTime": None}
    sent = msgspec.json.encode({"metadata": {"name": "web-1"}, "status": {"replicas": 0, "conditions": [refused]}})

    assert msgspec.json.decode(sent, type=ReplicaSet).barren is None, "since when is not known"


def test_a_selector_names_the_labels_that_it_looks_at() -> None:
    selector = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]}
    sent = msgspec.json.encode({"metadata": {"name": "web"}, "spec": {"selector": selector}})

    assert msgspec.json.decode(sent, type=ManagedDeployment).spec.selector.keys == {"app", "tier"}
