"""PodDeletionFlowControls, as kubectl and the API server show them."""

import json
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from altershield.api.resources import API_VERSION
from command.app import main
from command.breaker import EXIT_OPEN
from tests.e2e.conftest import govern
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually
from tests.support.processes import call

Breaker = Callable[..., str]

USER = "kubernetes-admin"
USED = "PodDeletionFlowControl guard: 2 of 2 pod deletions in 1h are used"


def pod(name: str, **labels: str) -> str:
    spec = {"containers": [{"name": "app", "image": "busybox"}], "terminationGracePeriodSeconds": 0}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec})


def guard(namespace: str, **spec: Any) -> str:
    """Pods that the namespace controller deletes in the namespaces of other tests would count too."""
    content = {
        "limitRules": [{"interval": "1h", "limit": 2}],
        "podSelector": {"matchLabels": {"app": "web"}},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        **spec,
    }
    return json.dumps(
        {"apiVersion": API_VERSION, "kind": "PodDeletionFlowControl", "metadata": {"name": "guard"}, "spec": content}
    )


@pytest.fixture
def kubectl(installed: Path) -> Iterator[Kubectl]:
    """kubectl in a governed namespace with pods."""
    found = Kubectl(installed, f"flow-{uuid.uuid4().hex[:8]}")
    govern(installed, [found.namespace])
    if not found.exists("serviceaccount", "default"):
        found.run("create", "serviceaccount", "default")
    for number in range(6):
        found.apply(pod(f"web-{number}", app="web"))
    found.apply(pod("free", app="web", tier="test"))
    yield found
    found.run("delete", "poddeletionflowcontrols", "--all")
    found.delete_namespaces()


def apply_guard(kubectl: Kubectl, **spec: Any) -> None:
    """Create or change the policy, and wait until gatekeepers have it."""
    kubectl.apply(guard(kubectl.namespace, **spec))
    generation = kubectl.json("poddeletionflowcontrol", "guard")["metadata"]["generation"]
    eventually(
        lambda: (
            kubectl.json("poddeletionflowcontrol", "guard").get("status", {}).get("observedGeneration") == generation
        ),
        "the reconciler to see the policy",
    )


def status(kubectl: Kubectl) -> dict[str, Any]:
    found: dict[str, Any] = kubectl.json("poddeletionflowcontrol", "guard")["status"]
    return found


@pytest.fixture
def breaker(installed: Path, capfd: pytest.CaptureFixture[str]) -> Breaker:
    """Runs `altershield breaker`, checks the exit code, and returns what it prints."""

    def run(*arguments: str, code: int = 0) -> str:
        done = call(main, "altershield", "breaker", *arguments, f"--kubeconfig={installed}", capture=capfd)
        assert done.returncode == code, done.stderr
        return done.stdout if code in (0, EXIT_OPEN) else done.stderr

    return run


def evict(kubectl: Kubectl, name: str, **options: Any) -> Any:
    body = {
        "apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": name, "namespace": kubectl.namespace}, **options,
    }  # fmt: skip
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/{name}/eviction"
    return kubectl.run("create", "--raw", path, "-f", "-", stdin=json.dumps(body))


def denials(text: str) -> list[str]:
    return re.findall(r"denied the request: (.*)", text)


def test_deletions_and_evictions_share_one_limit_and_refusals_say_the_way_out(kubectl: Kubectl) -> None:
    apply_guard(kubectl, whiteListSelector={"matchLabels": {"tier": "test"}})
    kubectl("delete", "pod", "web-0")
    assert evict(kubectl, "web-1", deleteOptions={"dryRun": ["All"]}).returncode == 0
    assert evict(kubectl, "web-1").returncode == 0
    refused = kubectl.run("delete", "pod", "web-2")
    assert denials(refused.stderr) == [USED]
    assert "Warning: AlterShield: the next deletion passes at 20" in refused.stderr
    assert "an administrator runs: kubectl edit poddeletionflowcontrols guard" in refused.stderr
    assert "Warning: AlterShield: this page explains the denial: https://" in refused.stderr
    assert denials(kubectl.run("delete", "pod", "web-2", "--dry-run=server").stderr) == [USED]
    evicted = evict(kubectl, "web-2")
    assert denials(evicted.stderr) == [USED]
    assert "TooManyRequests" in evicted.stderr
    assert denials(kubectl.run("delete", "pods", "-l", "app=web,tier!=test").stderr)[0] == USED
    kubectl("delete", "pod", "free")  # the whitelist
    found = status(kubectl)
    assert (found["windows"][0]["used"], found["windows"][0]["limit"]) == (2, 2)
    assert found["topSources"][0]["count"] == 2
    eventually(lambda: status(kubectl).get("pending", {}) == {}, "both deletions to be confirmed")
    assert status(kubectl)["windows"][0]["used"] == 2
    eventually(lambda: status(kubectl).get("lastDenied"), "the refused deletions")
    assert {each["name"] for each in status(kubectl)["lastDenied"]} >= {"web-2"}
    apply_guard(kubectl, limitRules=[{"interval": "1h", "limit": 3}])
    kubectl("delete", "pod", "web-2")


def test_manual_breaker_stops_every_deletion_until_it_is_reset(kubectl: Kubectl, breaker: Breaker) -> None:
    apply_guard(kubectl, breaker={"mode": "Manual"}, limitRules=[{"interval": "1s", "limit": 1}])
    done = kubectl.run("delete", "pods", "web-0", "web-1", "web-2", "--wait=false")
    used = r"PodDeletionFlowControl guard: 1 of 1 pod deletions in 1s are used"
    is_open = r"PodDeletionFlowControl guard is open since 20..-..-..T..:..:..Z \(rule 1s/1\)"
    # kube-apiserver asks again after a refusal that may rest on its cache
    assert re.fullmatch(f"{used}|{is_open}", denials(done.stderr)[0])
    eventually(lambda: status(kubectl)["breaker"]["state"] == "Open", "the breaker to open")
    assert re.fullmatch(is_open, denials(kubectl.run("delete", "pod", "web-4").stderr)[0])
    events = ("events", "-n", "default", "--field-selector", "reason=DeletionBreakerOpened")
    eventually(lambda: kubectl.json(*events)["items"], "the Event")
    glass = kubectl.run(
        "delete", "pod", "web-4", "--as=ann", "--as-group=altershield:break-glass", "--as-group=system:masters"
    )
    assert glass.returncode == 0, glass.stderr
    assert "break glass" in glass.stderr
    assert breaker("status", "guard", "-o", "name", code=EXIT_OPEN) == (
        "poddeletionflowcontrol.app.ops.cloud.alipay.com/guard\n"
    )
    assert "Open (Manual)" in breaker("status", code=EXIT_OPEN)
    assert "the breaker is closed" in breaker("reset", "guard")
    eventually(lambda: kubectl.run("delete", "pod", "web-5").returncode == 0, "a deletion to pass")
    opened = json.loads(breaker("open", "guard", "-o", "json"))["status"]["breaker"]
    assert (opened["state"], opened["openedBy"], opened["resetBy"]) == ("Open", USER, USER)
    assert USER in denials(kubectl.run("delete", "pod", "web-3").stderr)[0]
    apply_guard(kubectl, breaker={"mode": "Off"})
    assert "spec.breaker.mode is Off" in breaker("open", "guard", code=1)
    assert "there is no PodDeletionFlowControl other" in breaker("reset", "other", code=1)
    for name in ("", "guard/status", "a b"):
        assert f'no PodDeletionFlowControl can have the name "{name}"' in breaker("reset", name, code=2)


def test_mode_warn_counts_and_says_what_would_be_refused(kubectl: Kubectl, breaker: Breaker) -> None:
    apply_guard(kubectl, mode="Warn")
    done = kubectl.run("delete", "pods", "-l", "app=web", "--wait=false")
    assert done.returncode == 0
    assert f"would be refused in the mode Enforce: {USED}" in done.stderr
    assert status(kubectl)["windows"][0]["used"] == 7
    apply_guard(kubectl, mode="Warn", breaker={"mode": "Manual"})
    assert "passes with a warning, because spec.mode is Warn" in breaker("open", "guard")
