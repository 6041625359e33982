"""Our labels cause no lasting difference and no rollout in Argo CD and Flux.

Argo CD makes a three-way comparison of the last applied manifest, the manifest in Git and the live object, with the
merge of `kubectl apply`: "unchanged" means an empty patch. Flux, and Argo CD with server-side diff, apply the manifest
as a dry run and compare the result with the live object.
"""

import json

import pytest

from altershield.api import labels
from tests.e2e.sleep import SLEEP, release, sets_version, sleep, succeed, suspend
from tests.integrations.checks import flux, health
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually

THREE_WAY = ()
SERVER_SIDE = ("--server-side", "--force-conflicts", "--field-manager=kustomize-controller")
EACH_WAY = pytest.mark.parametrize("way", [THREE_WAY, SERVER_SIDE], ids=["three-way", "server-side"])
NEWER = sleep(seconds="3600")


def apply(kubectl: Kubectl, way: tuple[str, ...], manifest: str) -> str:
    return kubectl("apply", *way, "-f", "-", stdin=manifest)


def live(kubectl: Kubectl) -> Json:
    """The Deployment without the fields that every write or a controller changes."""
    found = kubectl.json("deployment", "sleep")
    found.pop("status")
    for key in ("resourceVersion", "managedFields"):
        found["metadata"].pop(key, None)
    return found


def difference(kubectl: Kubectl, way: tuple[str, ...], manifest: str) -> list[object]:
    """The differences that the tool reports as out of sync."""
    done = kubectl.run("apply", *way, "--dry-run=server", "-o", "json", "-f", "-", stdin=manifest)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    wanted = json.loads(done.stdout)
    wanted.pop("status", None)
    for key in ("resourceVersion", "managedFields"):
        wanted["metadata"].pop(key, None)
    differences: list[object] = [] if wanted == (there := live(kubectl)) else [wanted, there]
    if not way and "unchanged" not in kubectl("apply", "--dry-run=server", "-f", "-", stdin=manifest):
        differences.append("the three-way patch is not empty")
    return differences


def running(kubectl: Kubectl) -> tuple[object, ...]:
    """Values that a rollout changes: generation, ReplicaSets, pods."""
    generation = kubectl.json("deployment", "sleep")["metadata"]["generation"]
    sets = sorted(each["metadata"]["name"] for each in kubectl.json("replicasets")["items"])
    pods = sorted(each["metadata"]["uid"] for each in kubectl.json("pods")["items"])
    return generation, sets, pods


def is_settled(kubectl: Kubectl) -> bool:
    found = kubectl.json("deployment", "sleep")
    seen = found["status"].get("observedGeneration") == found["metadata"]["generation"]
    done = len(kubectl.json("pods")["items"]) == found["status"].get("updatedReplicas") == 5
    return bool(seen and done)


def assert_in_sync(kubectl: Kubectl, way: tuple[str, ...], manifest: str) -> None:
    """Check that there is no difference before and after the manifest is applied again, and that no pod restarts."""
    eventually(lambda: is_settled(kubectl), "the rollout to be over")
    before, there = running(kubectl), live(kubectl)
    assert difference(kubectl, way, manifest) == []
    apply(kubectl, way, manifest)
    assert difference(kubectl, way, manifest) == []
    assert live(kubectl) == there
    assert running(kubectl) == before


def assert_health(kubectl: Kubectl, in_argo_cd: str, in_flux: str) -> None:
    """Check the health that the tools show for the workload and its release, and for all batches together."""
    eventually(lambda: health(kubectl.json("deployment", "sleep"))[0] == in_argo_cd, "the health of the workload")
    (release_,) = kubectl.json("changeworkloads")["items"]
    assert (health(release_)[0], flux(release_)) == (in_argo_cd, in_flux)
    batches = kubectl.json("changepods")["items"]
    assert in_argo_cd in {health(each)[0] for each in batches}
    assert in_flux in {flux(each) for each in batches}


@EACH_WAY
def test_first_and_second_release_from_git_are_in_sync(kubectl: Kubectl, way: tuple[str, ...]) -> None:
    for manifest in (SLEEP, NEWER):
        apply(kubectl, way, manifest)
        succeed(kubectl, kubectl.labels("deployment", "sleep")[labels.VERSION])
        assert_in_sync(kubectl, way, manifest)


@EACH_WAY
def test_suspended_release_is_in_sync_until_git_changes(kubectl: Kubectl, way: tuple[str, ...]) -> None:
    apply(kubectl, way, SLEEP)
    version = kubectl.labels("deployment", "sleep")[labels.VERSION]
    succeed(kubectl, version)
    assert_health(kubectl, "Healthy", "Current")
    suspend(kubectl, version)
    assert_health(kubectl, "Degraded", "Failed")
    assert_in_sync(kubectl, way, SLEEP)
    denied = kubectl.run("apply", *way, "-f", "-", stdin=NEWER)
    assert "deployment sleep is suspended" in denied.stderr, "the tool shows this as the reason of the failed sync"
    assert_in_sync(kubectl, way, SLEEP)


@EACH_WAY
def test_manifest_exported_with_our_labels_is_in_sync(kubectl: Kubectl, way: tuple[str, ...]) -> None:
    release(kubectl)
    exported = live(kubectl)
    for key in ("uid", "creationTimestamp", "generation", "annotations"):
        exported["metadata"].pop(key)
    manifest = json.dumps(exported)
    apply(kubectl, way, manifest)
    assert_in_sync(kubectl, way, manifest)


@EACH_WAY
def test_governing_a_namespace_puts_nothing_out_of_sync(kubectl: Kubectl, way: tuple[str, ...]) -> None:
    kubectl("label", "namespace", kubectl.namespace, f"{labels.GOVERNED}-")
    eventually(lambda: not sets_version(kubectl), "the namespace not to be governed")
    apply(kubectl, way, SLEEP)
    eventually(lambda: is_settled(kubectl), "the rollout to be over")
    before = running(kubectl)
    kubectl("label", "namespace", kubectl.namespace, f"{labels.GOVERNED}={labels.GOVERNED_VALUE}")
    eventually(lambda: sets_version(kubectl), "the namespace to be governed")
    assert_in_sync(kubectl, way, SLEEP)
    assert running(kubectl) == before
    apply(kubectl, way, NEWER)
    succeed(kubectl, kubectl.labels("deployment", "sleep")[labels.VERSION])
    assert_in_sync(kubectl, way, NEWER)


@EACH_WAY
def test_switching_between_three_way_and_server_side_apply_restarts_no_pods(
    kubectl: Kubectl, way: tuple[str, ...]
) -> None:
    other = SERVER_SIDE if way == THREE_WAY else THREE_WAY
    apply(kubectl, other, SLEEP)
    succeed(kubectl, kubectl.labels("deployment", "sleep")[labels.VERSION])
    eventually(lambda: is_settled(kubectl), "the rollout to be over")
    _, *before = running(kubectl)  # the generation changes with the annotation of the last applied manifest
    apply(kubectl, way, SLEEP)
    assert running(kubectl)[1:] == tuple(before)
    assert_in_sync(kubectl, way, SLEEP)
