"""Rolling updates as `kubectl rollout`, `set` and `scale` start and show them."""

import json

import pytest

from conformance.manifests import deployment, text
from support.kubectl import Json, Kubectl, eventually

REVISION = "deployment.kubernetes.io/revision"


def start(space: Kubectl, name: str, **spec: object) -> None:
    space("apply", "-f", "-", stdin=text(deployment(name, **spec)))  # type: ignore[arg-type]
    status(space, name)


def status(space: Kubectl, name: str) -> str:
    return space("rollout", "status", f"deployment/{name}", "--timeout=60s")


def image(space: Kubectl, name: str) -> str:
    return space("get", "deployment", name, "-o", "jsonpath={.spec.template.spec.containers[0].image}")


def revision(space: Kubectl, name: str) -> str:
    return str(space.json("deployment", name)["metadata"]["annotations"][REVISION])


def condition(deployment: Json, type_: str) -> Json:
    found = [one for one in deployment["status"].get("conditions", ()) if one["type"] == type_]
    return found[0] if found else {}


def test_history_undo_and_restart(space: Kubectl) -> None:
    start(space, "story")
    space("set", "image", "deployment/story", "main=busybox:2")
    assert status(space, "story").endswith('deployment "story" successfully rolled out\n')
    history = space("rollout", "history", "deployment/story").splitlines()
    assert [line.split()[0] for line in history[2:] if line] == ["1", "2"]
    assert "busybox:2" in space("rollout", "history", "deployment/story", "--revision=2")
    space("rollout", "undo", "deployment/story")
    status(space, "story")
    assert (image(space, "story"), revision(space, "story")) == ("busybox", "3")
    space("rollout", "undo", "deployment/story", "--to-revision=2")
    status(space, "story")
    assert (image(space, "story"), revision(space, "story")) == ("busybox:2", "4")
    assert (
        "unable to find specified revision 9"
        in space.run("rollout", "undo", "deployment/story", "--to-revision=9").stderr
    )
    before = set(space("get", "pods", "-l", "app=story", "-o", "name").split())
    space("rollout", "restart", "deployment/story")
    status(space, "story")
    eventually(lambda: not before & set(space("get", "pods", "-l", "app=story", "-o", "name").split()), "new pods")
    template = space.json("deployment", "story")["spec"]["template"]["metadata"]
    assert "kubectl.kubernetes.io/restartedAt" in template["annotations"]


def test_set_env_and_resources_are_releases(space: Kubectl) -> None:
    start(space, "settings")
    space("set", "env", "deployment/settings", "A=1")
    space("set", "resources", "deployment/settings", "--limits=cpu=100m")
    container = space.json("deployment", "settings")["spec"]["template"]["spec"]["containers"][0]
    assert container["env"] == [{"name": "A", "value": "1"}]
    assert container["resources"]["limits"] == {"cpu": "100m"}
    space("set", "env", "deployment/settings", "A-")
    status(space, "settings")


def test_scale_with_a_precondition(space: Kubectl) -> None:
    start(space, "sized")
    generation = space.json("deployment", "sized")["metadata"]["generation"]
    assert space("scale", "deployment/sized", "--replicas=3") == "deployment.apps/sized scaled\n"
    status(space, "sized")
    scaled = space.json("deployment", "sized")
    assert scaled["metadata"]["generation"] == generation + 1
    assert revision(space, "sized") == "1"
    refused = space.run("scale", "deployment/sized", "--current-replicas=9", "--replicas=1")
    assert "Expected replicas to be 9, was 3" in refused.stderr
    space("scale", "deployment/sized", "--replicas=0")
    eventually(lambda: not space("get", "pods", "-l", "app=sized", "-o", "name"), "the pods to go")


def test_a_paused_deployment_gathers_changes(space: Kubectl) -> None:
    start(space, "paused")
    space("rollout", "pause", "deployment/paused")
    space("set", "image", "deployment/paused", "main=busybox:2")
    paused = eventually(
        lambda: (
            (found := space.json("deployment", "paused"))["status"]["observedGeneration"]
            == found["metadata"]["generation"]
            and found
        ),
        "the change to be seen",
    )
    assert condition(paused, "Progressing")["reason"] == "DeploymentPaused"
    assert len(space.json("replicasets", "-l", "app=paused")["items"]) == 1
    assert "can't restart paused deployment" in space.run("rollout", "restart", "deployment/paused").stderr
    space("rollout", "resume", "deployment/paused")
    status(space, "paused")
    assert revision(space, "paused") == "2"


def test_max_unavailable_keeps_the_old_pods_of_a_bad_release(space: Kubectl) -> None:
    start(
        space, "careful", replicas=4,
        strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
    )  # fmt: skip
    space("set", "image", "deployment/careful", "main=nosuch")
    eventually(
        lambda: "ImagePullBackOff" in space("get", "pods", "-l", "app=careful"), "pods that cannot pull their image"
    )

    def sizes() -> list[int]:
        return sorted(rs["spec"]["replicas"] for rs in space.json("replicasets", "-l", "app=careful")["items"])

    def counts() -> list[int]:
        state = space.json("deployment", "careful")["status"]
        return [state.get(f"{each}Replicas", 0) for each in ("ready", "unavailable", "updated")]

    eventually(lambda: (sizes(), counts()) == ([2, 3], [3, 2, 2]), "the rollout to halt")
    space("rollout", "undo", "deployment/careful")
    status(space, "careful")
    eventually(lambda: sizes() == [0, 4], "the old pods to be back")


def test_recreate_ends_the_old_before_the_new(space: Kubectl) -> None:
    start(space, "renewed", replicas=2, strategy={"type": "Recreate"})
    space("set", "image", "deployment/renewed", "main=busybox:2")
    status(space, "renewed")
    sets = space.json("replicasets", "-l", "app=renewed")["items"]
    assert sorted(rs["spec"]["replicas"] for rs in sets) == [0, 2]


def test_min_ready_seconds_delay_availability(space: Kubectl) -> None:
    space("apply", "-f", "-", stdin=text(deployment("patient", minReadySeconds=60)))
    space.wait("deployment/patient", "jsonpath={.status.readyReplicas}=1")
    state = space.json("deployment", "patient")["status"]
    assert "availableReplicas" not in state
    assert state["unavailableReplicas"] == 1


def test_a_release_without_progress_is_said_to_be_late(space: Kubectl) -> None:
    space(
        "apply", "-f", "-", stdin=text(deployment("late", image="never-ready", progressDeadlineSeconds=1)),
    )  # fmt: skip
    space.wait("deployment/late", "condition=Progressing=False")
    late = condition(space.json("deployment", "late"), "Progressing")
    assert late["reason"] == "ProgressDeadlineExceeded"
    assert (
        'deployment "late" exceeded its progress deadline' in space.run("rollout", "status", "deployment/late").stderr
    )


def test_old_revisions_are_forgotten(space: Kubectl) -> None:
    start(space, "short", revisionHistoryLimit=1)
    for tag in ("2", "3"):
        space("set", "image", "deployment/short", f"main=busybox:{tag}")
        status(space, "short")
    eventually(lambda: len(space.json("replicasets", "-l", "app=short")["items"]) == 2, "the oldest ReplicaSet to go")


@pytest.mark.parametrize(
    ("name", "shown"),
    [("nosuch", "ImagePullBackOff"), ("crash", "CrashLoopBackOff"), ("never-ready", "Running"), ("slow", "Running")],
)
def test_images_behave_as_their_names_say(space: Kubectl, name: str, shown: str) -> None:
    space("run", f"image-{name}", f"--image=example.com/{name}:1")
    eventually(lambda: shown in space("get", "pod", f"image-{name}"), shown)
    if name == "slow":
        space.wait(f"pod/image-{name}", "condition=Ready")
    elif name == "never-ready":
        assert "0/1" in space("get", "pod", f"image-{name}")
    elif name == "crash":
        container = space.json("pod", f"image-{name}")["status"]["containerStatuses"][0]
        assert container["lastState"]["terminated"]["exitCode"] == 1
    else:
        path = "jsonpath={.status.containerStatuses[0].state.waiting.message}"
        eventually(lambda: "Back-off pulling image" in space("get", "pod", "image-nosuch", "-o", path), "why it waits")
    space("delete", "pod", f"image-{name}", "--wait=false")


def test_a_lost_pod_is_replaced(space: Kubectl) -> None:
    start(space, "lost")
    pod = space("get", "pods", "-l", "app=lost", "-o", "name").strip()
    space("delete", pod)
    eventually(
        lambda: (
            json.loads(space("get", "deployment", "lost", "-o", "json"))["status"].get("readyReplicas") == 1
            and pod not in space("get", "pods", "-l", "app=lost", "-o", "name")
        ),
        "another pod",
    )
