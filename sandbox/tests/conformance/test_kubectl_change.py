"""kubectl create, run, label, annotate, patch, edit, delete and wait."""

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from conformance.manifests import config_map, deployment, text
from support.kubectl import Kubectl
from support.polling import eventually


def test_create_with_a_taken_name_fails(space: Kubectl) -> None:
    assert space("create", "configmap", "made", "--from-literal=a=1") == "configmap/made created\n"
    again = space.run("create", "configmap", "made", "--from-literal=a=1")
    assert again.stderr == 'error: failed to create configmap: configmaps "made" already exists\n'


def test_generated_name_is_the_prefix_and_five_characters(space: Kubectl) -> None:
    manifest = config_map("")
    manifest["metadata"] = {"generateName": "many-"}
    names = {space("create", "-o", "name", "-f", "-", stdin=text(manifest)) for _ in range(2)}
    assert len(names) == 2
    assert all(len(name.strip()) == len("configmap/many-") + 5 for name in names)


@pytest.mark.parametrize(
    "arguments",
    [
        "deployment made --image=busybox --replicas=0",
        "secret generic made --from-literal=a=b",
        "serviceaccount made",
        "service clusterip made --tcp=80:80",
        "role made --verb=get --resource=pods",
        "rolebinding made --role=made --serviceaccount=default:made",
        "quota made --hard=pods=100",
        "poddisruptionbudget made --selector=app=made --min-available=1",
        "job made --image=busybox",
        "ingress made --rule=host/path=made:80",
        "priorityclass made-here --value=10",
    ],
)
def test_create_works_for_each_kind(space: Kubectl, arguments: str) -> None:
    kind, _, rest = arguments.partition(" ")
    name = rest.removeprefix("generic ").removeprefix("clusterip ").split()[0]
    space("create", *arguments.split())
    resource = kind if kind != "quota" else "resourcequota"
    assert space("get", resource, name, "-o", "name").endswith(f"/{name}\n")
    space("delete", resource, name)


def test_run_starts_a_pod_and_delete_removes_it(space: Kubectl) -> None:
    assert space("run", "one", "--image=busybox") == "pod/one created\n"
    space.wait("pod/one", "condition=Ready")
    assert space("delete", "pod", "one", "--grace-period=1").startswith('pod "one" deleted')
    assert space.run("get", "pod", "one").returncode == 1


def test_label_and_annotate_set_overwrite_and_remove_values(space: Kubectl) -> None:
    space("create", "-f", "-", stdin=text(config_map("tagged")))
    for verb, field in (("label", "labels"), ("annotate", "annotations")):
        space(verb, "configmap", "tagged", "x=1", "example.com/y=2")
        refused = space.run(verb, "configmap", "tagged", "x=2")
        assert "'x' already has a value (1)" in refused.stderr
        space(verb, "configmap", "tagged", "x=2", "--overwrite")
        assert space.json("configmap", "tagged")["metadata"][field] == {"x": "2", "example.com/y": "2"}
        space(verb, "configmap", "tagged", "x-", "example.com/y-")
        assert field not in space.json("configmap", "tagged")["metadata"]
    wrong = space.run("label", "configmap", "tagged", "x=-")
    assert "a valid label must be an empty string or consist of alphanumeric characters" in wrong.stderr


@pytest.mark.parametrize(
    ("type_", "patch", "containers"),
    [
        ("strategic", [{"name": "main", "tty": True}], [("main", "busybox", True)]),
        ("strategic", [{"name": "side", "image": "x"}], [("side", "x", None), ("main", "busybox", None)]),
        ("merge", [{"name": "other", "image": "x"}], [("other", "x", None)]),
    ],
)
def test_strategic_patch_merges_lists_and_merge_patch_replaces_them(
    space: Kubectl, type_: str, patch: list[object], containers: list[object]
) -> None:
    space("apply", "-f", "-", stdin=text(deployment("patched", replicas=0)))
    body = json.dumps({"spec": {"template": {"spec": {"containers": patch}}}})
    out = space("patch", "deployment", "patched", f"--type={type_}", "-p", body, "--dry-run=server", "-o", "json")
    result = json.loads(out)["spec"]["template"]["spec"]["containers"]
    assert [(one["name"], one["image"], one.get("tty")) for one in result] == containers


def test_json_patch_applies_operations_and_fails_on_a_failed_test(space: Kubectl) -> None:
    space("create", "-f", "-", stdin=text(config_map("pointed", annotations={"a/b": "1"})))
    space(
        "patch", "configmap", "pointed", "--type=json", "-p",
        '[{"op":"test","path":"/data/a","value":"1"},{"op":"replace","path":"/metadata/annotations/a~1b","value":"2"},'
        '{"op":"add","path":"/data/c","value":"3"},{"op":"remove","path":"/data/a"}]',
    )  # fmt: skip
    live = space.json("configmap", "pointed")
    assert (live["data"], live["metadata"]["annotations"]) == ({"c": "3"}, {"a/b": "2"})
    failed = space.run(
        "patch", "configmap", "pointed", "--type=json", "-p", '[{"op":"test","path":"/data/c","value":"9"}]'
    )
    assert failed.returncode == 1
    assert "The request is invalid: the server rejected our request due to an error in our request" in failed.stderr
    missing = space.run("patch", "configmap", "pointed", "--type=json", "-p", '[{"op":"remove","path":"/data/zz"}]')
    assert missing.returncode == 1


def test_patch_without_effect_reports_no_change(space: Kubectl) -> None:
    space("create", "-f", "-", stdin=text(config_map("calm")))
    before = space.json("configmap", "calm")["metadata"]["resourceVersion"]
    assert space("patch", "configmap", "calm", "-p", '{"data":{"a":"1"}}') == "configmap/calm patched (no change)\n"
    assert space.json("configmap", "calm")["metadata"]["resourceVersion"] == before


def test_subresources_are_patched_separately(space: Kubectl) -> None:
    space("apply", "-f", "-", stdin=text(deployment("parts", replicas=0, paused=True)))
    space("patch", "deployment", "parts", "--subresource=scale", "--type=merge", "-p", '{"spec":{"replicas":1}}')
    assert space.json("deployment", "parts")["spec"]["replicas"] == 1
    body = '{"spec":{"replicas":7},"status":{"conditions":[{"type":"Mine","status":"True"}]}}'
    space("patch", "deployment", "parts", "--subresource=status", "-p", body)
    assert space.json("deployment", "parts")["spec"]["replicas"] == 1
    scale = json.loads(space("get", "deployment", "parts", "--subresource=scale", "-o", "json"))
    assert (scale["kind"], scale["spec"]["replicas"]) == ("Scale", 1)


def test_edit_stores_what_the_editor_wrote(space: Kubectl, tmp_path: Path) -> None:
    space("create", "-f", "-", stdin=text(config_map("edited")))
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i \'s/a: "1"/a: "2"/\' "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    done = subprocess.run(
        ["kubectl", "--kubeconfig", str(space.kubeconfig), "-n", space.namespace, "edit", "configmap", "edited"],
        env={**os.environ, "KUBE_EDITOR": str(editor)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "configmap/edited edited\n"), done.stderr
    assert space.json("configmap", "edited")["data"] == {"a": "2"}


def test_object_with_a_finalizer_is_removed_after_the_finalizer(space: Kubectl) -> None:
    space("create", "-f", "-", stdin=text(config_map("held", finalizers=["example.com/hold"])))
    space("delete", "configmap", "held", "--wait=false")
    metadata = space.json("configmap", "held")["metadata"]
    assert metadata["deletionTimestamp"]
    assert metadata["deletionGracePeriodSeconds"] == 0
    body = '{"metadata":{"finalizers":["a.b/c","d.e/f"]}}'
    added = space.run("patch", "configmap", "held", "--type=merge", "-p", body)
    assert "Forbidden: no new finalizers can be added if the object is being deleted" in added.stderr
    space("patch", "configmap", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    space.wait("configmap/held", "delete")


def owned_pod_names(space: Kubectl, name: str) -> list[str]:
    return space("get", "replicasets,pods", "-l", f"app={name}", "-o", "name").split()


def started(space: Kubectl, name: str) -> None:
    space("apply", "-f", "-", stdin=text(deployment(name)))
    space("rollout", "status", f"deployment/{name}")
    assert len(owned_pod_names(space, name)) == 2


def test_background_delete_removes_the_dependents_later(space: Kubectl) -> None:
    started(space, "background")
    space("delete", "deployment", "background")
    eventually(lambda: not owned_pod_names(space, "background"), "the dependents to be deleted")


def test_foreground_delete_removes_the_dependents_first(space: Kubectl) -> None:
    started(space, "foreground")
    space("delete", "deployment", "foreground", "--cascade=foreground")
    assert owned_pod_names(space, "foreground") == []


def test_orphaned_dependents_stay_and_are_adopted(space: Kubectl) -> None:
    started(space, "orphan")
    left = owned_pod_names(space, "orphan")
    space("delete", "deployment", "orphan", "--cascade=orphan")
    replica_set = next(name for name in left if name.startswith("replicaset"))
    assert owned_pod_names(space, "orphan") == left
    assert "ownerReferences" not in space.json(replica_set)["metadata"]
    space("apply", "-f", "-", stdin=text(deployment("orphan")))
    space("rollout", "status", "deployment/orphan")
    assert owned_pod_names(space, "orphan") == left
    assert space.json(replica_set)["metadata"]["ownerReferences"][0]["name"] == "orphan"


def test_wait_supports_conditions_json_paths_deletion_and_timeouts(space: Kubectl) -> None:
    space("apply", "-f", "-", stdin=text(deployment("awaited")))
    space.wait("deployment/awaited", "condition=Available")
    space.wait("deployment/awaited", "jsonpath={.status.readyReplicas}=1")
    late = space.run("wait", "--for=condition=Nope", "deployment/awaited", "--timeout=0s")
    assert late.returncode == 1
    space("delete", "deployment", "awaited", "--wait=false")
    space.wait("deployment/awaited", "delete")


def test_delete_works_by_label_with_ignore_not_found_and_in_dry_run(space: Kubectl) -> None:
    for name in ("d1", "d2"):
        space("create", "-f", "-", stdin=text(config_map(name, labels={"go": name})))
    space("delete", "configmaps", "-l", "go=d1")
    assert "configmap/d2" in space("get", "configmaps", "-l", "go", "-o", "name")
    assert 'configmaps "d1" not found' in space.run("delete", "configmap", "d1").stderr
    assert space("delete", "configmap", "d1", "--ignore-not-found") == ""
    space("delete", "configmap", "d2", "--dry-run=server")
    assert space("get", "configmap", "d2", "-o", "name") == "configmap/d2\n"


def test_delete_of_a_namespace_deletes_its_content(space: Kubectl) -> None:
    other = Kubectl(space.kubeconfig, f"{space.namespace}-gone")
    other("create", "namespace", other.namespace)
    other("apply", "-f", "-", stdin=text(config_map("inside"), deployment("inside")))
    other("delete", "namespace", other.namespace)
    assert (
        f'namespaces "{other.namespace}" not found'
        in other.run("create", "configmap", "late", "--from-literal=a=b").stderr
    )
