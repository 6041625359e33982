"""The entries of a workload's history."""

import copy
from typing import Any

import msgspec
import pytest

from altershield.api import labels
from altershield.releases import history
from altershield.releases.history import Entry, Record
from altershield.workloads.adapter import template_of
from altershield.workloads.workload import WireExpression, WireSelector, fingerprint_of
from kube_base.meta import ObjectMeta, OwnerReference
from tests.support.workloads import GROUP_KINDS

VERSION = "a" * 32
OWNER = OwnerReference("Deployment", "web", "uid-1", "apps/v1")
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web", labels.VERSION: VERSION, labels.SUSPEND: "1"}},
    "spec": {"containers": [{"name": "main", "image": "nginx"}]},
}
RECORD = Record("2026-08-21T07:29:49Z", "alice", "Success", "2026-08-21T07:30:49Z", "PodsPassed", "all pods passed")


def stored(**metadata: Any) -> Entry:
    obj = history.manifest(OWNER, "shop", VERSION, TEMPLATE, history.annotations(RECORD, None), 7)
    obj["metadata"] |= metadata
    return history.read(msgspec.json.encode(obj))


def entry(number: int, state: str = "Success") -> Entry:
    """The entry of a version that was released in the second `number`."""
    record = Record(f"2026-08-21T07:00:{number:02}Z", state=state)
    metadata = ObjectMeta(uid=f"uid-{number}", annotations=history.annotations(record, None))
    return Entry(metadata, f"v{number}", {"spec": {"n": number}}, number)


def test_stored_entry_has_the_template_without_the_labels_of_altershield() -> None:
    found = stored()
    assert found.template["metadata"]["labels"] == {"app": "web"}
    assert found.fingerprint == fingerprint_of(template_of(TEMPLATE))
    assert (found.version, found.revision, found.record) == (VERSION, 7, RECORD)
    assert labels.VERSION in TEMPLATE["metadata"]["labels"], "the argument does not change"


def test_template_with_its_version_has_the_same_fingerprint() -> None:
    found = history.with_version(stored().template, VERSION)
    assert found["metadata"]["labels"] == {"app": "web", labels.VERSION: VERSION}
    assert fingerprint_of(template_of(found)) == stored().fingerprint
    assert history.with_version({"spec": {}}, VERSION)["metadata"] == {"labels": {labels.VERSION: VERSION}}


def test_entry_belongs_to_the_workload_with_this_kind_name_and_uid() -> None:
    found = stored()
    assert found.is_of(GROUP_KINDS["Deployment"], "web", "uid-1")
    assert not found.is_of(GROUP_KINDS["Deployment"], "web", "uid-2")
    assert not found.is_of(GROUP_KINDS["Deployment"], "other", "uid-1")
    assert not found.is_of(GROUP_KINDS["StatefulSet"], "web", "uid-1")
    assert not stored(ownerReferences=[]).is_of(GROUP_KINDS["Deployment"], "web", "uid-1")
    assert stored(ownerReferences=[]).is_named_for(GROUP_KINDS["Deployment"], "web")


@pytest.mark.parametrize("value", ["", "nonsense", "[]", '{"released": 1}', "[" * 5000])
def test_unreadable_annotation_is_an_empty_record(value: str) -> None:
    assert stored(annotations={history.ANNOTATION: value}).record == Record()
    assert stored(annotations={}).record == Record()


def test_object_without_the_data_of_an_entry_is_of_no_workload() -> None:
    raw = {"metadata": {"name": "web-1", "ownerReferences": [msgspec.to_builtins(OWNER)]}, "data": {"spec": {}}}
    found = history.read(msgspec.json.encode(raw))
    assert not found.is_of(GROUP_KINDS["Deployment"], "web", "uid-1")


def test_newest_entries_within_the_limit_stay_and_failed_ones_have_their_own_limit() -> None:
    entries = [entry(1), entry(2, "Failed"), entry(3), entry(4, "Suspend"), entry(5), entry(6, "Rollback")]
    assert [each.version for each in history.surplus(entries, 2, ())] == ["v1", "v2"]
    assert history.surplus(entries, 3, ()) == []
    assert len(history.surplus(entries, 0, ())) == 6


@pytest.mark.parametrize("of", ["version", "uid", "fingerprint"])
def test_entries_in_use_stay_beyond_the_limit(of: str) -> None:
    entries = [entry(1), entry(2), entry(3)]
    oldest = entries[0]
    kept = {"version": oldest.version, "uid": oldest.metadata.uid, "fingerprint": oldest.fingerprint}[of]
    assert [each.version for each in history.surplus(entries, 1, {kept})] == ["v2"]


def expression(operator: str, *values: str, key: str = "env") -> WireSelector:
    return WireSelector(match_expressions=(WireExpression(key, operator, values),))


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (WireSelector({"app": "web"}), False),
        (WireSelector({labels.HISTORY: "web"}), True),
        (expression("In", "prod"), False),
        (expression("Exists"), False),
        (expression("NotIn", "prod"), True),
        (expression("DoesNotExist"), True),
        (expression("NotIn", "web", key=labels.HISTORY), False),
        (expression("DoesNotExist", key=labels.HISTORY), False),
        (expression("In", "web", "db", key=labels.HISTORY), True),
        (expression("Exists", key=labels.HISTORY), True),
        (WireSelector({"app": "web"}, expression("NotIn", "prod").match_expressions), False),
        (WireSelector(), True),
    ],
)
def test_selector_matches_the_labels_of_an_entry(selector: WireSelector, matches: bool) -> None:
    assert selector.matches(history.entry_labels("web")) is matches


def test_manifest_does_not_share_the_template() -> None:
    template = copy.deepcopy(TEMPLATE)
    obj = history.manifest(OWNER, "shop", VERSION, template, history.annotations(RECORD, None), 7)
    obj["data"]["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    assert template == TEMPLATE
