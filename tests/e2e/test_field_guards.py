"""Fields of pod templates that may not change by accident, on a cluster with a gatekeeper and a reconciler."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from altershield.api.resources import API_VERSION
from altershield.views.gates.reading import dry_apply
from altershield.workloads import BY_KIND
from command.gates.command import EXIT_CLOSED
from kube_base.access.client import Client
from kube_base.resources import DEPLOYMENTS
from tests.docs.pages import ROOT, blocks
from tests.e2e.gates import USER
from tests.e2e.sleep import VERSION, release, sleep, succeed
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually
from tests.support.processes import Run

PAGE = ROOT / "docs" / "release-gates.md"
MEMORY = "spec.containers[*].resources.limits.memory"
FIELD = "spec.containers[sleep].resources.limits.memory"
ARGOCD = ("--server-side", "--force-conflicts", "--field-manager=argocd-controller")


def manifest(memory: str = "64Mi", **options: Any) -> str:
    """The Deployment `sleep` with this limit of memory."""
    found = json.loads(sleep(replicas=1, **options))
    found["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"memory": memory}}
    return json.dumps(found)


def guard(*changes: str, path: str = MEMORY, **rule: Any) -> str:
    rules = [{"name": "memory", "paths": [path], "changes": list(changes), "message": "ask the platform team", **rule}]
    metadata = {"name": "limits"}
    return json.dumps({"apiVersion": API_VERSION, "kind": "FieldGuard", "metadata": metadata, "spec": {"rules": rules}})


def put(kubectl: Kubectl, found: str) -> None:
    """Apply a guard, and wait until it is accepted."""
    kubectl.apply(found)
    kubectl.wait("fieldguard/limits", "condition=Accepted")


def known(kubectl: Kubectl, sent: str, *options: str, denied: bool = True) -> str:
    """Wait until the gatekeepers know that the release of the manifest is denied, or is not. Returns their text."""

    def answer() -> str:
        done = kubectl.run("apply", *options, "--dry-run=server", "-f", "-", stdin=sent)
        return done.stderr if done.returncode else ""

    eventually(lambda: bool(answer()) is denied, "the gatekeepers to know the guard")
    return answer()


def test_a_guarded_field_does_not_change_and_other_fields_do(
    kubectl: Kubectl, altershield: Run, tmp_path: Path
) -> None:
    release(kubectl, manifest())
    put(kubectl, guard("Decreased", "Removed"))
    less = manifest("32Mi")
    dry = known(kubectl, less)
    assert f"deployment sleep may not be released with this change: FieldGuard {kubectl.namespace}/limits" in dry
    assert f"rule memory: {FIELD} decreases from 64Mi to 32Mi: ask the platform team" in dry
    assert kubectl.run("apply", "-f", "-", stdin=less).stderr == dry
    limits = "/spec/template/spec/containers/0/resources/limits"
    removal = json.dumps([{"op": "remove", "path": limits}])
    refused = kubectl.run("patch", "deployment", "sleep", "--type=json", "-p", removal).stderr
    assert f"{FIELD} is removed; it is 64Mi now" in refused
    file = tmp_path / "less.json"
    file.write_text(less)
    assert "decreases" in altershield("gates", "-f", str(file), code=EXIT_CLOSED).stdout
    (row,) = [each for each in altershield("gates").stdout.splitlines() if each.startswith("FieldGuard")]
    assert row.split()[2:5] == ["Guard", "enforce", "by"]
    assert json.loads(altershield("gates", "-o", "json").stdout)["items"][0]["open"] is None
    kubectl("set", "image", "deployment/sleep", "sleep=other")
    kubectl("rollout", "restart", "deployment/sleep")
    kubectl("set", "resources", "deployment/sleep", "--limits=memory=128Mi")
    kubectl.apply(guard("Decreased", action="Warn"))
    known(kubectl, less, denied=False)
    warned = kubectl.run("apply", "-f", "-", stdin=less).stderr
    assert f"Warning: AlterShield: FieldGuard {kubectl.namespace}/limits, rule memory: {FIELD} decreases" in warned


def test_a_wrong_spec_leaves_the_accepted_one_in_force_and_only_altershield_writes_the_status(
    kubectl: Kubectl,
) -> None:
    release(kubectl, manifest())
    put(kubectl, guard("Changed"))
    known(kubectl, manifest("32Mi"))
    kubectl.apply(guard("Changed", path="spec.containers.image"))
    kubectl.wait("fieldguard/limits", "condition=Accepted=False")
    found = kubectl.json("fieldguard", "limits")["status"]
    assert found["conditions"][0]["reason"] == "PathInvalid"
    assert "rule memory: spec.containers.image: containers is a list" in found["conditions"][0]["message"]
    assert found["accepted"]["rules"][0]["paths"] == [MEMORY]
    known(kubectl, manifest("32Mi"))
    for wrong in ("spec.containers[", "containers[*].image", "spec.containers[?(@.name=='x')]"):
        refused = kubectl.run("apply", "-f", "-", stdin=guard("Changed", path=wrong))
        assert "spec.rules[0].paths[0]" in refused.stderr
    status = json.dumps({"status": {"observedGeneration": 7}})
    refused = kubectl.run("patch", "fieldguard", "limits", "--subresource=status", "--type=merge", "-p", status)
    assert "only AlterShield writes the status of fieldguards" in refused.stderr


def test_git_does_not_put_back_what_a_person_has_raised_since(kubectl: Kubectl) -> None:
    put(kubectl, guard("Reverted"))
    git = manifest()
    kubectl("apply", *ARGOCD, "-f", "-", stdin=git)
    first = kubectl.labels("deployment", "sleep")[VERSION]
    succeed(kubectl, first)
    kubectl("set", "resources", "deployment/sleep", "--limits=memory=128Mi")
    second = kubectl.labels("deployment", "sleep")[VERSION]
    succeed(kubectl, second)
    dry = known(kubectl, git, *ARGOCD)
    assert f"{FIELD} is 128Mi now, was 64Mi in the last release by argocd-controller (20" in dry
    assert "and would be 64Mi again: somebody has changed it since" in dry
    assert kubectl.run("apply", *ARGOCD, "-f", "-", stdin=git).stderr == dry
    other = manifest(image="other")
    assert "was 64Mi in the last release" in known(kubectl, other, *ARGOCD)
    raised = manifest("128Mi", image="other")
    kubectl("apply", *ARGOCD, "-f", "-", stdin=raised)
    succeed(kubectl, kubectl.labels("deployment", "sleep")[VERSION])
    known(kubectl, manifest("256Mi"), *ARGOCD, denied=False)


def test_a_guard_that_is_younger_than_the_release_by_git_knows_its_values(kubectl: Kubectl) -> None:
    kubectl("apply", *ARGOCD, "-f", "-", stdin=manifest())
    succeed(kubectl, kubectl.labels("deployment", "sleep")[VERSION])
    put(kubectl, guard("Reverted"))
    kubectl("set", "resources", "deployment/sleep", "--limits=memory=128Mi")
    succeed(kubectl, kubectl.labels("deployment", "sleep")[VERSION])
    assert "was 64Mi in the last release by argocd-controller" in known(kubectl, manifest(), *ARGOCD)


@pytest.mark.parametrize("options", [(), ("--server-side", "--force-conflicts")], ids=["client-side", "server-side"])
def test_gates_foresee_what_the_guard_says_about_kubectl_apply(
    kubectl: Kubectl, altershield: Run, tmp_path: Path, options: tuple[str, ...]
) -> None:
    put(kubectl, guard("Reverted"))
    git, file = manifest(), tmp_path / "git.json"
    file.write_text(git)
    assert "may be released now" in altershield("gates", "-f", str(file)).stdout
    kubectl("apply", *options, "-f", "-", stdin=git)
    succeed(kubectl, kubectl.labels("deployment", "sleep")[VERSION])
    kubectl("set", "resources", "deployment/sleep", "--limits=memory=128Mi")
    succeed(kubectl, kubectl.labels("deployment", "sleep")[VERSION])
    known(kubectl, git, *options)
    asked = altershield("gates", "-f", str(file), "-o", "json", code=EXIT_CLOSED).stdout
    (answer,) = json.loads(asked)["items"]
    refused = kubectl.run("apply", *options, "-f", "-", stdin=git).stderr
    assert f"{FIELD} is 128Mi now, was 64Mi in the last release by {USER} with kubectl" in refused
    assert answer["message"].partition(" denied the request: ")[2] in refused
    file.write_text(manifest("128Mi", image="other"))
    assert "may be released now" in altershield("gates", "-f", str(file)).stdout


CHANGES: dict[str, Any] = {
    "a field that the manifest no longer has": lambda pod: pod["containers"][0].pop("resources"),
    "a variable that the manifest no longer has": lambda pod: pod["containers"][0]["env"].pop(0),
    "a new variable before the others": lambda pod: pod["containers"][0]["env"].insert(0, {"name": "C", "value": "3"}),
    "another order": lambda pod: pod["containers"][0]["env"].reverse(),
    "a container less": lambda pod: pod["containers"].pop(1),
    "another kind of volume": lambda pod: pod.update(volumes=[{"name": "data", "configMap": {"name": "data"}}]),
    "other arguments": lambda pod: pod["containers"][0].update(args=["b", "a"]),
    "nothing": lambda pod: None,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_dry_run_of_gates_makes_of_the_object_what_kubectl_apply_makes_of_it(
    kubectl: Kubectl, client: Client, change: Callable[[Json], object]
) -> None:
    """Also if somebody has changed the object by hand."""
    obj = json.loads(manifest())
    obj["metadata"]["namespace"] = kubectl.namespace
    pod = obj["spec"]["template"]["spec"]
    pod["containers"][0] |= {
        "args": ["a", "b"],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "ports": [{"containerPort": 80}, {"containerPort": 81}],
    }
    pod["containers"].append({"name": "other", "image": "other"})
    pod["volumes"] = [{"name": "data", "emptyDir": {}}]
    kubectl.apply(json.dumps(obj))
    by_hand = [
        {"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": {"name": "HAND", "value": "9"}},
        {
            "op": "replace",
            "path": "/spec/template/spec/volumes/0",
            "value": {"name": "data", "hostPath": {"path": "/"}},
        },
        {"op": "add", "path": "/spec/template/spec/nodeSelector", "value": {"disk": "ssd"}},
        {"op": "replace", "path": "/spec/replicas", "value": 3},
    ]
    kubectl("patch", "deployment", "sleep", "--type=json", "-p", json.dumps(by_hand))
    change(pod)
    made = await dry_apply(client, BY_KIND[DEPLOYMENTS.group_kind], obj, kubectl.namespace)
    applied = json.loads(kubectl("apply", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(obj)))
    assert made["spec"] == applied["spec"]


def test_going_back_on_purpose_is_no_revert(kubectl: Kubectl) -> None:
    put(kubectl, guard("Reverted", "Decreased"))
    kubectl("apply", *ARGOCD, "-f", "-", stdin=manifest())
    first = kubectl.labels("deployment", "sleep")[VERSION]
    succeed(kubectl, first)
    kubectl("set", "resources", "deployment/sleep", "--limits=memory=128Mi")
    succeed(kubectl, kubectl.labels("deployment", "sleep")[VERSION])
    known(kubectl, manifest(), *ARGOCD)
    kubectl("rollout", "undo", "deployment/sleep")
    assert kubectl.labels("deployment", "sleep")[VERSION] == first


def test_recipes_of_the_page_are_accepted_and_deny_what_they_say(kubectl: Kubectl) -> None:
    parts = [
        part
        for block in blocks(PAGE.read_text())
        if block.language == "yaml"
        for part in yaml.safe_load_all(block.text)
    ]
    recipes = {part["metadata"]["name"]: part for part in parts if part["kind"] == "FieldGuard"}
    assert set(recipes) == {"dangerous-fields", "resources"}
    release(kubectl, manifest())
    for name, recipe in recipes.items():
        del recipe["metadata"]["namespace"]
        kubectl.apply(json.dumps(recipe))
        kubectl.wait(f"fieldguard/{name}", "condition=Accepted")
    dangerous = json.loads(manifest())
    dangerous["spec"]["template"]["spec"] |= {
        "hostNetwork": True,
        "volumes": [{"name": "v", "hostPath": {"path": "/"}}],
    }
    assert "rule host: spec.hostNetwork is added: true (and another field)" in known(kubectl, json.dumps(dangerous))
    dangerous["metadata"]["name"] = "created"
    assert "rule host: spec.hostNetwork is added" in known(kubectl, json.dumps(dangerous))
    warned = kubectl.run("apply", "-f", "-", stdin=manifest("32Mi"))
    assert (
        "rule less-memory: spec.containers[sleep].resources.limits.memory decreases from 64Mi to 32Mi" in warned.stderr
    )
    assert warned.returncode == 0


def test_an_override_passes_a_guard(kubectl: Kubectl, altershield: Run) -> None:
    release(kubectl, manifest())
    put(kubectl, guard("Decreased"))
    less = manifest("32Mi")
    known(kubectl, less)
    altershield("override", "deploy/sleep", "--gates", "Field", "--reason", "the memory is not needed")
    known(kubectl, less, denied=False)
    assert "lets this release pass FieldGuard" in kubectl.run("apply", "-f", "-", stdin=less).stderr
