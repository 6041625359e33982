"""Evictions: what webhooks are asked, which evictions are refused, and `kubectl drain`."""

import asyncio
import subprocess
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from conformance.manifests import Json, deployment, text
from kube_base.access.client import Client
from kube_base.access.errors import ApiError
from kube_base.resources import NAMESPACES, PODS, VALIDATING_WEBHOOKS
from support import hook as hooks
from support.hook import Hook
from support.kubectl import Kubectl
from support.polling import eventually, until


def budget(name: str, **spec: object) -> str:
    selector = {"matchLabels": {"app": name}}
    body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}}
    return text({**body, "spec": {"selector": selector, **spec}})


def start(space: Kubectl, name: str, replicas: int, image: str = "busybox", **spec: object) -> list[str]:
    """Run a Deployment with a budget; returns the names of the pods when the budget has counted them."""
    space("apply", "-f", "-", stdin=text(deployment(name, replicas=replicas, image=image)))
    space("apply", "-f", "-", stdin=budget(name, **spec))
    eventually(lambda: allowance(space, name).get("expectedPods") == replicas, "the budget to count the pods")
    return space("get", "pods", "-l", f"app={name}", "-o", "jsonpath={.items[*].metadata.name}").split()


def allowance(space: Kubectl, name: str) -> Json:
    return dict(space.json("poddisruptionbudget", name).get("status") or {})


async def evict(client: Client, space: Kubectl, name: str, dry_run: bool = False, **options: object) -> Json | None:
    """Returns None, or the Status of a refusal."""
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    if options:
        body["deleteOptions"] = options  # type: ignore[assignment]
    try:
        path = PODS.path(space.namespace, name, "eviction")
        await client.request("POST", path, body=body, query={"dryRun": "All"} if dry_run else None)
    except ApiError as error:
        return {"code": error.code, "reason": error.reason, "message": str(error)}
    return None


async def test_budget_admits_evictions_one_after_another_and_a_dry_run_leaves_no_trace(
    client: Client, space: Kubectl
) -> None:
    first, second = start(space, "paced", 2, minAvailable=1)
    eventually(lambda: allowance(space, "paced")["disruptionsAllowed"] == 1, "the pods to be ready")
    before = space.json("poddisruptionbudget", "paced")
    assert await evict(client, space, first, dry_run=True) is None
    assert await evict(client, space, first, dryRun=["All"]) is None
    wrong = await evict(client, space, first, dry_run=True, dryRun=["Some"])
    assert wrong is not None
    assert wrong["code"] == 500
    assert space.json("poddisruptionbudget", "paced") == before
    stale = await evict(client, space, first, preconditions={"uid": "other"})
    assert stale is not None
    assert stale["code"] == 409
    # The failed eviction was charged to the budget before its precondition was checked.
    assert first in space.json("poddisruptionbudget", "paced")["status"]["disruptedPods"]
    refused = await evict(client, space, second)
    assert refused == {
        "code": 429,
        "reason": "TooManyRequests",
        "message": "Cannot evict pod as it would violate the pod's disruption budget.",
    }


async def test_unready_pods_are_evicted_only_with_always_allow_while_the_budget_is_short(
    client: Client, space: Kubectl
) -> None:
    (name,) = start(space, "unready", 1, image="busybox:never-ready", minAvailable=1)
    space.wait(f"pod/{name}", "jsonpath={.status.phase}=Running")
    refused = await evict(client, space, name)
    assert refused is not None
    assert refused["code"] == 429
    space("patch", "pdb", "unready", "-p", '{"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}}')
    assert await evict(client, space, name) is None


async def test_pod_with_two_budgets_is_not_evicted(client: Client, space: Kubectl) -> None:
    (name,) = start(space, "twice", 1, minAvailable=0)
    space.wait(f"pod/{name}", "jsonpath={.status.phase}=Running")
    body = budget("twice", minAvailable=0).replace('"name": "twice"', '"name": "again"')
    space("apply", "-f", "-", stdin=body)
    refused = await evict(client, space, name)
    assert refused == {
        "code": 500,
        "reason": "",
        "message": "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
    }


@pytest.fixture
async def hook(tmp_path: Path, client: Client, space: Kubectl) -> AsyncIterator[Hook]:
    """A webhook for the pods and evictions of the namespace."""
    async with hooks.serve(tmp_path) as hook:
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods", "pods/eviction"]}
        webhook = {
            "name": "evictions.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": hook.client_config,
            "namespaceSelector": {"matchLabels": {"evictions": "yes"}},
            "rules": [rule],
        }
        name = f"{space.namespace}-evictions"
        await asyncio.to_thread(space, "label", "namespace", space.namespace, "evictions=yes")
        await client.create(VALIDATING_WEBHOOKS, {"metadata": {"name": name}, "webhooks": [webhook]})

        async def called() -> bool:
            await evict(client, space, "missing")
            return bool(hook.reviews)

        await until(called, "the API server to read the configuration")
        hook.reviews.clear()
        yield hook
        await client.delete(VALIDATING_WEBHOOKS, name)
        await asyncio.to_thread(space, "label", "namespace", space.namespace, "evictions-")


async def test_webhooks_review_the_eviction_before_the_pod_is_read_and_not_the_deletion(
    client: Client, space: Kubectl, hook: Hook
) -> None:
    missing = await evict(client, space, "missing")
    assert missing is not None
    assert missing["code"] == 404
    spec = {"terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": "busybox"}]}
    await client.create(PODS, {"metadata": {"name": "reviewed"}, "spec": spec}, space.namespace)
    await asyncio.to_thread(space.wait, "pod/reviewed", "condition=Ready")
    hook.reviews.clear()
    path = PODS.path(space.namespace, "reviewed", "eviction")
    old = {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "reviewed"}}
    await client.request("POST", path, body=old)
    request = hook.reviews[0]["request"]
    assert request["operation"] == "CREATE"
    assert request["kind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}
    assert (request["name"], request["subResource"], request["oldObject"]) == ("reviewed", "eviction", None)
    assert request["object"]["apiVersion"] == "policy/v1"

    async def gone() -> bool:
        return "reviewed" not in await asyncio.to_thread(space, "get", "pods", "-o", "name")

    await until(gone, "the pod to be removed")
    later = [review["request"] for review in hook.reviews[1:]]
    assert {one["operation"] for one in later} == {"DELETE"}
    assert all("deletionTimestamp" in one["oldObject"]["metadata"] for one in later)  # those of the kubelet


async def test_eviction_in_a_terminating_namespace_is_refused_before_any_webhook(
    client: Client, space: Kubectl, hook: Hook, cluster: Path
) -> None:
    name = f"{space.namespace}-ending"
    labels = {"evictions": "yes"}
    await client.create(NAMESPACES, {"metadata": {"name": name, "labels": labels, "finalizers": ["example.com/held"]}})
    hook.reviews.clear()
    await evict(client, Kubectl(cluster, name), "any")
    assert [review["request"]["subResource"] for review in hook.reviews] == ["eviction"]
    await client.delete(NAMESPACES, name)
    refused = await evict(client, Kubectl(cluster, name), "any")
    await client.patch(NAMESPACES, {"metadata": {"finalizers": None}}, name)
    assert len(hook.reviews) == 1
    assert refused is not None
    assert refused["message"] == (
        f'pods "any" is forbidden: unable to create new content in namespace {name} because it is being terminated'
    )


def test_drain_repeats_refused_evictions_until_the_budget_allows_them(space: Kubectl) -> None:
    (name,) = start(space, "drained", 1, minAvailable=1)
    eventually(lambda: allowance(space, "drained")["currentHealthy"] == 1, "the pod to be ready")
    node = space("get", "pod", name, "-o", "jsonpath={.spec.nodeName}")
    arguments = ["drain", node, "--pod-selector=app=drained"]
    done: list[subprocess.CompletedProcess[str]] = []
    draining = threading.Thread(target=lambda: done.append(space.run(*arguments)))
    draining.start()
    try:
        eventually(lambda: space.json("node", node)["spec"].get("unschedulable"), "the node to be cordoned")
        space("scale", "deployment/drained", "--replicas=2")
        draining.join(90)
    finally:
        space("uncordon", node)
    (drain,) = done
    assert drain.returncode == 0, drain.stderr
    assert "(will retry after 5s): Cannot evict pod as it would violate" in drain.stderr
    assert name not in space("get", "pods", "-l", "app=drained", "-o", "name")
