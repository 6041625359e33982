"""`altershield budgets` and `altershield why pod/NAME` about pods with a budget, and what they print."""

import json
import re
import time

import pytest

from altershield.api.budgets import BREAK_GLASS_GROUP
from altershield.api.pages import DENIED
from altershield.api.resources import API_VERSION
from command import main
from command.budgets import EXIT_EXHAUSTED
from command.requests import EXIT_REFUSED
from kube_base.times import rfc3339
from tests.support import workloads
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually
from tests.support.processes import Done, Run, call

REFUSAL = "PodUnavailableBudget web: 3 of 3 pods are available and 3 must be (maxUnavailable 0)"
WAY_OUT = (
    "the budget allows no disruption at all: add pods, or raise maxUnavailable or lower minAvailable: "
    "kubectl edit pub web -n {}"
)
PAGE = f"Warning: AlterShield: this page explains the denial: {DENIED}"
NEVER = "all pods have to be available, so no disruption is ever admitted"


@pytest.fixture
def altershield(kubectl: Kubectl, capsys: pytest.CaptureFixture[str]) -> Run:
    where = (f"--namespace={kubectl.namespace}", f"--kubeconfig={kubectl.kubeconfig}")

    def run(*arguments: str) -> Done:
        return call(main, "altershield", *arguments, *where, capture=capsys)

    return run


def application(kubectl: Kubectl, max_unavailable: int) -> None:
    """A Deployment with three ready pods, and its budget."""
    kubectl.apply(json.dumps(workloads.manifest("Deployment", "web", "busybox", replicas=3)))
    apply_budget(kubectl, max_unavailable)


def apply_budget(kubectl: Kubectl, max_unavailable: int) -> None:
    spec = {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": max_unavailable}
    budget = {"apiVersion": API_VERSION, "kind": "PodUnavailableBudget", "metadata": {"name": "web"}, "spec": spec}
    kubectl.apply(json.dumps(budget))
    eventually(lambda: kubectl.json("pub", "web").get("status", {}).get("currentAvailable") == 3, "three ready pods")


def pods(kubectl: Kubectl) -> list[str]:
    return sorted(each["metadata"]["name"] for each in kubectl.json("pods")["items"])


def test_dry_runs_tell_which_budget_refuses_a_pod_and_delete_nothing(kubectl: Kubectl, altershield: Run) -> None:
    application(kubectl, 0)
    before = pods(kubectl)
    done = altershield("why", f"pod/{before[0]}")
    refused = [
        "refused by PodUnavailableBudget web (webhook {})",
        REFUSAL,
        f"Warning: AlterShield: {WAY_OUT.format(kubectl.namespace)}",
        PAGE,
    ]
    assert (done.returncode, done.stdout.splitlines()) == (
        EXIT_REFUSED,
        [
            f"pod/{before[0]} in namespace {kubectl.namespace}",
            f"Deletion:  {refused[0].format('vpod.kb.io')}",
            *(f"           {line}" for line in refused[1:]),
            f"Eviction:  {refused[0].format('vpod-eviction.kb.io')}",
            *(f"           {line}" for line in refused[1:]),
        ],
    )
    found = json.loads(altershield("why", f"po/{before[0]}", "-o", "json").stdout)
    assert (found["deletion"]["outcome"], found["eviction"]["message"]) == ("refused", REFUSAL)

    kubectl("patch", "pub", "web", "--type=merge", "-p", '{"spec":{"maxUnavailable":1}}')
    eventually(lambda: kubectl.json("pub", "web")["status"].get("unavailableAllowed") == 1, "the reconciler")
    selector = {"matchLabels": {"app": "web"}}
    kubectl.apply(
        json.dumps({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web-pdb"},
            "spec": {"selector": selector, "maxUnavailable": 0},
        })
    )  # fmt: skip
    blocked = eventually(
        lambda: (found := altershield("why", f"pod/{before[0]}")).returncode == EXIT_REFUSED and found, "the PDB"
    )
    assert blocked.stdout.splitlines()[1] == "Deletion:  allowed"
    assert blocked.stdout.splitlines()[2].startswith("Eviction:  refused by PodDisruptionBudget web-pdb")
    assert (
        "PodDisruptionBudgets that allow no eviction of these pods: web-pdb\n" in altershield("budgets", "web").stdout
    )
    kubectl("delete", "pdb", "web-pdb")
    allowed = eventually(lambda: (found := altershield("why", f"pod/{before[0]}")).returncode == 0 and found, "no PDB")
    assert allowed.stdout.splitlines()[1:] == ["Deletion:  allowed", "Eviction:  allowed"]
    assert pods(kubectl) == before
    assert kubectl.json("pub", "web")["status"].get("disruptedPods", {}) == {}

    missing = altershield("why", "pod/none")
    text = f'there is no pod none in namespace "{kubectl.namespace}"; check the name, or set another namespace with -n'
    assert (missing.returncode, missing.stderr) == (1, f"error: {text}\n")


def test_budgets_shows_numbers_records_and_what_keeps_pods_away(kubectl: Kubectl, altershield: Run) -> None:
    assert altershield("budgets").stderr == f"No PodUnavailableBudgets found in {kubectl.namespace} namespace.\n"
    application(kubectl, 0)
    header = ["NAME", "MODE", "ALLOWED", "AVAILABLE", "DESIRED", "TOTAL", "RECORDS", "PROBLEM"]
    row = ["web", "Enforce", "0", "3", "3", "3", "0", NEVER]
    done = altershield("budgets")
    assert done.returncode == EXIT_EXHAUSTED
    assert [re.split(r"\s{3,}", line) for line in done.stdout.splitlines()] == [header, row]
    assert altershield("budgets", "web").stdout == done.stdout
    wide = altershield("budgets", "web", "-o", "wide").stdout.splitlines()[1]
    assert re.split(r"\s{3,}", wide)[7:] == ["app=web", "maxUnavailable 0", "DELETE,EVICT,UPDATE,RESTART", NEVER]
    name = "podunavailablebudget.app.ops.cloud.alipay.com/web"
    assert altershield("budgets", "-o", "name").stdout == f"{name}\n"
    assert name in altershield("budgets", "-A", "-o", "name").stdout

    first, second, _ = pods(kubectl)
    glass = (f"--as-group={BREAK_GLASS_GROUP}", "--as-group=system:masters")
    kubectl("label", "pod", first, "apps.kruise.io/specified-delete=true", "--as=ann", *glass)
    uid = kubectl.json("pod", second)["metadata"]["uid"]
    at = time.time()
    record = {"name": second, "operation": "DELETE", "time": rfc3339(at), "by": "ann"}
    patch = json.dumps({"status": {"disruptedPods": {uid: record}}})
    kubectl("patch", "pub", "web", "--subresource=status", "--type=merge", "-p", patch)
    shown = eventually(
        lambda: re.search("   0 +1 +3 +3 +1   ", found := altershield("budgets", "web").stdout) and found,
        "the label, and the end of its record",
    )
    lines = shown.splitlines()
    assert lines[2] == "Disruptions that were admitted, and that the pods do not show yet:"
    assert re.fullmatch(f"  {second}   DELETE by ann \\d+s ago; the record runs out in \\d+s", lines[3])
    assert lines[4:] == [
        "Pods that are not available:",
        f"  {first}   a label takes it out of service",
        f"  {second}   DELETE by ann was admitted at {rfc3339(at)}",
    ]
    found = json.loads(altershield("budgets", "web", "-o", "json").stdout)
    assert (found["available"], found["records"][0]["runsOut"]) == (1, rfc3339(at + 40))
    assert [each["name"] for each in found["unavailablePods"]] == [first, second]

    missing = altershield("budgets", "none")
    assert missing.returncode == 1
    assert missing.stderr.startswith(f'error: there is no PodUnavailableBudget none in namespace "{kubectl.namespace}"')
    assert altershield("budgets", "web", "-A").returncode == 2


def test_release_that_a_budget_holds_up_names_it(kubectl: Kubectl, altershield: Run) -> None:
    kubectl.apply(json.dumps(workloads.manifest("StatefulSet", "web", "busybox", replicas=3)))
    eventually(
        lambda: altershield("status").returncode == 0 and "Success" in altershield("status", "web").stdout, "a release"
    )
    apply_budget(kubectl, 0)
    kubectl("set", "image", "statefulset/web", "main=busybox:2")
    name, command = "PodUnavailableBudget web", f"altershield budgets web -n {kubectl.namespace}"
    text = f"{name} admits no deletion of the workload's pods now; to see why: {command}"
    eventually(lambda: text in altershield("status").stdout, "the release to be stalled")
    kubectl("patch", "pub", "web", "--type=merge", "-p", '{"spec":{"maxUnavailable":1}}')
    eventually(lambda: altershield("status").returncode == 0, "the release to succeed")
