"""Nothing that a user with the role `edit` writes into a namespace changes a verdict. (Events can delay one:
docs/verdicts.md, "Whose fault".)

Each story acts as such a user, and as an administrator for objects that only an administrator may write
(ControllerRevisions).
"""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from altershield.api import labels
from kube_base.resources import CLONE_SETS, ROLE_BINDINGS, ROLES
from kube_base.times import unix
from tests.e2e.conftest import govern
from tests.e2e.kinds import CLONE_SET, CLONE_SET_IN_PLACE, DAEMON_SET, DEPLOYMENT, ORDERED, PARALLEL, container
from tests.e2e.story import NAME, Story, StoryResults, running_stories
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually

pytestmark = pytest.mark.xdist_group("stories")

FORGED = "f" * 32
A_WHILE = 3.0  # seconds within which a wrong reaction would happen
EDITOR = "mallory"
BAD = "exits-after-500ms:1"


def editor(kubectl: Kubectl) -> Kubectl:
    """kubectl of a user who may edit this namespace and nothing else. The user may also edit CloneSets, as OpenKruise's
    roles allow."""
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
    clone_sets = {"apiGroups": [CLONE_SETS.group], "resources": ["clonesets", "clonesets/scale"], "verbs": verbs}
    status, found = kubectl.create(ROLES, json.dumps({"metadata": {"name": EDITOR}, "rules": [clone_sets]}))
    assert status == 201, found
    for kind, name in (("ClusterRole", "edit"), ("Role", EDITOR)):
        binding = {
            "metadata": {"name": f"{EDITOR}-{kind.lower()}"},
            "roleRef": {"apiGroup": ROLES.group, "kind": kind, "name": name},
            "subjects": [{"apiGroup": ROLES.group, "kind": "User", "name": EDITOR}],
        }
        status, found = kubectl.create(ROLE_BINDINGS, json.dumps(binding))
        assert status == 201, found
    own = Kubectl(kubectl.kubeconfig, kubectl.namespace, f"--as={EDITOR}")
    eventually(lambda: own.may_list("pods"), "the permissions")
    return own


def stays(met: Callable[[], object], seconds: float = A_WHILE) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert met()
        time.sleep(0.5)


def is_suspended(story: Story, version: str) -> bool:
    own, template = story.get()["metadata"]["labels"], story.get()["spec"]["template"]["metadata"]["labels"]
    assert own[labels.VERSION] == template[labels.VERSION] == version
    changed = {"spec": {"template": {"spec": {"containers": [container("busybox:9")]}}}}
    _, denied = story.kubectl.merge(story.kind.resource, NAME, changed)
    return labels.SUSPEND in own and f"{story.kind.resource} {NAME} is suspended" in denied.get("message", "")


def revision_resource(story: Story) -> str:
    """The resource of the revisions of the workload, in the plural."""
    return "replicasets" if story.kind is DEPLOYMENT else "controllerrevisions"


def forged_labels(story: Story) -> None:
    version = story.released("busybox:1")
    failed = story.fail(version)
    pods = len(story.pods())
    user = editor(story.kubectl)
    holder = user if story.kind is DEPLOYMENT else story.kubectl
    for value in (f"{labels.VERSION}-", f"{labels.VERSION}={FORGED}"):
        holder("label", "--overwrite", revision_resource(story), "--all", value)
        user("label", "--overwrite", "pod", failed, value)
        stays(lambda: is_suspended(story, version))
        eventually(
            lambda: story.kubectl.labels("pod", failed).get(labels.VERSION) == version,
            "the label of the pod to be restored",
        )
        if holder is user:
            (made,) = eventually(lambda: sets(story), "the ReplicaSet")
            eventually(
                lambda: sets(story)[0]["metadata"]["labels"].get(labels.VERSION) == version,
                "the label of the ReplicaSet to be restored",
            )
            assert made["spec"]["replicas"] == pods
    user("label", "--overwrite", "pods", "--all", f"{labels.OPERATE_FINISHED}=1")
    user("label", "pods", "--all", f"{labels.OPERATE_FINISHED}-")
    user("label", "--overwrite", story.kind.resource, NAME, f"{labels.SUSPEND}-", f"{labels.VERSION}={FORGED}")
    stays(lambda: is_suspended(story, version))
    release = story.until(version, "Suspend")
    assert release.states[-1] == "Suspend"
    assert [pod["pod"] for pod in release.failed] == [failed]
    assert len(story.pods()) == pods
    assert len(story.kubectl.json("changeworkloads")["items"]) == 1


def sets(story: Story) -> list[Json]:
    found: list[Json] = story.kubectl.json("replicasets")["items"]
    return found


def operate_finished_label_in_the_template(story: Story) -> None:
    good = story.released("busybox:1")
    user = editor(story.kubectl)
    for seconds in (0, 10**6):
        bad = story.kind.manifest(NAME, f"nosuch:{seconds}")
        bad["spec"]["template"]["metadata"]["labels"][labels.OPERATE_FINISHED] = str(int(time.time()) + seconds)
        user("apply", "-f", "-", stdin=json.dumps(bad))
        assert labels.OPERATE_FINISHED not in story.get()["spec"]["template"]["metadata"]["labels"]
        version = story.version()
        eventually(lambda: [pod for pod in story.pods() if not ready_or_old(pod)], "a pod of it")
        for pod in story.pods():
            user("label", "--overwrite", "pod", pod["metadata"]["name"], f"{labels.OPERATE_FINISHED}=9999999999")
        release = story.until(version, "Failed")
        assert "Success" not in release.states
        assert story.version() == good
        story.until_all_ready("busybox:1")


def ready_or_old(pod: Json) -> bool:
    return str(pod["spec"]["containers"][0]["image"]).startswith("busybox")


def owners_of_another_namespace(story: Story) -> None:
    first = story.released("busybox:1")
    there = f"{story.kubectl.namespace}-b"
    govern(story.kubectl.kubeconfig, [there])
    outside = Kubectl(story.kubectl.kubeconfig, there)
    try:
        user = editor(outside)
        for image in ("nosuch:1", "busybox:1"):
            user("create", "-f", "-", stdin=json.dumps(story_pod(story, first, image)))
        second = story.released("busybox:2")
        for image in ("nosuch:2", "busybox:2"):
            user("create", "-f", "-", stdin=json.dumps(story_pod(story, second, image)))
        story.fail(second)
        stays(lambda: not outside.json("changepods")["items"])
        assert not outside.json("changeworkloads")["items"]
        assert len(story.until(second, "Suspend").status["defenseCheckPassPods"]) == 2
    finally:
        story.kubectl.delete_namespaces(there)


def story_pod(story: Story, version: str, image: str) -> Json:
    """A pod with an owner reference to the revision or the workload of the story."""
    if story.kind is DEPLOYMENT:
        owner = next(each for each in sets(story) if each["metadata"]["labels"][labels.VERSION] == version)
    else:
        owner = story.get()
    reference = {
        "apiVersion": "apps/v1",
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    own = story.pods()[0]["metadata"]["labels"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "forged-",
            "labels": {**own, labels.VERSION: version},
            "ownerReferences": [reference],
        },
        "spec": {"containers": [{"name": "main", "image": image}]},
    }


def edited_rollback_target(story: Story) -> None:
    good = story.released("busybox:1")
    (passed,) = sets(story)
    bad = story.release("nosuch:1")
    user = editor(story.kubectl)
    evil = '[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"evil:1"}]'
    user("patch", "replicaset", passed["metadata"]["name"], "--type=json", "-p", evil)
    release = story.until(bad, "Failed")
    assert release.condition("RolledBack")["status"] == "True"
    assert story.version() == good
    # the template comes from the history, which no editor may write
    assert story.get()["spec"]["template"]["spec"]["containers"][0]["image"] == "busybox:1"


def unreadable_times(story: Story) -> None:
    """The API server stores the year 0 in `managedFields` and in Events, if a user sends it."""
    good = story.released("busybox:1")
    user, year = editor(story.kubectl), "0000-01-01T00:00:00Z"
    bad = json.loads(user("get", story.kind.resource, NAME, "-o", "json", "--show-managed-fields"))
    bad["spec"]["template"]["spec"]["containers"][0]["image"] = "nosuch:1"
    for entry in bad["metadata"]["managedFields"]:
        entry["time"] = year
    user("replace", "-f", "-", stdin=json.dumps(bad))
    version = story.version()
    assert version != good
    pods = eventually(lambda: [pod for pod in story.pods() if not ready_or_old(pod)], "a pod of it")
    for pod in pods:
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": "forged-"},
            "involvedObject": {"kind": "Pod", **{key: pod["metadata"][key] for key in ("name", "namespace", "uid")}},
            "reason": "Pulling",
            "lastTimestamp": year,
        }
        user("create", "-f", "-", stdin=json.dumps(event))
    story.until(version, "Failed")
    assert story.version() == good


def orphaned_and_created_again(story: Story) -> None:
    eventually(lambda: is_known_to_garbage_collection(story), "the garbage collector to know ChangeWorkloads")
    # the entry of the history can be orphaned and adopted only if it was written as Go writes these characters
    pod = {"containers": [container("busybox:1", command=["sh", "-c", "check && serve <in >out"])]}
    version = story.released("busybox:1", pod=pod)
    story.fail(version)
    since, deleted = story.labels()[labels.SUSPEND], story.get()["metadata"]["uid"]
    story.kubectl("delete", story.kind.resource, NAME, "--cascade=orphan")

    def orphaned() -> bool:
        releases = story.kubectl.json("changeworkloads")["items"]
        assert releases
        entries = story.kubectl.json("controllerrevisions")["items"]
        dependents = (*releases, *entries, *sets(story), *story.pods())
        owners = [each["metadata"].get("ownerReferences", []) for each in dependents]
        return deleted not in {owner["uid"] for each in owners for owner in each}

    eventually(orphaned, "the pods, ChangeWorkloads and ControllerRevisions to be orphaned")
    editor(story.kubectl)("apply", "-f", "-", stdin=json.dumps(story.kind.manifest(NAME, "busybox:1", pod=pod)))
    assert story.labels()[labels.SUSPEND] == since
    uid = story.get()["metadata"]["uid"]

    def adopted() -> bool:
        (release,) = story.kubectl.json("changeworkloads")["items"]
        return [each["uid"] for each in release["metadata"].get("ownerReferences", [])] == [uid]

    eventually(adopted, "the ChangeWorkload to be adopted")
    stays(lambda: is_suspended(story, version))


def is_known_to_garbage_collection(story: Story) -> bool:
    """The garbage collector of Kubernetes looks for new kinds every 30 s. It deletes orphans of kinds that it does not
    know."""
    crd = story.kubectl.json("crd", "changeworkloads.app.ops.cloud.alipay.com")
    return time.time() > unix(crd["metadata"]["creationTimestamp"]) + 45


def long_names(story: Story) -> None:
    shared = "a" * 210
    for name in (f"{shared}-one", f"{shared}-two"):
        manifest = story.kind.manifest("app", "busybox:1")
        manifest["metadata"]["name"] = name
        manifest["spec"]["selector"]["matchLabels"] = manifest["spec"]["template"]["metadata"]["labels"] = {
            "app": name[-3:]
        }
        story.kubectl.apply(json.dumps(manifest))
    story.kubectl("set", "image", "deployment", f"{shared}-two", "main=busybox:2")

    def both() -> bool:
        items = story.kubectl.json("changeworkloads")["items"]
        found = sorted((each["spec"]["serviceName"][-3:], each.get("status", {}).get("status", "")) for each in items)
        return found == [("one", "Success"), ("two", "Success")]

    eventually(both, "a release of each")
    stays(both)


def selector_with_our_label(story: Story) -> None:
    manifest = story.kind.manifest(NAME, "busybox:1")
    dry = story.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(manifest))
    version = json.loads(dry)["metadata"]["labels"][labels.VERSION]
    manifest["spec"]["selector"]["matchLabels"] = {"app": NAME, labels.VERSION: version}
    manifest["spec"]["template"]["metadata"]["labels"][labels.VERSION] = version
    user = editor(story.kubectl)
    user("create", "-f", "-", stdin=json.dumps(manifest))
    assert story.version() == version
    story.until(version, "Success")
    assert len(story.pods()) == 3
    user("label", "--overwrite", "pod", story.pods()[0]["metadata"]["name"], f"{labels.VERSION}={FORGED}")
    eventually(lambda: len(story.pods()) == 4, "the pod that the selector does not match any more to be replaced")
    stays(lambda: len(story.pods()) == 4 and len(sets(story)) == 1)
    assert story.until(version, "Success")


def selector_with_any_version(story: Story) -> None:
    manifest = story.kind.manifest(NAME, "busybox:1")
    manifest["spec"]["selector"]["matchExpressions"] = [{"key": labels.VERSION, "operator": "Exists"}]
    manifest["spec"]["template"]["metadata"]["labels"][labels.VERSION] = FORGED
    user = editor(story.kubectl)
    user("create", "-f", "-", stdin=json.dumps(manifest))
    version = story.version()
    assert version != FORGED
    story.until(version, "Success")
    failed = story.fail(version)
    user("label", "--overwrite", "pod", failed, f"{labels.VERSION}={FORGED}")
    stays(lambda: labels.SUSPEND in story.labels() and len(story.pods()) == 3)


def scaled_to_zero(story: Story) -> None:
    version = story.released("busybox:1")
    story.fail(version)
    user = editor(story.kubectl)
    user("scale", story.kind.resource, NAME, "--replicas=0")
    eventually(lambda: not story.pods(), "no pods")
    stays(lambda: is_suspended(story, version))
    assert story.until(version).states.count("Success") == 1, "the success from before"
    user("scale", story.kind.resource, NAME, "--replicas=3")
    story.until(version, "Success")  # its first pods are verified
    eventually(lambda: labels.SUSPEND not in story.labels(), "the suspend label to be removed")


def crashing_repair(story: Story) -> None:
    first = story.released("busybox:1")
    story.fail(first)
    since = story.labels()[labels.SUSPEND]
    repair = story.kind.manifest(NAME, BAD)
    repair["metadata"]["labels"][labels.IGNORED_SUSPEND] = "true"
    editor(story.kubectl)("apply", "-f", "-", stdin=json.dumps(repair))
    version = story.version()
    assert version != first

    def has_ended() -> bool:
        assert story.labels()[labels.SUSPEND] == since
        return story.until(version).state in ("Failed", "Suspend")

    eventually(has_ended, "the release to end")
    stays(lambda: story.labels().get(labels.SUSPEND) == since)
    assert "Success" not in story.until(version).states


KINDS_OF_STORIES = (
    (forged_labels, (DEPLOYMENT, ORDERED, DAEMON_SET, CLONE_SET_IN_PLACE)),
    (operate_finished_label_in_the_template, (DEPLOYMENT, ORDERED)),
    (owners_of_another_namespace, (DEPLOYMENT, PARALLEL)),
    (edited_rollback_target, (DEPLOYMENT,)),
    (unreadable_times, (DEPLOYMENT, PARALLEL)),
    (orphaned_and_created_again, (DEPLOYMENT, ORDERED, DAEMON_SET, CLONE_SET)),
    (long_names, (DEPLOYMENT,)),
    (selector_with_our_label, (DEPLOYMENT,)),
    (selector_with_any_version, (DEPLOYMENT,)),
    (scaled_to_zero, (DEPLOYMENT, ORDERED)),
    (crashing_repair, (DEPLOYMENT, PARALLEL, CLONE_SET_IN_PLACE)),
)
STORIES = {f"{story.__name__}-{kind.id}": (story, kind) for story, kinds in KINDS_OF_STORIES for kind in kinds}


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest, installed: Path) -> Iterator[StoryResults]:
    with running_stories(request, installed, STORIES) as results:
        yield results


@pytest.mark.parametrize("name", STORIES)
def test_story_succeeds(results: StoryResults, name: str) -> None:
    if name not in results:
        pytest.skip("the cluster has no CloneSets")
    results[name].result()
