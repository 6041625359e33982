"""What goes on, waits and fails while no gatekeeper answers, with both values of `failurePolicy`, and how it ends.

API servers find nobody at the address in the webhook configuration, as when all gatekeepers are stopped. Then the old
address is back. The webhooks of releases have `Ignore` all the time; tests/e2e/test_ungated.py is about them.
"""

import contextlib
import functools
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from altershield.admission.registration import Feature
from altershield.admission.webhooks import VALIDATING
from altershield.api.deletion_protection import LABEL, Level
from altershield.api.labels import GOVERNED
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.resources import API_VERSION, GROUP
from command.dev_webhooks import CONFIGURATION
from tests.e2e.conftest import govern
from tests.support import workloads
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually

Policy = Literal["Ignore", "Fail"]

NOBODY = "https://127.0.0.1:1"
WEBHOOKS = f"validatingwebhookconfiguration/{CONFIGURATION}"
OF_RELEASES = {each.name for each in VALIDATING if each.feature == Feature.RELEASES}
KUBELET = ("--as=system:node:lost", "--as-group=system:nodes", "--as-group=system:masters")

both = pytest.mark.parametrize("policy", ["Ignore", "Fail"])


@contextlib.contextmanager
def stopped(kubectl: Kubectl, policy: Policy) -> Iterator[None]:
    """Run the block while no gatekeeper answers. The policy stays until the gatekeepers are back."""
    before = kubectl.json("validatingwebhookconfiguration", CONFIGURATION)["webhooks"]
    during = [
        {
            **each,
            "clientConfig": {**each["clientConfig"], "url": NOBODY + path_of(each)},
            "failurePolicy": "Ignore" if each["name"] in OF_RELEASES else policy,
        }
        for each in before
    ]
    after = [{**each, "clientConfig": old["clientConfig"]} for each, old in zip(during, before, strict=True)]
    frozen(kubectl)
    eventually(lambda: "PodUnavailableBudget held" in asked(kubectl), "the gatekeepers to know the budget")
    try:
        configure(kubectl, during)
        expected = failure("vpod") if policy == "Fail" else "deleted"
        eventually(lambda: expected in asked(kubectl), "the API server to find no gatekeeper")
        yield
        configure(kubectl, after)
        eventually(lambda: "PodUnavailableBudget held" in asked(kubectl), "the gatekeepers to be asked again")
    finally:
        configure(kubectl, before)


def path_of(webhook: Json) -> str:
    return "/" + str(webhook["clientConfig"]["url"]).split("/", 3)[3]


def configure(kubectl: Kubectl, webhooks: list[Json]) -> None:
    patch = [{"op": "replace", "path": "/webhooks", "value": webhooks}]
    kubectl("patch", WEBHOOKS, "--type=json", "-p", json.dumps(patch))


def failure(kind: str) -> str:
    """How kubectl shows that nobody answers."""
    return f'Internal error occurred: failed calling webhook "{kind}.kb.io": failed to call webhook: Post "{NOBODY}'


def frozen(kubectl: Kubectl) -> None:
    """A pod that no budget lets go."""
    application(kubectl, "held", 1)
    kubectl.apply(json.dumps(budget("held")))


def asked(kubectl: Kubectl) -> str:
    """The answer to a dry run of the deletion of this pod."""
    done = kubectl.run("delete", "pod", "-l", "app=held", "--dry-run=server")
    return done.stdout + done.stderr


def budget(name: str) -> Json:
    spec = {"selector": {"matchLabels": {"app": "held"}}, "maxUnavailable": 0}
    return {"apiVersion": API_VERSION, "kind": "PodUnavailableBudget", "metadata": {"name": name}, "spec": spec}


def application(kubectl: Kubectl, name: str, replicas: int) -> None:
    kubectl.apply(json.dumps(workloads.manifest("Deployment", name, "busybox", replicas=replicas)))
    eventually(lambda: len(running(kubectl, name)) == replicas, f"the pods of {name} to be ready")


def pods(kubectl: Kubectl, name: str) -> list[Json]:
    found: list[Json] = kubectl.json("pods", "-l", f"app={name}")["items"]
    return found


def running(kubectl: Kubectl, name: str) -> list[str]:
    """The names of the pods that are ready and not terminating."""
    return [
        each["metadata"]["name"]
        for each in pods(kubectl, name)
        if "deletionTimestamp" not in each["metadata"]
        for condition in each["status"].get("conditions", [])
        if (condition["type"], condition["status"]) == ("Ready", "True")
    ]


def images(kubectl: Kubectl, name: str) -> list[str]:
    return sorted(each["spec"]["containers"][0]["image"] for each in pods(kubectl, name))


def is_replaced(kubectl: Kubectl, name: str, pod: str) -> bool:
    return running(kubectl, name) not in ([], [pod])


@both
def test_drains_and_changes_by_people_pass_or_fail_with_the_name_of_the_webhook(
    kubectl: Kubectl, policy: Policy
) -> None:
    application(kubectl, "web", 2)
    node = pods(kubectl, "web")[0]["spec"]["nodeName"]
    selector = f"--pod-selector=app=web,tier={kubectl.namespace}"
    drain = ("drain", node, "--ignore-daemonsets", "--force", selector)
    for each in running(kubectl, "web"):
        kubectl("label", "pod", each, f"tier={kubectl.namespace}")
    deletion, change = ("delete", "pod", "--wait=false"), ("set", "image")
    try:
        with stopped(kubectl, policy):
            drained = kubectl.run(*drain)
            held = running(kubectl, "held")[0]
            kubectl("annotate", "pod", held, "note=1")
            results = {
                "vpod-eviction": drained,
                "vpod": kubectl.run(*change, f"pod/{held}", "main=busybox:2"),
                "vpodunavailablebudget": kubectl.run("create", "-f", "-", stdin=json.dumps(budget("second"))),
            }
            deleted = kubectl.run(*deletion, held)
            if policy == "Fail":
                for kind, done in results.items():
                    assert failure(kind) in done.stderr, done.stderr
                assert failure("vpod") in deleted.stderr
                assert kubectl.exists("pod", held)
            else:
                assert [done.stderr for done in (results["vpod"], deleted)] == ["", ""]
                assert results["vpodunavailablebudget"].returncode == 0
                assert drained.returncode == 0, drained.stderr
                eventually(lambda: held not in running(kubectl, "held"), "the pod to be deleted")
                kubectl("delete", "podunavailablebudget", "second")
            eventually(lambda: len(running(kubectl, "held")) == 1, "the pod to be replaced")
        kubectl(*drain)
    finally:
        kubectl("uncordon", node)
    eventually(lambda: len(running(kubectl, "web")) == 2, "the drained pods to be replaced")


@both
def test_scale_down_rollout_garbage_collection_and_namespace_deletion_go_on_or_wait(
    kubectl: Kubectl, installed: Path, policy: Policy
) -> None:
    leaving = Kubectl(installed, f"{kubectl.namespace}-leaving")
    govern(installed, [leaving.namespace])
    for each in (kubectl, leaving):
        application(each, "collected", 2)
    for name in ("scaled", "rolled"):
        application(kubectl, name, 3)

    def waiting(name: str) -> list[str]:
        """The controllers of these pods that could not delete one because no gatekeeper answers."""
        events = kubectl.json("events", "--field-selector", "reason=FailedDelete")["items"]
        return [
            each["involvedObject"]["name"]
            for each in events
            if each["involvedObject"]["name"].startswith(f"{name}-") and failure("vpod") in each["message"]
        ]

    def ended() -> bool:
        return (
            len(pods(kubectl, "scaled")) == 1
            and images(kubectl, "rolled") == ["busybox:2"] * 3
            and not pods(kubectl, "collected")
            and not kubectl.exists("namespace", leaving.namespace)
        )

    def content_stays() -> bool:
        conditions = kubectl.json("namespace", leaving.namespace)["status"].get("conditions", [])
        return any(
            each["type"] == "NamespaceDeletionContentFailure" and failure("vpod") in each["message"]
            for each in conditions
        )

    with stopped(kubectl, policy):
        kubectl("scale", "deployment/scaled", "--replicas=1")
        kubectl("set", "image", "deployment/rolled", "main=busybox:2")
        kubectl("delete", "deployment/collected")
        kubectl("delete", "namespace", leaving.namespace, "--wait=false")
        if policy == "Fail":
            eventually(lambda: waiting("scaled") and waiting("rolled"), "the controllers to be refused")
            eventually(content_stays, "the namespace to tell why it stays")
            assert not kubectl.json("replicasets", "-l", "app=collected")["items"]
            assert [len(pods(kubectl, each)) for each in ("scaled", "collected")] == [3, 2]
            # the Deployment controller goes on once more, then it fails while a ReplicaSet has more pods than it shall
            mixed = ["busybox"] * 3 + ["busybox:2"] * 2
            eventually(lambda: images(kubectl, "rolled") == mixed, "new pods, besides the old ones")
            assert len(pods(leaving, "collected")) == 2
        else:
            eventually(ended, "the controllers to end")
            assert not waiting("")
    eventually(ended, "the controllers to end")
    kubectl("rollout", "status", "deployment/rolled")


def definition(plural: str) -> Json:
    """A CustomResourceDefinition that is protected while it has objects. It has none."""
    schema = {"openAPIV3Schema": {"type": "object"}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}", "labels": {LABEL: Level.CASCADING}},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": plural.capitalize()},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


@both
def test_deletion_protection_holds_and_only_cascading_needs_a_gatekeeper(kubectl: Kubectl, policy: Policy) -> None:
    space = Kubectl(kubectl.kubeconfig, f"{kubectl.namespace}-protected")
    space("create", "namespace", space.namespace)
    space("label", "namespace", space.namespace, f"{LABEL}={Level.CASCADING}")
    crd = definition(f"stopped{uuid.uuid4().hex[:8]}")
    kubectl("create", "-f", "-", stdin=json.dumps(crd))
    application(kubectl, "web", 1)
    kubectl("label", "deployment", "web", f"{LABEL}={Level.ALWAYS}")
    with stopped(kubectl, policy):
        refused = kubectl.run("delete", "deployment", "web")
        assert "denied request: forbidden by ResourcesProtectionDeletion" in refused.stderr
        of_crd = ("delete", "customresourcedefinition", crd["metadata"]["name"])
        tried = kubectl.run(*of_crd, "--dry-run=server")
        assert (failure("vcustomresourcedefinition") in tried.stderr) is (policy == "Fail"), tried.stderr
        deletion = ("delete", "namespace", space.namespace, "--wait=false")
        deleted = space.run(*deletion)
        if policy == "Fail":
            assert failure("vnamespace") in deleted.stderr
            space("label", "namespace", space.namespace, f"{LABEL}-")
            space(*deletion)
        else:
            assert deleted.returncode == 0, deleted.stderr
        eventually(lambda: not kubectl.exists("namespace", space.namespace), "the namespace to be deleted")
    kubectl("label", "deployment", "web", f"{LABEL}-")
    kubectl("delete", "deployment", "web")
    judged = kubectl.run(*of_crd)
    assert "forbidden by ResourcesProtectionDeletion" in judged.stderr, "AlterShield may not list its objects"
    kubectl("label", "customresourcedefinition", crd["metadata"]["name"], f"{LABEL}-")
    kubectl(*of_crd)


@both
def test_pods_of_the_system_and_final_deletes_of_kubelets_need_no_gatekeeper(
    kubectl: Kubectl, installed: Path, policy: Policy
) -> None:
    name = f"web-{uuid.uuid4().hex[:8]}"
    spaces = [Kubectl(installed, namespace) for namespace in ("kube-system", SYSTEM_NAMESPACE)]
    lost = {"metadata": {"name": "lost"}, "spec": {"nodeName": "lost", **workloads.template("lost", "busybox")["spec"]}}
    for space in spaces:
        space("label", "namespace", space.namespace, f"{GOVERNED}=enabled", "--overwrite")
        application(space, name, 1)
    try:
        kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "Pod", **lost}))
        kubectl("delete", "pod", "lost", "--wait=false")
        with stopped(kubectl, policy):
            for space in spaces:
                (pod,) = running(space, name)
                space("delete", "pod", pod, "--wait=false")
                eventually(functools.partial(is_replaced, space, name, pod), "the pod to be replaced")
            assert "deletionTimestamp" in kubectl.json("pod", "lost")["metadata"]
            kubectl("delete", "pod", "lost", "--force", "--grace-period=0", *KUBELET)
            assert not kubectl.exists("pod", "lost")
    finally:
        for space in spaces:
            space("delete", "deployment", name)
            space("label", "namespace", space.namespace, f"{GOVERNED}-")
