"""Fields that the adapters read from each kind of workload, and patches that they write."""

from typing import Any

import jsonpatch
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.admission.webhooks import webhook_name, webhook_path
from altershield.api import labels
from altershield.api.released_by import ANNOTATION as RELEASED_BY
from altershield.workloads import ADAPTERS, Adapter
from altershield.workloads.adapter import template_of
from altershield.workloads.clone_sets import kept_by_partition
from altershield.workloads.workload import Strategy, fingerprint_of
from kube_base.times import unix
from tests.support.workloads import BY_NAME

from .objects import CREATED, VERSION, Object, manifest, template, workload

each_kind = pytest.mark.parametrize("kind", sorted(BY_NAME))
each_adapter = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.resource.kind)
BY_REVISIONS = ("StatefulSet", "DaemonSet", "CloneSet")


# fields of all kinds


@each_kind
def test_common_fields_are_read_from_every_kind(kind: str) -> None:
    found = workload(kind, minReadySeconds=7)

    assert found.kind == kind
    assert found.metadata.key == ("shop", "web")
    assert (found.metadata.uid, found.metadata.resource_version) == ("3f1c9a52-0d4e-4a43-8a30-1f6f3a1f0c11", "4711")
    assert found.metadata.created == int(unix(CREATED))
    assert not found.metadata.deleting
    assert (found.generation, found.version, found.min_ready) == (3, VERSION, 7)
    assert found.processed
    assert not found.suspended
    assert not found.ignores_suspension
    assert found.labelled
    assert found.template_version == ""
    assert found.fingerprint == fingerprint_of(template_of(template()))
    assert found.up_to_date
    assert found.selector == "app=web"
    assert not found.selects_version
    assert found.refused == ""


@each_kind
def test_labels_of_decisions_are_read(kind: str) -> None:
    own = {labels.VERSION: "2" * 32, labels.SUSPEND: "17", labels.IGNORED_SUSPEND: "true", labels.DEFENSE_STATUS: "no"}
    found = workload(kind, metadata={"labels": own}, template=template(**{labels.VERSION: VERSION}))

    assert (found.version, found.template_version, found.suspended) == ("2" * 32, VERSION, "17")
    assert found.ignores_suspension
    assert not found.processed
    assert found.fingerprint == workload(kind).fingerprint, "the version label does not change the fingerprint"


@each_kind
def test_processed_workload_hides_who_released_it(kind: str) -> None:
    metadata = {"labels": {labels.DEFENSE_STATUS: labels.PROCESSED}, "annotations": {RELEASED_BY: "ann"}}
    found = workload(kind, metadata=metadata)
    assert (found.processed, found.released_by) == (True, "")
    new = workload(kind, metadata={**metadata, "labels": {}})
    assert (new.processed, new.released_by) == (False, "ann")


@each_kind
def test_workload_with_an_empty_suspend_label_is_suspended(kind: str) -> None:
    """The gatekeeper denies its releases. If it did not count as suspended, no success would remove the label."""
    assert workload(kind, metadata={"labels": {labels.SUSPEND: ""}}).suspended == "unknown"


@each_kind
@pytest.mark.parametrize("own", [None, {}])
def test_workload_without_labels_has_no_version_and_no_state(kind: str, own: Object | None) -> None:
    found = workload(kind, metadata={"labels": own})

    assert (found.version, found.processed, found.suspended, found.labelled) == ("", False, "", False)


@each_kind
@pytest.mark.parametrize(("observed", "up_to_date"), [(2, False), (3, True), (4, True)])
def test_workload_is_up_to_date_if_the_generation_is_observed(kind: str, observed: int, up_to_date: bool) -> None:
    assert workload(kind, status={"observedGeneration": observed}).up_to_date is up_to_date


@each_kind
def test_workload_without_a_status_is_not_up_to_date(kind: str) -> None:
    body = manifest(kind)
    del body["status"]
    found = BY_NAME[kind].read(msgspec.json.encode(body))

    assert not found.up_to_date
    assert found.update_revision == ""


@each_kind
def test_workload_with_a_deletion_timestamp_is_deleting(kind: str) -> None:
    assert workload(kind, metadata={"deletionTimestamp": CREATED}).metadata.deleting


@each_kind
@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ({"matchLabels": {"app": "web", "tier": "front"}}, "app=web,tier=front"),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y"]}]}, "a in (x,y)"),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["x"]}]}, "a notin (x)"),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, "a"),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, "!a"),
        ({"matchLabels": None, "matchExpressions": []}, ""),
        (
            {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "a", "operator": "Exists", "values": []}]},
            "app=web,a",
        ),
    ],
)
def test_selector_is_converted_to_the_form_of_a_list_request(kind: str, selector: Object, text: str) -> None:
    assert workload(kind, selector=selector).selector == text


@each_kind
@pytest.mark.parametrize(
    "selector",
    [{"matchLabels": {labels.VERSION: VERSION}}, {"matchExpressions": [{"key": labels.VERSION, "operator": "Exists"}]}],
)
def test_selector_that_uses_the_version_label_is_recognised(kind: str, selector: Object) -> None:
    assert workload(kind, selector=selector).selects_version


@each_kind
def test_fingerprint_covers_the_template_but_not_our_labels_or_replicas(kind: str) -> None:
    plain = workload(kind).fingerprint
    assert workload(kind, template=template("nginx:1.28")).fingerprint != plain
    assert workload(kind, template=template(tier="front")).fingerprint != plain
    assert workload(kind, template=template(**{labels.OPERATE_FINISHED: "17"})).fingerprint == plain
    assert workload(kind, replicas=9).fingerprint == plain


@each_kind
def test_template_without_a_canonical_form_has_no_fingerprint(kind: str) -> None:
    deep: Any = 1
    for _ in range(300):
        deep = {"a": deep}
    assert workload(kind, template={"metadata": {}, "spec": deep}).fingerprint == ""


@each_kind
def test_invalid_labels_in_a_template_give_no_version(kind: str) -> None:
    for odd in (None, "text", {labels.VERSION: 5}, {labels.VERSION: None}, []):
        body = manifest(kind, template={"metadata": {"labels": odd}, "spec": {}})
        try:
            found = BY_NAME[kind].read(msgspec.json.encode(body))
        except msgspec.DecodeError:
            continue
        assert found.template_version == ""


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
PLACES = [
    ("metadata",),
    ("spec",),
    ("status",),
    ("metadata", "labels"),
    ("metadata", "ownerReferences"),
    ("metadata", "creationTimestamp"),
    ("spec", "replicas"),
    ("spec", "selector"),
    ("spec", "template"),
    ("spec", "strategy"),
    ("spec", "updateStrategy"),
    ("spec", "ordinals"),
    ("status", "conditions"),
    ("status", "observedGeneration"),
    ("status", "desiredNumberScheduled"),
]


@each_kind
@given(place=st.sampled_from(PLACES), value=anything)
def test_malformed_workload_is_rejected_or_read_with_a_valid_reach(
    kind: str, place: tuple[str, ...], value: Any
) -> None:
    body = manifest(kind)
    inner = body
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    try:
        found = BY_NAME[kind].read(msgspec.json.encode(body))
    except (msgspec.DecodeError, ValueError):
        return
    assert found.kind == kind
    assert found.reach is None or found.reach <= max(found.replicas, 0)


# Deployments


def deployment(**more: Any) -> Any:
    return workload("Deployment", **more)


def test_deployment_reaches_all_replicas() -> None:
    found = deployment(replicas=5, strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}})

    assert (found.replicas, found.reach, found.strategy) == (5, 5, Strategy.ROLLING)
    assert not found.paused
    assert not found.waits_for_ready


def test_deployment_without_replicas_has_one_replica() -> None:
    assert (deployment().replicas, deployment().reach) == (1, 1)


def test_deployment_with_strategy_recreate_is_recognised() -> None:
    assert deployment(strategy={"type": "Recreate"}).strategy is Strategy.RECREATE


def test_paused_deployment_is_recognised() -> None:
    assert deployment(paused=True).paused


@pytest.mark.parametrize(
    ("type_", "status", "refused"),
    [
        ("ReplicaFailure", "True", "FailedCreate: exceeded quota: pods"),
        ("ReplicaFailure", "False", ""),
        ("Progressing", "True", ""),
    ],
)
def test_replica_failure_of_a_deployment_is_read_as_refused(type_: str, status: str, refused: str) -> None:
    condition = {"type": type_, "status": status, "reason": "FailedCreate", "message": "exceeded\n quota: pods"}
    assert deployment(status={"conditions": [condition]}).refused == refused


def test_long_replica_failure_is_clipped() -> None:
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "x" * 5000}
    assert len(deployment(status={"conditions": [condition]}).refused) == 300


# StatefulSets


def stateful_set(**more: Any) -> Any:
    return workload("StatefulSet", **more)


@pytest.mark.parametrize(
    ("replicas", "partition", "start", "reach"),
    [
        (5, None, None, 5),
        (5, 0, None, 5),
        (5, 2, None, 3),
        (5, 5, None, 0),
        (5, 9, None, 0),
        (5, 2, 0, 3),
        (5, 2, 10, 3),
        (5, 12, 10, 0),
        (5, -1, None, 5),
        (0, 0, None, 0),
    ],
)
def test_stateful_set_reaches_the_pods_beyond_its_partition(
    replicas: int, partition: int | None, start: int | None, reach: int
) -> None:
    rolling = None if partition is None else {"partition": partition}
    spec: Object = {"replicas": replicas, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}
    if start is not None:
        spec["ordinals"] = {"start": start}
    found = stateful_set(**spec)

    assert (found.reach, found.strategy) == (reach, Strategy.ROLLING)


def test_stateful_set_keeps_the_pods_below_its_partition_at_its_current_revision() -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    status = {"currentRevision": "web-6b8"}
    found = stateful_set(updateStrategy=rolling, ordinals={"start": 10}, status=status)

    assert (found.kept_below, found.kept_revision) == (12, "web-6b8")
    assert stateful_set(updateStrategy=rolling).kept_below == 2
    assert stateful_set(updateStrategy={**rolling, "type": "OnDelete"}).kept_below == 0


def test_stateful_set_with_on_delete_has_no_reach() -> None:
    found = stateful_set(replicas=5, updateStrategy={"type": "OnDelete"})

    assert (found.reach, found.strategy) == (None, Strategy.ON_DELETE)


@pytest.mark.parametrize(("policy", "waits"), [("OrderedReady", True), ("Parallel", False), (None, True)])
def test_stateful_set_waits_for_ready_pods_unless_it_is_parallel(policy: str | None, waits: bool) -> None:
    spec = {} if policy is None else {"podManagementPolicy": policy}
    assert stateful_set(**spec).waits_for_ready is waits


def test_stateful_set_update_revision_is_read_from_the_status() -> None:
    assert stateful_set(status={"updateRevision": "web-6b8"}).update_revision == "web-6b8"


# DaemonSets


def test_daemon_set_reaches_every_desired_node() -> None:
    found = workload("DaemonSet", status={"desiredNumberScheduled": 4})

    assert (found.replicas, found.reach, found.strategy) == (4, 4, Strategy.ROLLING)
    assert not found.waits_for_ready


def test_daemon_set_with_on_delete_has_no_reach() -> None:
    found = workload("DaemonSet", status={"desiredNumberScheduled": 4}, updateStrategy={"type": "OnDelete"})

    assert (found.replicas, found.reach, found.strategy) == (4, None, Strategy.ON_DELETE)


# CloneSets


def clone_set(**strategy: Any) -> Any:
    return workload("CloneSet", replicas=10, updateStrategy=strategy, status={"updateRevision": "web-6b8"})


@pytest.mark.parametrize(
    ("partition", "reach"),
    [
        (None, 10),
        (0, 10),
        (3, 7),
        (10, 0),
        (12, 0),
        (-1, 10),
        ("0%", 10),
        ("30%", 7),
        ("33%", 6),
        ("99%", 1),
        ("100%", 0),
        ("200%", 0),
        ("3", 10),
        ("many%", 10),
        ("٣%", 10),
        ("9" * 20 + "%", 10),
    ],
)
def test_clone_set_reaches_the_pods_beyond_its_partition(partition: int | str | None, reach: int) -> None:
    found = clone_set(type="InPlaceIfPossible", partition=partition)

    assert (found.replicas, found.reach, found.strategy) == (10, reach, Strategy.ROLLING)
    assert found.update_revision == "web-6b8"


def test_paused_clone_set_is_recognised() -> None:
    assert clone_set(paused=True).paused
    assert not clone_set().paused


@given(st.integers(0, 99), st.integers(0, 1000))
def test_partition_below_100_percent_lets_one_of_several_pods_go(percent: int, replicas: int) -> None:
    kept = kept_by_partition(f"{percent}%", replicas)

    assert 0 <= kept <= replicas
    assert kept < replicas or replicas < 2
    assert kept >= min(replicas * percent / 100, max(replicas - 1, 0))


@pytest.mark.parametrize(("partition", "kept"), [("0%", 0), ("1%", 1), ("99%", 1), ("100%", 1), (0, 0), (1, 1)])
def test_any_share_keeps_the_only_pod(partition: str | int, kept: int) -> None:
    assert kept_by_partition(partition, 1) == kept


# templates of revisions


def replica_set(stored: Object, number: object = "4") -> Object:
    stored = msgspec.json.decode(msgspec.json.encode(stored))
    stored["metadata"]["labels"]["pod-template-hash"] = "5d4f8c7b9"
    return {
        "metadata": {
            "name": "web-5d4f8c7b9",
            "labels": {"pod-template-hash": "5d4f8c7b9"},
            "annotations": {"deployment.kubernetes.io/revision": number},
        },
        "spec": {"replicas": 3, "template": stored},
    }


def controller_revision(stored: Object, number: object = 4) -> Object:
    return {
        "metadata": {"name": "web-6b8"},
        "data": {"spec": {"template": {**stored, "$patch": "replace"}}},
        "revision": number,
    }


def revision(adapter: Adapter, stored: Object, **number: object) -> Object:
    return replica_set(stored, **number) if adapter.intermediate is not None else controller_revision(stored, **number)


@each_adapter
def test_revision_contains_the_template_of_its_workload(adapter: Adapter) -> None:
    stored = template(**{labels.VERSION: VERSION})
    made = revision(adapter, stored)
    before = msgspec.json.encode(made)

    found = adapter.template(made)

    assert found == stored
    assert fingerprint_of(template_of(found or {})) == workload(adapter.resource.kind).fingerprint
    assert msgspec.json.encode(made) == before, "reading does not change the object"


@each_adapter
@pytest.mark.parametrize("odd", [None, "text", [], {}])
def test_object_with_an_invalid_template_has_no_template(adapter: Adapter, odd: Any) -> None:
    found = adapter.template({"metadata": {}, "spec": {"template": odd}, "data": {"spec": {"template": odd}}})
    assert found is None or found == odd == {}
    assert adapter.template({"metadata": {}}) is None


@each_adapter
@pytest.mark.parametrize("odd", [None, {}])
def test_revision_without_data_has_no_template(adapter: Adapter, odd: Any) -> None:
    assert adapter.template({"metadata": {}, "spec": odd, "data": odd}) is None
    assert adapter.template({"metadata": {}, "data": {"spec": odd}}) is None


def test_revision_number_of_a_replica_set_is_its_annotation() -> None:
    adapter = BY_NAME["Deployment"]
    assert adapter.number(replica_set(template())) == 4
    for odd in ("", "-1", "x", "٣", "9" * 40):
        assert adapter.number(replica_set(template(), odd)) == 0
    assert adapter.number({"metadata": {}}) == 0
    assert adapter.number({"metadata": {"annotations": None}}) == 0


@pytest.mark.parametrize("kind", BY_REVISIONS)
def test_revision_number_of_a_controller_revision_is_its_field(kind: str) -> None:
    adapter = BY_NAME[kind]
    assert adapter.number(controller_revision(template())) == 4
    assert adapter.number(controller_revision(template(), "4")) == 0
    assert adapter.number({"metadata": {}}) == 0


# patches


@each_adapter
def test_released_template_is_written_unchanged(adapter: Adapter) -> None:
    body = manifest(adapter.resource.kind)
    stored = template("nginx:1.26", **{labels.VERSION: "2" * 32})

    patched = jsonpatch.apply_patch(body, adapter.release(stored))

    assert patched["spec"]["template"] == stored
    assert {**patched["spec"], "template": None} == {**body["spec"], "template": None}


@each_adapter
def test_paused_workload_replaces_no_pods(adapter: Adapter) -> None:
    kind = adapter.resource.kind
    body = manifest(kind, replicas=3, updateStrategy={"type": "RollingUpdate"}, status={"desiredNumberScheduled": 3})
    operations = adapter.pause()
    assert {each["path"].split("/")[2] for each in operations} == {adapter.pause_field}
    patched = jsonpatch.apply_patch(body, operations)
    found = adapter.read(msgspec.json.encode(patched))

    assert found.paused or found.reach in (0, None)
    assert found.fingerprint == workload(kind).fingerprint


# resources and webhooks


@pytest.mark.parametrize(
    ("kind", "plural", "between", "revisions", "crd", "prefix", "webhook", "path"),
    [
        ("Deployment", "deployments", "ReplicaSet", "ReplicaSet", "", "", "deployment.kb.io", "apps-v1-deployment"),
        (
            "StatefulSet",
            "statefulsets",
            None,
            "ControllerRevision",
            "",
            "statefulset.",
            "statefulset.kb.io",
            "apps-v1-statefulset",
        ),
        (
            "DaemonSet",
            "daemonsets",
            None,
            "ControllerRevision",
            "",
            "daemonset.",
            "daemonset.kb.io",
            "apps-v1-daemonset",
        ),
        (
            "CloneSet",
            "clonesets",
            None,
            "ControllerRevision",
            "clonesets.apps.kruise.io",
            "cloneset.",
            "cloneset.kb.io",
            "apps-kruise-io-v1alpha1-cloneset",
        ),
    ],
)
def test_resource_and_webhook_names_of_each_kind(
    kind: str, plural: str, between: str | None, revisions: str, crd: str, prefix: str, webhook: str, path: str
) -> None:
    adapter = BY_NAME[kind]

    assert (adapter.resource.kind, adapter.resource.plural) == (kind, plural)
    assert (adapter.intermediate.kind if adapter.intermediate is not None else None) == between
    assert (adapter.revisions.kind, adapter.crd, adapter.change_workload_prefix) == (revisions, crd, prefix)
    assert webhook_name(adapter.resource, mutating=True) == f"m{webhook}"
    assert webhook_name(adapter.resource, mutating=False) == f"v{webhook}"
    assert webhook_path(adapter.resource, mutating=True) == f"/mutate-{path}"
    assert webhook_path(adapter.resource, mutating=False) == f"/validate-{path}"
