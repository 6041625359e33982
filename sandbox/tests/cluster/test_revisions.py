"""The new ReplicaSet of a Deployment, revision annotations and template hashes."""

from hypothesis import given
from hypothesis import strategies as st

from kube_sandbox.cluster import templates
from kube_sandbox.cluster.deployments import revisions
from kube_sandbox.cluster.deployments.revisions import REVISION, REVISION_HISTORY
from support.objects import deployment, replica_set, template


def test_new_replica_set_is_the_one_with_the_template_of_the_deployment() -> None:
    one, two = replica_set("one", 3, image="busybox:1"), replica_set("two", 2, image="busybox:2")
    assert revisions.split(deployment(image="busybox:2"), [one, two]) == (two, [one])
    assert revisions.split(deployment(image="busybox:3"), [one, two]) == (None, [one, two])


def test_oldest_of_equal_replica_sets_is_the_new_one() -> None:
    old, young = replica_set("b", 1), replica_set("a", 1, created="2026-02-01T00:00:00Z")
    assert revisions.split(deployment(), [young, old]) == (old, [young])


def test_first_release_gets_revision_one() -> None:
    assert revisions.annotations(deployment(), {}, []) == {REVISION: "1"}


def test_reused_replica_set_gets_the_next_revision_and_a_history() -> None:
    old = [replica_set("two", 0, revision=4)]
    back = revisions.annotations(deployment(), {REVISION: "3", REVISION_HISTORY: "1"}, old)
    assert back == {REVISION: "5", REVISION_HISTORY: "1,3"}


def test_revision_history_is_limited_to_2000_characters() -> None:
    long = ",".join(str(number) for number in range(1000, 1400))
    old = [replica_set("old", 0, revision=1401)]
    kept = revisions.annotations(deployment(), {REVISION: "1400", REVISION_HISTORY: long}, old)[REVISION_HISTORY]
    assert len(kept) <= 2000
    assert kept.endswith(",1399,1400")


def test_annotations_are_copied_except_those_of_the_controller() -> None:
    annotated = deployment(annotations={"kubernetes.io/change-cause": "why", REVISION: "7", "team": "blue"})
    found = revisions.annotations(annotated, {"own": "kept"}, [])
    assert found == {"own": "kept", "kubernetes.io/change-cause": "why", "team": "blue", REVISION: "1"}


def test_replica_sets_without_pods_beyond_the_limit_are_deleted() -> None:
    old = [replica_set("b", 0, revision=2), replica_set("a", 0, revision=1), replica_set("c", 1, revision=3)]
    assert [rs.metadata.name for rs in revisions.expendable(deployment(revisionHistoryLimit=1), old)] == ["a", "b"]
    assert [rs.metadata.name for rs in revisions.expendable(deployment(revisionHistoryLimit=0), old)] == ["a", "b"]
    assert revisions.expendable(deployment(), old) == []


def test_templates_are_equal_apart_from_hash_label_and_empty_fields() -> None:
    hashed = templates.with_label(template(), templates.HASH_LABEL, "abc")
    hashed["metadata"]["creationTimestamp"] = None
    hashed["metadata"]["annotations"] = {}
    hashed["spec"]["volumes"] = []
    assert templates.equal(template(), hashed)
    assert not templates.equal(template(), template("busybox:2"))
    assert not templates.equal(template(), template(more="labels"))


@given(st.integers(0, 2**31) | st.none())
def test_hash_has_up_to_ten_characters_of_the_safe_alphabet(collisions: int | None) -> None:
    word = templates.pod_template_hash(template(), collisions)
    assert 1 <= len(word) <= 10
    assert not set(word) - set("bcdfghjklmnpqrstvwxz2456789")
    assert word == templates.pod_template_hash(template(), collisions)


def test_collision_count_changes_the_hash() -> None:
    assert len({templates.pod_template_hash(template(), count) for count in (None, 1, 2)}) == 3


def test_name_is_cut_to_253_characters() -> None:
    assert templates.replica_set_name("sleep", "abc") == "sleep-abc"
    assert len(templates.replica_set_name("d" * 253, "abcdefghij")) == 253
