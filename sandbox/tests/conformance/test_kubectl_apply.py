"""kubectl apply, diff and replace: field ownership, conflicts, and fields that leave a manifest."""

import json

import pytest

from conformance.manifests import config_map, deployment, text
from support.kubectl import Kubectl

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def test_apply_reports_created_unchanged_or_configured(space: Kubectl) -> None:
    first = text(config_map("steps"))
    assert space("apply", "-f", "-", stdin=first) == "configmap/steps created\n"
    assert space("apply", "-f", "-", stdin=first) == "configmap/steps unchanged\n"
    assert space("apply", "-f", "-", stdin=text(config_map("steps", {"a": "2"}))) == "configmap/steps configured\n"
    assert space.json("configmap", "steps")["data"] == {"a": "2"}


def test_apply_removes_fields_that_left_the_manifest_and_keeps_those_of_others(space: Kubectl) -> None:
    space("apply", "-f", "-", stdin=text(config_map("three-way", {"mine": "1", "gone": "1"})))
    space("patch", "configmap", "three-way", "--type=merge", "-p", '{"data":{"theirs":"1"}}')
    space("apply", "-f", "-", stdin=text(config_map("three-way", {"mine": "2"})))
    live = space.json("configmap", "three-way")
    assert live["data"] == {"mine": "2", "theirs": "1"}
    assert json.loads(live["metadata"]["annotations"][LAST_APPLIED])["data"] == {"mine": "2"}


def test_apply_merges_and_removes_containers_by_name(space: Kubectl) -> None:
    manifest = deployment("merge", replicas=0)
    containers = manifest["spec"]["template"]["spec"]["containers"]
    containers.append({"name": "side", "image": "side:1", "env": [{"name": "A", "value": "1"}]})
    space("apply", "-f", "-", stdin=text(manifest))
    space("set", "env", "deployment/merge", "-c", "main", "ADDED=1")
    containers.pop()
    space("apply", "-f", "-", stdin=text(manifest))
    left = space.json("deployment", "merge")["spec"]["template"]["spec"]["containers"]
    assert [(container["name"], container.get("env")) for container in left] == [
        ("main", [{"name": "ADDED", "value": "1"}])
    ]


def test_server_side_apply_names_the_owner_of_a_conflicting_field(space: Kubectl) -> None:
    space("apply", "--server-side", "--field-manager=one", "-f", "-", stdin=text(config_map("owned")))
    taken = text(config_map("owned", {"a": "2"}))
    refused = space.run("apply", "--server-side", "--field-manager=two", "-f", "-", stdin=taken)
    assert refused.returncode != 0
    assert 'Apply failed with 1 conflict: conflict with "one": .data.a' in refused.stderr
    out = space("apply", "--server-side", "--field-manager=two", "--force-conflicts", "-f", "-", stdin=taken)
    assert out == "configmap/owned serverside-applied\n"
    live = json.loads(space("get", "configmap", "owned", "-o", "json", "--show-managed-fields"))
    assert live["data"] == {"a": "2"}
    owners = {
        entry["manager"]: (entry["operation"], entry["fieldsV1"].get("f:data"))
        for entry in live["metadata"]["managedFields"]
    }
    assert owners["two"] == ("Apply", {"f:a": {}})
    assert not (owners.get("one", ("", None))[1] or {}).get("f:a")


def test_server_side_apply_with_a_uid_creates_no_object(space: Kubectl) -> None:
    uid = "7f5a1c0e-2b5c-4c57-9f0e-0d4a5b1c9e11"
    refused = space.run("apply", "--server-side", "-f", "-", stdin=text(config_map("gone", uid=uid)))
    why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
    assert f'Operation cannot be fulfilled on configmaps "gone": {why}' in refused.stderr
    assert space.run("get", "configmap", "gone").returncode == 1


def test_server_side_apply_removes_only_fields_that_no_other_manager_owns(space: Kubectl) -> None:
    for manager, data in (("one", {"a": "1", "b": "1"}), ("two", {"b": "1", "c": "1"}), ("one", {"a": "1"})):
        space("apply", "--server-side", f"--field-manager={manager}", "-f", "-", stdin=text(config_map("shared", data)))
    assert space.json("configmap", "shared")["data"] == {"a": "1", "b": "1", "c": "1"}
    space("apply", "--server-side", "--field-manager=two", "-f", "-", stdin=text(config_map("shared", {"c": "1"})))
    assert space.json("configmap", "shared")["data"] == {"a": "1", "c": "1"}


def test_client_side_applied_object_migrates_to_server_side_apply(space: Kubectl) -> None:
    space("apply", "-f", "-", stdin=text(config_map("moving", {"a": "1", "b": "1"})))
    space("apply", "--server-side", "-f", "-", stdin=text(config_map("moving", {"a": "1"})))
    live = json.loads(space("get", "configmap", "moving", "-o", "json", "--show-managed-fields"))
    assert live["data"] == {"a": "1"}
    # the second manager, kubectl-last-applied, owns the annotation only
    assert [entry["operation"] for entry in live["metadata"]["managedFields"]] == ["Apply", "Apply"]


def test_server_dry_run_stores_nothing(space: Kubectl) -> None:
    out = space("apply", "--dry-run=server", "-f", "-", stdin=text(deployment("dry", replicas=0)))
    assert out == "deployment.apps/dry created (server dry run)\n"
    assert 'deployments.apps "dry" not found' in space.run("get", "deployment", "dry").stderr


@pytest.mark.parametrize("mode", [[], ["--server-side"]])
def test_diff_shows_what_apply_would_change(space: Kubectl, mode: list[str]) -> None:
    name = f"diff{len(mode)}"
    space("apply", *mode, "-f", "-", stdin=text(config_map(name)))
    same = space.run("diff", *mode, "-f", "-", stdin=text(config_map(name)))
    assert (same.returncode, same.stdout) == (0, "")
    other = space.run("diff", *mode, "-f", "-", stdin=text(config_map(name, {"a": "2"})))
    assert other.returncode == 1
    assert '-  a: "1"' in other.stdout
    assert '+  a: "2"' in other.stdout


def test_apply_with_prune_deletes_objects_that_left_the_set(space: Kubectl) -> None:
    labels = {"set": "pruned"}
    kept, gone = config_map("kept", labels=labels), config_map("gone", labels=labels)
    space("apply", "-f", "-", stdin=text(kept, gone))
    out = space(
        "apply", "--prune", "-l", "set=pruned", "--prune-allowlist=core/v1/ConfigMap", "-f", "-", stdin=text(kept)
    )
    assert "configmap/gone pruned" in out


def test_replace_stores_the_manifest_as_it_is(space: Kubectl) -> None:
    space("create", "-f", "-", stdin=text(config_map("replaced", {"a": "1", "b": "1"}, labels={"x": "y"})))
    space("replace", "-f", "-", stdin=text(config_map("replaced", {"c": "1"})))
    live = space.json("configmap", "replaced")
    assert live["data"] == {"c": "1"}
    assert "labels" not in live["metadata"]
    missing = space.run("replace", "-f", "-", stdin=text(config_map("not-there")))
    assert 'configmaps "not-there" not found' in missing.stderr


def test_replace_with_force_creates_a_new_object(space: Kubectl) -> None:
    space("create", "-f", "-", stdin=text(config_map("forced")))
    before = space.json("configmap", "forced")["metadata"]["uid"]
    space("replace", "--force", "-f", "-", stdin=text(config_map("forced")))
    assert space.json("configmap", "forced")["metadata"]["uid"] != before


def test_unknown_field_is_refused_warned_of_or_ignored_as_requested(space: Kubectl) -> None:
    manifest = deployment("strict", replicas=0)
    manifest["spec"]["replica"] = 1
    strict = space.run("apply", "-f", "-", stdin=text(manifest))
    assert strict.returncode != 0
    assert 'strict decoding error: unknown field "spec.replica"' in strict.stderr
    warned = space.run("apply", "--validate=warn", "-f", "-", stdin=text(manifest))
    assert warned.returncode == 0
    assert warned.stderr == 'Warning: unknown field "spec.replica"\n'
    ignored = space.run("apply", "--validate=ignore", "-f", "-", stdin=text(manifest))
    assert (ignored.returncode, ignored.stderr) == (0, "")


def test_invalid_object_is_refused_with_all_causes(space: Kubectl) -> None:
    manifest = deployment("wrong", replicas=-1)
    manifest["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    done = space.run("apply", "-f", "-", stdin=text(manifest))
    assert done.returncode == 1
    assert 'The Deployment "wrong" is invalid' in done.stderr
    assert "* spec.replicas: Invalid value: -1: must be greater than or equal to 0" in done.stderr
    assert (
        '* spec.template.metadata.labels: Invalid value: {"app":"other"}: `selector` does not match template `labels`'
    ) in done.stderr


def test_change_of_a_deployment_selector_is_refused(space: Kubectl) -> None:
    space("apply", "-f", "-", stdin=text(deployment("fixed", replicas=0)))
    changed = deployment("fixed", replicas=0)
    changed["spec"]["selector"] = {"matchLabels": {"app": "new"}}
    changed["spec"]["template"]["metadata"]["labels"] = {"app": "new"}
    done = space.run("apply", "-f", "-", stdin=text(changed))
    assert done.returncode == 1
    assert "spec.selector: Invalid value" in done.stderr
    assert "field is immutable" in done.stderr


def test_kubectl_validates_the_items_of_a_list_before_it_sends_them(space: Kubectl) -> None:
    manifest = deployment("listed", replicas=0)
    manifest["spec"]["replica"] = 1
    done = space.run("apply", "-f", "-", stdin=text(config_map("listed"), manifest))
    assert done.returncode == 1
    assert 'unknown field "replica" in io.k8s.api.' in done.stderr
    assert space.run("get", "configmap", "listed").returncode == 1
    exported = space("get", "configmaps", "-o", "yaml")
    space("apply", "--dry-run=server", "-f", "-", stdin=exported)
