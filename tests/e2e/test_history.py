"""The history of workloads: who released which version, how it ended, and the way back to any of them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from altershield.api import labels
from altershield.api.released_by import ANNOTATION as RELEASED_BY
from altershield.releases.history import ANNOTATION
from tests.e2e.kinds import DEPLOYMENT, KINDS, Kind
from tests.e2e.sleep import TEMPLATE_PATCH, VERSION, release, sleep, succeed, suspend
from tests.e2e.story import NAME, Story, StoryResults, running_stories
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually
from tests.support.processes import Run

pytestmark = pytest.mark.xdist_group("e2e")


RECREATE = Kind("deployment-recreate", "Deployment", {"strategy": {"type": "Recreate"}})


def entries(kubectl: Kubectl, name: str = NAME) -> dict[str, Json]:
    """The entries of the history, by version."""
    found = kubectl.json("controllerrevisions", "-l", f"{labels.HISTORY}={name}")["items"]
    return {each["data"]["version"]: each for each in found}


def record(kubectl: Kubectl, version: str, name: str = NAME) -> Json:
    found: Json = json.loads(entries(kubectl, name)[version]["metadata"]["annotations"][ANNOTATION])
    return found


def revisions(story: Story) -> list[str]:
    """The images of the templates in the objects of the workload's controller."""
    if story.kind.kind == "Deployment":
        found = [each["spec"]["template"] for each in story.kubectl.json("replicasets")["items"]]
    else:
        listed = story.kubectl.json("controllerrevisions", "-l", f"!{labels.HISTORY}")["items"]
        found = [each["data"]["spec"]["template"] for each in listed]
    return [each["spec"]["containers"][0]["image"] for each in found]


def goes_back_to_a_version_that_only_the_history_holds(story: Story) -> None:
    kubectl = story.kubectl
    first = story.released("busybox:1", revisionHistoryLimit=0)
    second = story.released("busybox:2", revisionHistoryLimit=0)
    third = story.released("busybox:3", revisionHistoryLimit=0)
    eventually(lambda: "busybox:1" not in revisions(story), "the revision of the first version to be deleted")
    assert {version: record(kubectl, version)["state"] for version in entries(kubectl)} == {
        first: "Success",
        second: "Success",
        third: "Success",
    }
    for entry in entries(kubectl).values():
        (owner,) = entry["metadata"]["ownerReferences"]
        controls = story.kind.kind != "DaemonSet"  # whose controller releases what it does not select
        assert (owner["kind"], owner["name"], owner.get("controller", False)) == (story.kind.kind, NAME, controls)
        assert labels.VERSION not in entry["data"]["spec"]["template"]["metadata"]["labels"]
    user = json.loads(story.get()["metadata"]["annotations"][RELEASED_BY])["user"]
    assert {record(kubectl, version)["releasedBy"] for version in (first, second, third)} == {user}

    patch = {"status": {"status": "Rollback", "rollbackTo": first}}
    name = story.kind.change_workload_name(NAME, third)
    answer = kubectl.merge("changeworkload", name, patch, "status")
    assert answer[0] == 200, answer
    story.until(third, "Failed")
    assert story.version() == first
    story.until_all_ready("busybox:1")
    eventually(
        lambda: "system:serviceaccount:" in record(kubectl, first)["releasedBy"], "the new release in the history"
    )
    eventually(lambda: record(kubectl, third)["state"] == "Failed", "the end of the third version in the history")
    assert record(kubectl, third)["reason"] == "Requested"
    assert record(kubectl, first)["state"] == "Success"
    assert story.get()["spec"]["template"]["metadata"]["labels"][labels.VERSION] == first
    assert len(entries(kubectl)) == 3


STORIES = {
    f"{goes_back_to_a_version_that_only_the_history_holds.__name__}-{kind.id}": (
        goes_back_to_a_version_that_only_the_history_holds,
        kind,
    )
    for kind in (*KINDS, RECREATE)
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


def test_command_shows_versions_templates_and_differences(kubectl: Kubectl, altershield: Run) -> None:
    assert "not found" in altershield("history", "deploy/sleep", code=1).stderr
    first = release(kubectl)
    second = release(kubectl, sleep(seconds="3600"))
    suspend(kubectl, second)
    eventually(lambda: record(kubectl, second, "sleep")["state"] == "Suspend", "the suspension in the history")
    user = json.loads(kubectl.json("deployment", "sleep")["metadata"]["annotations"][RELEASED_BY])["user"]

    header, *lines = altershield("history", "deploy/sleep").stdout.splitlines()
    assert header.split() == ["NUMBER", "VERSION", "IMAGES", "WAY", "RELEASED", "BY", "STATE", "MESSAGE"]
    newest, oldest = (line.split() for line in lines)
    assert (*newest[:4], *newest[5:7]) == ("2", second[:12] + "*", "busybox", "Release", user, "Suspend")
    assert (*oldest[:4], *oldest[5:7]) == ("1", first[:12], "busybox", "Release", user, "Success")
    assert "find error" in lines[0]
    wide = altershield("history", "sleep", "-o", "wide").stdout
    assert second in wide
    assert "FailedByPerson" in wide

    template = yaml.safe_load(altershield("history", "deploy/sleep", "--version", first[:8]).stdout)
    assert template["spec"]["containers"][0]["command"] == ["/bin/sleep", "infinity"]
    assert VERSION not in template["metadata"]["labels"]
    same = altershield("history", "deploy/sleep", "--version", first, "-o", "json").stdout
    assert json.loads(same) == template
    diff = altershield("history", "deploy/sleep", "--diff", first, second).stdout.splitlines()
    assert diff[:2] == [f"--- {first}", f"+++ {second}"]
    assert [line.split()[-1] for line in diff if line[0] in "+-" and line[1] == " "] == ["infinity", "'3600'"]
    listed = json.loads(altershield("history", "deploy/sleep", "-o", "json").stdout)
    assert [each["data"]["version"] for each in listed["items"]] == [second, first]

    unknown = altershield("history", "deploy/sleep", "--version", "0000", code=1).stderr
    assert f"name one of: {second[:12]}, {first[:12]}" in unknown
    assert "cannot be combined" in altershield("history", "sleep", "--version", "1", "--diff", "1", "2", code=2).stderr


@pytest.mark.parametrize("by", ["version", "number"])
def test_rollback_to_a_release_of_the_history_is_a_release_of_its_own(
    kubectl: Kubectl, altershield: Run, by: str
) -> None:
    first = release(kubectl)
    second = release(kubectl, sleep(seconds="3600"))
    altershield("rollback", "deploy/sleep", "--to", first[:12] if by == "version" else "1", "-m", "too slow")
    eventually(lambda: kubectl.labels("deployment", "sleep")[VERSION] == first, "the rollback")
    succeed(kubectl, first)
    user = record(kubectl, second, "sleep")["releasedBy"]

    def log() -> list[tuple[str, ...]]:
        _, *lines = altershield("history", "deploy/sleep").stdout.splitlines()
        found = (line.split() for line in lines)
        return [(number, version, way, by, state) for number, version, _, way, _, by, state, *_ in found]

    wanted = [
        ("3", f"{first[:12]}*", "Rollback", user, "Success"),
        ("2", second[:12], "Release", user, "Failed"),
        ("1", first[:12], "Release", user, "Success"),
    ]
    eventually(lambda: log() == wanted, f"the history {wanted}")


def test_workload_whose_selector_matches_other_objects_has_no_history(kubectl: Kubectl, altershield: Run) -> None:
    """Its controller would take the entries as its own revisions."""
    selector = {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]}
    version = release(kubectl, json.dumps(DEPLOYMENT.manifest("sleep", "busybox:1", selector=selector)))
    succeed(kubectl, version)
    assert entries(kubectl, "sleep") == {}
    assert "has no history" in altershield("history", "sleep", code=1).stderr


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_workload_that_selects_everything_takes_no_entry_of_another_workload(kubectl: Kubectl, kind: str) -> None:
    """Its controller adopts ControllerRevisions without a controller, and deletes the oldest ones."""
    first = release(kubectl)
    selector = {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]}
    spec = {"selector": selector, "revisionHistoryLimit": 0}
    greedy = Kind("greedy", kind, {"serviceName": "app"} if kind == "StatefulSet" else {})

    def rolled_out(image: str) -> str:
        kubectl.apply(json.dumps(greedy.manifest("greedy", image, replicas=1, **spec)))
        kubectl("rollout", "status", f"{greedy.resource}/greedy")
        (own,) = [
            each["metadata"]["name"]
            for each in kubectl.json("controllerrevisions", "-l", f"!{labels.HISTORY}")["items"]
            if each["data"]["spec"]["template"]["spec"]["containers"][0]["image"] == image
        ]
        return str(own)

    before = rolled_out("busybox:1")
    rolled_out("busybox:2")
    eventually(lambda: not kubectl.exists("controllerrevision", before), "the old revision to be deleted")
    (entry,) = entries(kubectl, "sleep").values()
    assert entry["data"]["version"] == first
    assert [owner["name"] for owner in entry["metadata"]["ownerReferences"]] == ["sleep"]


def test_annotation_of_a_release_is_restored_in_every_way_to_change_it(kubectl: Kubectl) -> None:
    release(kubectl)

    def annotation() -> str:
        return str(kubectl.json("deployment", "sleep")["metadata"]["annotations"][RELEASED_BY])

    known = annotation()
    kubectl("annotate", "--overwrite", "deployment", "sleep", f"{RELEASED_BY}=nobody")
    assert annotation() == known
    kubectl("annotate", "deployment", "sleep", f"{RELEASED_BY}-")
    assert annotation() == known
    kubectl("replace", "-f", "-", stdin=sleep())
    assert annotation() == known
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=sleep())
    assert annotation() == known
    kubectl("patch", "deployment", "sleep", "--dry-run=server", "-p", TEMPLATE_PATCH)
    assert annotation() == known
    kubectl("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH)
    changed = json.loads(annotation())
    assert changed["version"] == kubectl.labels("deployment", "sleep")[VERSION] != json.loads(known)["version"]


def test_only_altershield_writes_the_history(kubectl: Kubectl) -> None:
    """A user who may write ControllerRevisions, but no workloads, gets no template of theirs released by a rollback."""
    version = release(kubectl)
    kubectl("create", "role", "tenant", "--verb=*", "--resource=controllerrevisions.apps")
    kubectl("create", "rolebinding", "tenant", "--role=tenant", "--user=tenant")
    tenant = Kubectl(kubectl.kubeconfig, kubectl.namespace, "--as=tenant")
    eventually(lambda: tenant.may_list("controllerrevisions"), "the role to be in effect")
    entry = entries(kubectl, "sleep")[version]
    name = entry["metadata"]["name"]
    assert tenant.run("annotate", "controllerrevision", name, "seen=yes").returncode == 0
    denials = [
        tenant.run("annotate", "--overwrite", "controllerrevision", name, f"{ANNOTATION}={{}}"),
        tenant.run("label", "controllerrevision", name, f"{labels.HISTORY}-"),
        tenant.run("patch", "controllerrevision", name, "--type=merge", "-p", '{"revision":99}'),
    ]
    forged = {**entry, "metadata": {k: entry["metadata"][k] for k in ("labels", "annotations", "ownerReferences")}}
    forged["metadata"]["name"] = f"sleep--x--{'0' * 32}"
    denials.append(tenant.run("create", "-f", "-", stdin=json.dumps(forged)))
    del forged["metadata"]["labels"]
    plain = tenant.run("create", "-f", "-", stdin=json.dumps(forged))
    assert plain.returncode == 0, "other ControllerRevisions are not protected"
    denials.append(tenant.run("label", "controllerrevision", forged["metadata"]["name"], f"{labels.HISTORY}=sleep"))
    for denied in denials:
        assert "only AlterShield writes the history of workloads" in denied.stderr, denied
    assert entries(kubectl, "sleep").keys() == {version}
    kubectl("create", "clusterrolebinding", kubectl.namespace, "--clusterrole=cluster-admin", "--user=backup")
    try:
        backup = Kubectl(kubectl.kubeconfig, kubectl.namespace, "--as=backup")
        eventually(
            lambda: (
                backup.run("label", "controllerrevision", name, f"{labels.HISTORY}=other", "--overwrite").returncode
                == 0
            ),
            "a user who may do everything to restore an entry",
        )
    finally:
        kubectl("delete", "clusterrolebinding", kubectl.namespace)


def test_entries_are_deleted_with_the_workload_and_the_controllers_ignore_them(kubectl: Kubectl) -> None:
    manifest = Kind("statefulset", "StatefulSet", {"serviceName": "app"}).manifest("sleep", "busybox:1", replicas=1)
    kubectl.apply(json.dumps(manifest))
    name = f"statefulset.sleep--x--{kubectl.labels('statefulset', 'sleep')[VERSION]}"
    eventually(lambda: kubectl.exists("changeworkload", name), name)
    kubectl.wait(f"changeworkload/{name}", "jsonpath={.status.status}=Success")
    (entry,) = entries(kubectl, "sleep").values()
    assert entry["metadata"]["name"] == name
    assert len(kubectl("rollout", "history", "statefulset/sleep").strip().splitlines()) == 3
    kubectl("delete", "statefulset", "sleep")
    eventually(lambda: not entries(kubectl, "sleep"), "the entries to be deleted")


def test_entry_whose_label_an_administrator_removed_is_replaced(kubectl: Kubectl) -> None:
    """The admission policies let AlterShield's account delete it."""
    first = release(kubectl)
    name = entries(kubectl, "sleep")[first]["metadata"]["name"]
    kubectl("label", "controllerrevision", name, f"{labels.HISTORY}-")
    kubectl("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH)
    succeed(kubectl, kubectl.labels("deployment", "sleep")[VERSION])
    kubectl("patch", "deployment", "sleep", "-p", TEMPLATE_PATCH.replace('"test"}', "null}"))
    assert kubectl.labels("deployment", "sleep")[VERSION] == first
    eventually(lambda: first in entries(kubectl, "sleep"), "the new entry")
