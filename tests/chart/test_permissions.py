"""AlterShield's processes with the arguments, the service account and the permissions of the chart."""

import asyncio
import functools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from altershield.api import deletion_protection
from altershield.api.names import SYSTEM_NAMESPACE, change_pod_number, service_account_user
from altershield.api.resources import (
    DEFENSE_POLICIES,
    FIELD_GUARDS,
    POD_DELETION_FLOW_CONTROLS,
    RELEASE_FREEZES,
    RELEASE_LIMITS,
    RELEASE_OVERRIDES,
    RELEASE_WINDOWS,
)
from altershield.workloads import ADAPTERS
from command.demo.steps import STEPS
from command.demo.story import Story
from kube_base.access.client import Client
from reconciler.releases.findings.verification import KEPT_BATCHES
from tests.chart.governed import governed, is_stamped, label
from tests.chart.pod import pod_of, point_webhooks_here, wait_until_ready
from tests.chart.recorder import Recorder, Request, request
from tests.chart.release import Release, owners
from tests.chart.rendering import RELEASE, Object, flat
from tests.e2e.sleep import SLEEP, sleep
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chart")]

START_TIMEOUT = 8

KINDS = {(adapter.resource.group, adapter.resource.plural) for adapter in ADAPTERS}

NEVER_ASKED = {
    # checked by the admission plugin OwnerReferencesPermissionEnforcement, not requested
    *(("update", group, f"{plural}/finalizers") for group, plural in KINDS),
    ("update", "app.ops.cloud.alipay.com", "changeworkloads/finalizers"),
    # checked by the same plugin when an owner is set; requested when the namespace is deleted (test_another_namespace)
    ("delete", "admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("delete", "admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    # of old pods of a DaemonSet that is released in steps (tests/e2e/test_steps_of_kinds.py)
    ("create", "", "pods/eviction"),
    # by a fuse (tests/e2e/test_limits.py)
    ("create", "app.ops.cloud.alipay.com", "releasefreezes"),
    ("get", "app.ops.cloud.alipay.com", "releasefreezes"),
    # after a conflict of two gatekeepers
    ("get", "app.ops.cloud.alipay.com", "releaseoverrides"),
    # to read why a pod's containers cannot be created, which does not happen on simulated nodes
    ("list", "", "events"),
    # when an Event about a limit of a PodDeletionFlowControl happens again
    ("patch", "", "events"),
    # when the history of a workload has more versions than its limit
    ("delete", "apps", "controllerrevisions"),
    # after a creation that the API server did not answer; for a ChangePod also before the verdict of a callback
    ("get", "app.ops.cloud.alipay.com", "changeworkloads"),
    ("get", "app.ops.cloud.alipay.com", "changepods"),
    # after a conflict, and before a disruption that no gatekeeper was asked about is reported
    ("get", "app.ops.cloud.alipay.com", "podunavailablebudgets"),
    # after a conflict of two writers
    ("get", "app.ops.cloud.alipay.com", "poddeletionflowcontrols"),
}


@pytest.fixture(scope="module")
def system(has_kubectl: None, cluster: Path) -> Kubectl:
    return Kubectl(cluster, SYSTEM_NAMESPACE)


@pytest.fixture(scope="module")
def release(cluster: Path) -> Iterator[Release]:
    release = Release(cluster)
    yield release
    release.uninstall()


@pytest.fixture(scope="module")
def recorder(release: Release, system: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorder]:
    """Install the release, run its processes, and record their requests to the API server."""
    directory = tmp_path_factory.mktemp("processes")
    for left in ("opsconfiginfoes", "leases"):  # of an earlier release
        system.run("delete", left, "--all")
    reconciler = {"startTimeoutSeconds": START_TIMEOUT, "batchWaitSeconds": 2}
    release.install({"reconciler": reconciler, "checks": {"jobs": {"enabled": True}, "logs": {"enabled": True}}})
    # certgen must replace a Secret of this name, whatever it contains
    immutable = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{RELEASE}-tls"}, "immutable": True}
    system("create", "-f", "-", stdin=json.dumps(immutable))
    deployment = system.json("deployment", RELEASE)
    system("delete", "deployment", RELEASE)  # simulated nodes run no processes
    with pod_of(system, deployment, directory) as pod:
        point_webhooks_here(system, pod.ports["webhook"])
        wait_until_ready(pod.ports, "gatekeeper", "reconciler")
        yield pod.recorder


async def test_processes_need_every_granted_permission_and_no_other(
    recorder: Recorder, system: Kubectl, cluster: Path
) -> None:
    others = {
        "altershield-permissions": replace_pods_until_change_pods_are_deleted,
        "altershield-ungated": release_without_a_gatekeeper,
        "altershield-sets": roll_back_what_has_no_replica_sets,
        "altershield-jobs": check_a_release_with_a_job,
        "altershield-logs": check_a_release_by_its_logs,
        "altershield-budgets": follow_annotations,
        "altershield-protected": delete_an_empty_namespace,
    }
    async with await Client.connect(str(cluster)) as client, asyncio.TaskGroup() as at_once:
        for namespace, act in others.items():
            at_once.create_task(asyncio.to_thread(act, Kubectl(cluster, namespace)))
        story = Story(client, START_TIMEOUT)
        async with story.watching():
            for step in STEPS:
                await step.run(story)
    reject_a_setting_twice(system)
    accept_a_policy(system)
    accept_gates(system)
    confirm_a_deletion(system)

    granted = {"ClusterRole": system.json("clusterrole", RELEASE), "Role": system.json("role", RELEASE)}
    assert recorder.forbidden == [], "permissions that are needed, but not granted"
    unused = set()
    for kind, role in granted.items():
        for rule in role["rules"]:
            names = set(rule.get("resourceNames", ()))
            for verb, group, resource in flat(rule):
                alike = KINDS if (group, resource) in KINDS else {(group, resource)}  # all kinds have the same rule
                # with streamed lists, a watch replaces the list; older API servers need the permission to list
                verbs = {verb, "watch"} if verb == "list" else {verb}
                used = any(
                    each.verb in verbs
                    and (each.group, each.resource) in alike
                    and (not names or each.name in names)
                    and (kind == "ClusterRole" or each.namespace == SYSTEM_NAMESPACE)
                    for each in recorder.asked
                )
                if not used and (verb, group, resource) not in NEVER_ASKED:
                    unused.add((kind, verb, group, resource))
    assert unused == set(), "permissions that are granted, but not needed"


def reject_a_setting_twice(system: Kubectl) -> None:
    """Each rejection has an Event. Two with the same message in the same second would have one."""
    for content, accepted in (("many", "False"), ("10", "True"), ("several", "False"), ("10", "True")):
        patch = json.dumps({"spec": {"content": content, "enable": True}})
        system("patch", "opsconfiginfo", "branch", "--type=merge", "-p", patch)
        system.wait("opsconfiginfo/branch", f'jsonpath={{.status.conditions[?(@.type=="Accepted")].status}}={accepted}')
    system("patch", "opsconfiginfo", "branch", "--type=merge", "-p", '{"spec":{"enable":false}}')

    def raised() -> bool:
        return len(system.json("events", "--field-selector", "reason=SettingRejected")["items"]) >= 2

    eventually(raised, "the Event of the second rejection")


def accept_a_policy(system: Kubectl) -> None:
    """The reconciler writes the status of each DefensePolicy."""
    policy = {
        "apiVersion": DEFENSE_POLICIES.api_version,
        "kind": DEFENSE_POLICIES.kind,
        "metadata": {"name": "standard"},
        "spec": {},
    }
    system("create", "-f", "-", stdin=json.dumps(policy))
    try:
        system.wait("defensepolicy/standard", "condition=Accepted")
    finally:
        system("delete", "defensepolicy", "standard")


def accept_gates(system: Kubectl) -> None:
    """The reconciler writes the status of each gate and of each override."""
    target = {"kind": "Deployment", "name": "web"}
    user = kubectl_user(system)
    specs = {
        RELEASE_WINDOWS: {"type": "Deny", "schedules": [{"weekly": {"days": ["Sat", "Sun"]}}]},
        RELEASE_FREEZES: {"reason": "an incident", "requestedBy": user},
        FIELD_GUARDS: {"rules": [{"name": "images", "paths": ["spec.containers[*].image"]}]},
        RELEASE_LIMITS: {"concurrent": 5},
        RELEASE_OVERRIDES: {"reason": "an emergency", "requestedBy": user, "target": target, "gates": ["Freeze"]},
    }
    for resource, spec in specs.items():
        name = f"{resource.kind.lower()}/accepted"
        head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "accepted"}}
        system("create", "-f", "-", stdin=json.dumps({**head, "spec": spec}))
        try:
            system.wait(name, "jsonpath={.status.observedGeneration}=1")
        finally:
            system("delete", name)


def kubectl_user(system: Kubectl) -> str:
    return str(json.loads(system("auth", "whoami", "-o", "json"))["status"]["userInfo"]["username"])


def confirm_a_deletion(system: Kubectl) -> None:
    """The reconciler asks for the pod of each deletion that a PodDeletionFlowControl counted."""
    policy = {
        "apiVersion": POD_DELETION_FLOW_CONTROLS.api_version,
        "kind": POD_DELETION_FLOW_CONTROLS.kind,
        "metadata": {"name": "guard"},
        "spec": {"limitRules": [{"interval": "1h", "limit": 1000}]},
    }
    pending = {"gone": {"namespace": "default", "name": "gone", "time": "2027-01-15T08:00:00Z"}}
    system("create", "-f", "-", stdin=json.dumps(policy))
    try:
        patch = json.dumps({"status": {"pending": pending}})
        # gatekeepers write this; an admission policy refuses it to others
        gatekeeper = (f"--as={service_account_user()}", "--as-group=system:masters")
        status = ("--subresource=status", "--type=merge", "-p", patch)
        system("patch", "poddeletionflowcontrol", "guard", *status, *gatekeeper)
        eventually(
            lambda: "pending" not in system.json("poddeletionflowcontrol", "guard")["status"],
            "the deletion to be settled",
        )
    finally:
        system("delete", "poddeletionflowcontrol", "guard")


def replace_pods_until_change_pods_are_deleted(kubectl: Kubectl) -> None:
    """The reconciler keeps only a limited number of ChangePods of deleted pods."""
    with governed(kubectl):
        kubectl("apply", "-f", "-", stdin=SLEEP)
        for number in range(5, KEPT_BATCHES + 6, 5):
            eventually(functools.partial(has_change_pod, kubectl, number), f"ChangePod {number}")
            kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
        eventually(lambda: not has_change_pod(kubectl, 1), "the oldest ChangePod to be deleted")


def release_without_a_gatekeeper(kubectl: Kubectl) -> None:
    """A release from a time when the namespace was not governed gets its version later."""
    with governed(kubectl):
        kubectl("apply", "-f", "-", stdin=SLEEP)
        eventually(functools.partial(has_change_pod, kubectl, 1), "the first ChangePod")
        kubectl("label", "namespace", kubectl.namespace, "admission-webhook-altershield-")
        eventually(lambda: not is_stamped(kubectl), "the namespace not to be governed")
        kubectl("set", "image", "deployment/sleep", "sleep=busybox:2")
        label(kubectl)
        listed = ("events", "--field-selector", "reason=UngatedRelease")
        eventually(lambda: kubectl.json(*listed)["items"], "the Event about the ungated release")
        version = "admission-webhook-altershield.antgroup.com/version"
        eventually(lambda: len({rs["metadata"]["labels"][version] for rs in replica_sets(kubectl)}) == 2, "its version")


def roll_back_what_has_no_replica_sets(kubectl: Kubectl) -> None:
    """A StatefulSet's pod that never comes up blocks the rollback, so the reconciler must delete it."""
    with governed(kubectl):
        kubectl("apply", "-f", "-", stdin=sleep(kind="StatefulSet", serviceName="sleep"))

        def succeeded() -> bool:
            return [each.get("status", {}).get("status") for each in kubectl.json("changeworkloads")["items"]] == [
                "Success"
            ]

        eventually(succeeded, "the first release to succeed")
        kubectl("set", "image", "statefulset/sleep", "sleep=busybo")
        listed = ("events", "--field-selector", "reason=RolledBack")
        eventually(lambda: kubectl.json(*listed)["items"], "the release to be rolled back")
        kubectl("rollout", "status", "statefulset/sleep")


def check_a_release_with_a_job(kubectl: Kubectl) -> None:
    """The reconciler creates the Job, reads it, and deletes it."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "smoke", "image": "busybox:completes-after-500ms"}]}
    check = {"name": "smoke", "onUnknown": "fail", "job": {"template": {"spec": {"template": {"spec": pod}}}}}
    policy = {
        "apiVersion": DEFENSE_POLICIES.api_version,
        "kind": DEFENSE_POLICIES.kind,
        "metadata": {"name": "smoke"},
        "spec": {"checks": [check]},
    }
    with governed(kubectl):
        kubectl("create", "-f", "-", stdin=json.dumps(policy))
        kubectl.wait("defensepolicy/smoke", "condition=Accepted")
        kubectl("apply", "-f", "-", stdin=sleep(replicas=1))
        eventually(lambda: kubectl.json("changeworkloads")["items"], "the ChangeWorkload")
        (found,) = kubectl.json("changeworkloads")["items"]
        kubectl.wait(f"changeworkload/{found['metadata']['name']}", "jsonpath={.status.status}=Success")
        eventually(lambda: not kubectl.json("jobs")["items"], "the Job to be deleted")


def check_a_release_by_its_logs(kubectl: Kubectl) -> None:
    """The reconciler reads the logs of the new pod."""
    policy = {
        "apiVersion": DEFENSE_POLICIES.api_version,
        "kind": DEFENSE_POLICIES.kind,
        "metadata": {"name": "logs"},
        "spec": {"checks": [{"name": "logs", "onUnknown": "fail", "logs": {"pattern": "panic"}}]},
    }
    with governed(kubectl):
        kubectl("create", "-f", "-", stdin=json.dumps(policy))
        kubectl.wait("defensepolicy/logs", "condition=Accepted")
        kubectl("apply", "-f", "-", stdin=sleep(replicas=1))
        eventually(lambda: kubectl.json("changeworkloads")["items"], "the ChangeWorkload")
        (found,) = kubectl.json("changeworkloads")["items"]
        kubectl.wait(f"changeworkload/{found['metadata']['name']}", "jsonpath={.status.status}=Success")


def follow_annotations(kubectl: Kubectl) -> None:
    """The reconciler makes the budgets that annotations ask for, changes them, and deletes them."""
    sorts = {"pub": "podunavailablebudgets.app.ops.cloud.alipay.com", "pdb": "poddisruptionbudgets.policy"}

    def amounts() -> list[list[object]]:
        listed = [kubectl.json(resource)["items"] for resource in sorts.values()]
        return [[each["spec"].get("maxUnavailable") for each in found] for found in listed]

    def counted() -> bool:
        """Whether the reconciler has written the status of each budget, which has zeros before that."""
        return all(each["status"].get("observedGeneration") for each in kubectl.json(sorts["pub"])["items"])

    with governed(kubectl):
        kubectl("apply", "-f", "-", stdin=sleep())
        for value, wanted in (("1", [[1], [1]]), ("2", [[2], [2]]), ("many", [[], []])):
            for sort in sorts:
                asked = f"policy.kruise.io/generate-{sort}"
                kubectl(
                    "annotate", "--overwrite", "deployment/sleep", f"{asked}=true", f"{asked}-maxUnavailable={value}"
                )
            eventually(functools.partial(lambda wanted: amounts() == wanted, wanted), f"the budgets {wanted}")
            eventually(counted, "the status of the budgets")


def delete_an_empty_namespace(kubectl: Kubectl) -> None:
    """The gatekeeper lists pods and claims before a protected Namespace is deleted."""
    kubectl("create", "namespace", kubectl.namespace)
    kubectl("label", "namespace", kubectl.namespace, f"{deletion_protection.LABEL}=Cascading")
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")


def replica_sets(kubectl: Kubectl) -> list[Object]:
    found: list[Object] = kubectl.json("replicasets")["items"]
    return found


def has_change_pod(kubectl: Kubectl, number: int) -> bool:
    return number in [change_pod_number(each["metadata"]["name"]) for each in kubectl.json("changepods")["items"]]


def test_webhooks_and_secret_are_deleted_with_the_cluster_role(recorder: Recorder, system: Kubectl) -> None:
    """A GitOps tool deletes the objects that it applied, in its own order. It runs no hooks, and leaves objects that
    have an owner."""
    owned = ("mutatingwebhookconfiguration/altershield", "validatingwebhookconfiguration/altershield")
    for each in (*owned, f"secret/{RELEASE}-tls"):
        eventually(functools.partial(owners, system, each), f"{each} to be owned")
    system("delete", "clusterrole", RELEASE)
    for each in (*owned, f"secret/{RELEASE}-tls"):
        system.wait(each, "delete")


def test_recorder_translates_http_requests_to_rbac_attributes() -> None:
    group = "apis/apps/v1"
    assert request("GET", f"/{group}/deployments", "watch=true") == Request("watch", "apps", "deployments", "", "")
    assert request("PATCH", f"/{group}/namespaces/a/deployments/b/status", "") == Request(
        "patch", "apps", "deployments/status", "a", "b"
    )
    assert request("GET", "/api/v1/namespaces/a/secrets", "fieldSelector=metadata.name%3Db") == Request(
        "list", "", "secrets", "a", "b"
    )
    assert request("GET", "/api/v1/namespaces/a", "") == Request("get", "", "namespaces", "", "a")
    assert request("GET", "/healthz", "") is None
