"""Releases in steps of which AlterShield lets go in the middle."""

import functools
import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from altershield.api.annotations import ROLLOUT
from altershield.api.labels import GOVERNED
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.ops_config import DEFAULTS
from altershield.api.resources import API_VERSION
from tests.e2e import held_kinds
from tests.e2e.conftest import govern
from tests.e2e.held_releases import apply, pods_by_version, policy, reach, rollout, state, without_template
from tests.e2e.kinds import DAEMON_SET, DEPLOYMENT, ORDERED
from tests.e2e.own_installation import installation
from tests.e2e.sleep import VERSION, release, sleep
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually
from tests.support.processes import command, python, wait_for_line


@pytest.fixture
def held(kubectl: Kubectl) -> tuple[Json, str]:
    """A release that is held at its first step: the workload before it, and its version."""
    release(kubectl, sleep(replicas=4))
    before = kubectl.json("deployment", "sleep")
    policy(kubectl, {"pods": [1], "soakSeconds": 600})
    version = apply(kubectl, sleep(image="other", replicas=4))
    reach(kubectl, version, 1, "Soaking")
    return before, version


@pytest.fixture
def system(kubectl: Kubectl) -> Iterator[Kubectl]:
    """The system namespace, without the setting `rollout` after the test."""
    found = Kubectl(kubectl.kubeconfig, SYSTEM_NAMESPACE)
    yield found
    found("delete", "opsconfiginfo", "rollout", "--ignore-not-found")


def is_restored(kubectl: Kubectl, before: Json) -> bool:
    """Whether the fields and their managers are those of before."""
    found = kubectl.json("deployment", "sleep", "--show-managed-fields")
    return without_template(found) == without_template(before) and not any(
        entry["manager"] == "altershield" and "f:strategy" in str(entry) for entry in found["metadata"]["managedFields"]
    )


def test_setting_rollout_off_ends_the_hold_and_the_release_is_verified(
    kubectl: Kubectl,
    held: tuple[Json, str],
    system: Kubectl,
) -> None:
    before, version = held
    spec = {**msgspec.to_builtins(DEFAULTS["rollout"]), "enable": False}
    made = {"apiVersion": API_VERSION, "kind": "OpsConfigInfo", "metadata": {"name": "rollout"}, "spec": spec}
    system("apply", "-f", "-", stdin=json.dumps(made))
    seen = functools.partial(system.json, "opsconfiginfo", "rollout")
    eventually(lambda: seen().get("status", {}).get("enable") is False, "the reconciler to see the setting")
    kubectl.wait(f"changeworkload/sleep--x--{version}", "jsonpath={.status.status}=Success")
    eventually(lambda: is_restored(kubectl, before), "the user's own fields")
    assert pods_by_version(kubectl) == {version: 4}
    events = [each for each in kubectl.json("events")["items"] if each["reason"] == "StepsEscaped"]
    assert "the setting `rollout` is off" in events[0]["message"]
    kubectl.apply(sleep(image="third", replicas=4))  # held by nothing now
    third = kubectl.labels("deployment", "sleep")[VERSION]
    kubectl.wait(f"changeworkload/sleep--x--{third}", "create")
    kubectl.wait(f"changeworkload/sleep--x--{third}", "jsonpath={.status.status}=Success")
    assert not rollout(kubectl, third).get("phase")


def test_namespace_that_is_not_governed_any_more_gets_the_fields_back(kubectl: Kubectl, held: tuple[Json, str]) -> None:
    before, version = held
    kubectl("label", "namespace", kubectl.namespace, f"{GOVERNED}-")
    eventually(lambda: is_restored(kubectl, before), "the user's own fields")
    eventually(lambda: pods_by_version(kubectl) == {version: 4}, "the new version everywhere")


def test_policy_that_is_deleted_changes_nothing_of_the_release(kubectl: Kubectl, held: tuple[Json, str]) -> None:
    before, version = held
    kubectl("delete", "defensepolicy", "steps")
    kubectl("annotate", "deployment", "sleep", "note=1")
    assert (rollout(kubectl, version)["step"], pods_by_version(kubectl)[version]) == (1, 1)
    kubectl(
        "patch", "changeworkload", f"sleep--x--{version}", "--subresource=status", "--type=merge",
        "-p", '{"status":{"request":{"verb":"Promote","by":"kubernetes-admin","reason":"tested"}}}',
    )  # fmt: skip
    kubectl.wait(f"changeworkload/sleep--x--{version}", "jsonpath={.status.status}=Success")
    assert state(kubectl, version) == "Success"
    eventually(lambda: is_restored(kubectl, before), "the user's own fields")


def test_uninstall_ends_the_hold_first(
    kubectl: Kubectl, held: tuple[Json, str], system: Kubectl, cluster: Path
) -> None:
    before, _ = held
    done = python("command", "uninstall", "--only-holds", "--kubeconfig", str(cluster))
    assert done.returncode == 0, done.stderr
    assert f"ended the hold of Deployment {kubectl.namespace}/sleep" in done.stdout
    assert is_restored(kubectl, before)


def test_end_of_the_dev_command_leaves_no_hold(tmp_path: Path, has_kubectl: None) -> None:
    kubeconfig, log = tmp_path / "kubeconfig", tmp_path / "log"
    with command("sandbox", "--output", str(kubeconfig), log=tmp_path / "sandbox.log") as sandbox:
        wait_for_line(sandbox, tmp_path / "sandbox.log", "Serving ")
        with command("dev", "--yes", "--kubeconfig", str(kubeconfig), log=log) as process:
            wait_for_line(process, log, "The gatekeeper is ready")
            govern(kubeconfig, ["shop"])
            kubectl = Kubectl(kubeconfig, "shop")
            kubectl.apply(sleep(replicas=4))
            eventually(lambda: len(pods_by_version(kubectl)) == 1, "the pods")
            before = kubectl.json("deployment", "sleep")
            policy(kubectl, {"pods": [1], "soakSeconds": 600})
            version = apply(kubectl, sleep(image="other", replicas=4))
            eventually(lambda: pods_by_version(kubectl).get(version) == 1, "the first pod")
            process.terminate()
            assert process.wait() == 0, log.read_text()
        assert "ended the hold of Deployment shop/sleep" in log.read_text()
        assert is_restored(kubectl, before)
        eventually(lambda: pods_by_version(kubectl) == {version: 4}, "the new version everywhere")
        kubectl("set", "image", "deployment/sleep", "*=third")
        kubectl("rollout", "status", "deployment/sleep", "--timeout=60s")


def test_uninstall_gives_every_kind_its_own_fields_and_releases_are_native_afterwards(
    tmp_path: Path, has_kubectl: None
) -> None:
    kinds = {"one": DEPLOYMENT, "two": ORDERED, "three": DAEMON_SET}
    with installation(tmp_path) as kubeconfig:
        govern(kubeconfig, list(kinds))
        spaces = {name: Kubectl(kubeconfig, name) for name in kinds}
        versions = {name: held_kinds.apply(spaces[name], kind, "busybox") for name, kind in kinds.items()}
        for name, kind in kinds.items():
            held_kinds.succeed(spaces[name], kind, versions[name])
        before = {name: spaces[name].json(kind.resource, "app") for name, kind in kinds.items()}
        for name, kind in kinds.items():
            held_kinds.steps(spaces[name], kind, 1, soak=600)
            held_kinds.reach(spaces[name], kind, held_kinds.apply(spaces[name], kind, "busybox:2"), "Soaking")
        done = python("command", "uninstall", "--yes", "--kubeconfig", str(kubeconfig))
        assert done.returncode == 0, done.stderr
        for name, kind in kinds.items():
            assert f"ended the hold of {kind.kind} {name}/app" in done.stdout
            found = spaces[name].json(kind.resource, "app", "--show-managed-fields")
            assert without_template(found) == without_template(before[name])
            assert ROLLOUT not in json.dumps(found)
            ours = [each for each in found["metadata"]["managedFields"] if each["manager"] == "altershield"]
            assert "trategy" not in json.dumps(ours)
            spaces[name]("set", "image", f"{kind.resource}/app", "main=busybox:3")
            spaces[name]("rollout", "status", f"{kind.resource}/app", "--timeout=60s")
