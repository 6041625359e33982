"""Releases in steps of any kind of workload, by kubectl."""

import json

import pytest

from tests.e2e import held_releases
from tests.e2e.held_releases import USER
from tests.e2e.kinds import CLONE_SET, CLONE_SET_IN_PLACE, DAEMON_SET, ORDERED, PARALLEL, Kind
from tests.e2e.sleep import VERSION
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually

KINDS = [pytest.param(kind, id=kind.id) for kind in (ORDERED, PARALLEL, DAEMON_SET, CLONE_SET, CLONE_SET_IN_PLACE)]


def apply(kubectl: Kubectl, kind: Kind, image: str, replicas: int = 3, pod: Json | None = None, **spec: object) -> str:
    kubectl.apply(json.dumps(kind.manifest("app", image, replicas=replicas, pod=pod, **spec)))
    return kubectl.labels(kind.resource, "app")[VERSION]


def succeed(kubectl: Kubectl, kind: Kind, version: str) -> Json:
    """Wait for Success, and return the steps."""
    name = kind.change_workload_name("app", version)
    eventually(lambda: kubectl.exists("changeworkload", name), name)
    kubectl.wait(f"changeworkload/{name}", "jsonpath={.status.status}=Success")
    found: Json = kubectl.json("changeworkload", name)["status"].get("rollout", {})
    return found


def reach(kubectl: Kubectl, kind: Kind, version: str, phase: str) -> None:
    """Wait until the release is in this phase."""
    name = kind.change_workload_name("app", version)
    eventually(lambda: kubectl.exists("changeworkload", name), name)
    kubectl.wait(f"changeworkload/{name}", f"jsonpath={{.status.rollout.phase}}={phase}")


def promote(kubectl: Kubectl, kind: Kind, version: str) -> None:
    asked = {"status": {"request": {"verb": "Promote", "by": USER, "reason": "a test"}}}
    name = f"changeworkload/{kind.change_workload_name('app', version)}"
    kubectl("patch", name, "--subresource=status", "--type=merge", "-p", json.dumps(asked))


def steps(kubectl: Kubectl, kind: Kind, *pods: object, soak: int = 2) -> None:
    policy(kubectl, kind, {"pods": [*pods], "soakSeconds": soak})


def policy(kubectl: Kubectl, kind: Kind, rollout: Json) -> None:
    held_releases.policy(kubectl, rollout, probe=json.dumps(kind.manifest("app", "probe", replicas=3)))


def of_version(kubectl: Kubectl, version: str) -> list[str]:
    found = kubectl.json("pods", "-l", f"{VERSION}={version}")["items"]
    return sorted(each["metadata"]["name"] for each in found if not each["metadata"].get("deletionTimestamp"))
