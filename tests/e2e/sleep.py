"""Releases of the Deployment `sleep`, with the commands of the walkthrough."""

import json
from typing import Any

from kube_base.resources import DEPLOYMENTS
from tests.support import workloads
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually

VERSION = "admission-webhook-altershield.antgroup.com/version"
SUSPEND = "altershield.defense.antgroup.com/suspend"
IGNORED_SUSPEND = "altershield.defense.antgroup.com/ignored-suspend"
DEFENSE_STATUS = "altershield.defense.antgroup.com/defense-status"

TEMPLATE_PATCH = '{"spec":{"template":{"metadata":{"labels":{"test":"test"}}}}}'


def sleep(
    name: str = "sleep",
    kind: str = "Deployment",
    *,
    image: str = "busybox",
    seconds: str = "infinity",
    replicas: int = 5,
    **options: Any,
) -> str:
    """The manifest of the walkthrough, in JSON. `options`: more arguments of `workloads.manifest`."""
    container = {"name": "sleep", "command": ["/bin/sleep", seconds], "imagePullPolicy": "IfNotPresent"}
    return json.dumps(workloads.manifest(kind, name, image, replicas=replicas, container=container, **options))


SLEEP = sleep()


def sets_version(kubectl: Kubectl) -> bool:
    """Whether a gatekeeper sets the version of a release."""
    status, found = kubectl.create(DEPLOYMENTS, sleep("probe"), dry_run=True)
    return status == 201 and VERSION in found["metadata"].get("labels", {})


def release(kubectl: Kubectl, manifest: str = SLEEP) -> str:
    """Apply the manifest, wait for Success, and return the version."""
    kubectl.apply(manifest)
    version = kubectl.labels("deployment", "sleep")[VERSION]
    succeed(kubectl, version)
    return version


def succeed(kubectl: Kubectl, version: str) -> None:
    name = f"sleep--x--{version}"
    eventually(lambda: kubectl.exists("changeworkload", name), name)
    kubectl.wait(f"changeworkload/{name}", "jsonpath={.status.status}=Success")


def suspend(kubectl: Kubectl, version: str, pod_number: int = 1) -> Json:
    """Fail a pod as the walkthrough does, and return the pod."""
    name = f"sleep--x--{version}--x--{pod_number}"
    pod: Json = kubectl.json("changepod", name)["spec"]["podInfos"][0]
    result = {**pod, "verdict": "unpass", "message": "find error"}
    patch = json.dumps({"status": {"podResults": [result], "message": "PostFinish"}})
    kubectl("patch", "changepod", "--subresource=status", name, "-p", patch, "--type", "merge")
    kubectl.wait(f"changeworkload/sleep--x--{version}", "jsonpath={.status.status}=Suspend")
    eventually(lambda: SUSPEND in kubectl.labels("deployment", "sleep"), "the suspend label")
    return pod
