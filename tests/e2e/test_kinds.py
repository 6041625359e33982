"""Releases of every kind of workload: verified, suspended, repaired, and rolled back automatically and on request."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from altershield.api import labels
from altershield.api.resources import DEFENSE_POLICIES
from tests.e2e.kinds import CLONE_SET_IN_PLACE, DAEMON_SET, DEPLOYMENT, KINDS, ORDERED, PARALLEL
from tests.e2e.story import NAME, Story, StoryResults, running_stories
from tests.support.polling import eventually

pytestmark = pytest.mark.xdist_group("stories")


def verified_suspended_and_repaired(story: Story) -> None:
    kind = story.kind
    first = story.released("busybox:1")
    workload = story.get()
    release = story.until(first, "Success")
    assert workload["metadata"]["labels"][labels.DEFENSE_STATUS] == labels.PROCESSED
    assert workload["spec"]["template"]["metadata"]["labels"][labels.VERSION] == first
    assert release.obj["spec"]["reversion"] == first == release.obj["metadata"]["labels"][labels.VERSION]
    assert release.obj["spec"]["workloadRef"] == {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": NAME,
        "uid": workload["metadata"]["uid"],
    }
    assert len(release.status["defenseCheckPassPods"]) == len(story.pods())

    second = story.released("busybox:2")
    assert second != first
    eventually(
        lambda: len(story.kubectl.json("changeworkloads")["items"]) == 1,
        "the ChangeWorkload of the older release to be removed",
    )

    failed = story.fail(second)
    (shown,) = story.until(second, "Suspend").failed
    assert (shown["pod"], shown["message"]) == (failed, "find error")
    newer = kind.manifest(NAME, "busybox:3")
    denied = story.kubectl.run("apply", "-f", "-", stdin=json.dumps(newer))
    text = f"{kind.resource} {NAME} is suspended"
    assert f"Error from server ({text}): " in denied.stderr
    assert f'admission webhook "v{kind.resource}.kb.io" denied the request: {text}' in denied.stderr

    newer["metadata"]["labels"][labels.IGNORED_SUSPEND] = "true"
    story.kubectl.apply(json.dumps(newer))
    repaired = story.version()
    story.until(repaired, "Success")
    eventually(
        lambda: not {labels.SUSPEND, labels.IGNORED_SUSPEND} & set(story.labels()),
        "the labels suspend and ignored-suspend to be removed",
    )
    eventually(
        lambda: len(story.kubectl.json("changeworkloads")["items"]) == 1,
        "the ChangeWorkload of the suspended release to be removed",
    )
    story.released("busybox:4")


def rolled_back_automatically(story: Story) -> None:
    good = story.released("busybox:1")
    before = {pod["metadata"]["uid"] for pod in story.pods()}
    bad = story.release("nosuch:1")
    assert bad != good
    release = story.until(bad, "Failed")
    assert "Success" not in release.states
    condition = release.condition("RolledBack")
    assert (condition["status"], condition["reason"]) == ("True", "PodNotUp")
    assert "ImagePullBackOff" in condition["message"] or "ErrImagePull" in condition["message"]
    assert story.version() == good
    pods = story.until_all_ready("busybox:1")
    assert len(before & {pod["metadata"]["uid"] for pod in pods}) >= len(pods) - 1, "the other pods keep running"
    story.until(good, "Success")
    denied = story.kubectl.run("apply", "-f", "-", stdin=json.dumps(story.kind.manifest(NAME, "nosuch:1")))
    assert "was rolled back" in denied.stderr
    story.released("busybox:2")


def rolled_back_on_request(story: Story) -> None:
    good = story.released("busybox:1")
    bad = story.released("busybox:2")
    story.fail(bad)
    name = story.kind.change_workload_name(NAME, bad)
    answer = story.kubectl.merge("changeworkload", name, {"status": {"status": "Rollback"}}, "status")
    assert answer[0] == 200, answer
    release = story.until(bad, "Failed")
    assert release.condition("RolledBack")["reason"] == "Requested"
    assert story.version() == good
    story.until_all_ready("busybox:1")
    story.until(good, "Success")
    eventually(lambda: labels.SUSPEND not in story.labels(), "the suspension to end")


def freed_after_a_first_release_that_is_broken(story: Story) -> None:
    bad = story.release("crash:1")
    story.until(bad, "Suspend")
    story.kubectl("label", story.kind.resource, NAME, f"{labels.IGNORED_SUSPEND}=true")
    story.released("busybox:1")
    story.until_all_ready("busybox:1")
    eventually(lambda: labels.SUSPEND not in story.labels(), "the suspension to end")


def freed_after_two_broken_releases(story: Story) -> None:
    """Both are replaced before AlterShield could roll them back."""
    story.released("busybox:1")
    story.release("nosuch:2")
    eventually(lambda: _has_pod(story, "nosuch:2"), "the broken pod")
    story.release("nosuch:3")
    story.released("busybox:4")
    story.until_all_ready("busybox:4")
    story.release("nosuch:5")
    eventually(lambda: _has_pod(story, "nosuch:5"), "the broken pod")
    story.kubectl("rollout", "undo", story.kind.resource, NAME)
    story.until_all_ready("busybox:4")
    story.until(story.version(), "Success")


def freed_by_the_command_that_why_prints(story: Story) -> None:
    """Under a policy that only observes, AlterShield does not delete the pod."""
    kind = {"apiVersion": DEFENSE_POLICIES.api_version, "kind": DEFENSE_POLICIES.kind}
    story.kubectl.apply(json.dumps({**kind, "metadata": {"name": "own"}, "spec": {"mode": "observe"}}))
    story.kubectl.wait("defensepolicy/own", "condition=Accepted")
    story.released("busybox:1")
    story.release("nosuch:2")
    eventually(lambda: _has_pod(story, "nosuch:2"), "the broken pod")
    fix = story.release("busybox:3")
    story.until(fix, "Running")
    told = _why(story)
    assert f"Waits for: pod {NAME}-2 of an older version, which is not ready" in told
    command = f"delete pod -n {story.kubectl.namespace} {NAME}-2"
    assert f"  kubectl {command}\n" in told
    # kubectl may wait without end for a pod that is created again with its name (kubernetes/kubernetes#135562)
    story.kubectl(*command.split(), "--wait=false")
    story.until(fix, "Success")
    assert "Waits for: " not in _why(story)


def _why(story: Story) -> str:
    """The output of `altershield why` about the workload."""
    where = ("-n", story.kubectl.namespace, "--kubeconfig", str(story.kubectl.kubeconfig))
    command = [sys.executable, "-m", "command", "why", f"{story.kind.resource}/{NAME}", *where]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _has_pod(story: Story, image: str) -> bool:
    return any(pod["spec"]["containers"][0]["image"] == image for pod in story.pods())


def verified_beyond_a_partition(story: Story) -> None:
    first = {"ordinals": {"start": 5}}
    good = story.released("busybox:1", **first)
    canary = story.released("busybox:2", updateStrategy={"rollingUpdate": {"partition": 1}}, **first)
    assert canary != good
    images = sorted(pod["spec"]["containers"][0]["image"] for pod in story.pods())
    assert images == ["busybox:1", "busybox:2", "busybox:2"]


STORIES = {
    f"{story.__name__}-{kind.id}": (story, kind)
    for story, kinds in (
        (verified_suspended_and_repaired, KINDS),
        (rolled_back_automatically, KINDS),
        (rolled_back_on_request, (DEPLOYMENT, ORDERED, DAEMON_SET, CLONE_SET_IN_PLACE)),
        (verified_beyond_a_partition, (ORDERED, PARALLEL)),
        (freed_after_a_first_release_that_is_broken, (ORDERED, PARALLEL, DEPLOYMENT)),
        (freed_after_two_broken_releases, (ORDERED,)),
        (freed_by_the_command_that_why_prints, (ORDERED,)),
    )
    for kind in kinds
}


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest, installed: Path) -> Iterator[StoryResults]:
    with running_stories(request, installed, STORIES) as results:
        yield results


@pytest.mark.parametrize("name", STORIES)
def test_story_succeeds(results: StoryResults, name: str) -> None:
    if name not in results:
        pytest.skip("the cluster has no CloneSets")
    results[name].result()
