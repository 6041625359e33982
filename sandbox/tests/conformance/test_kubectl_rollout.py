"""Releases of Deployments with `kubectl rollout`, `kubectl set` and `kubectl scale`."""

import json

import pytest

from conformance.manifests import deployment, text
from support.kubectl import Json, Kubectl
from support.polling import eventually

REVISION = "deployment.kubernetes.io/revision"


def start(space: Kubectl, name: str, **spec: object) -> None:
    space("apply", "-f", "-", stdin=text(deployment(name, **spec)))  # type: ignore[arg-type]
    status(space, name)


def status(space: Kubectl, name: str) -> str:
    return space("rollout", "status", f"deployment/{name}")


def image(space: Kubectl, name: str) -> str:
    return space("get", "deployment", name, "-o", "jsonpath={.spec.template.spec.containers[0].image}")


def revision(space: Kubectl, name: str) -> str:
    return str(space.json("deployment", name)["metadata"]["annotations"][REVISION])


def condition(deployment: Json, type_: str) -> Json:
    found = [one for one in deployment["status"].get("conditions", ()) if one["type"] == type_]
    return found[0] if found else {}


def test_rollout_history_undo_and_restart_work_for_a_deployment(space: Kubectl) -> None:
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


def test_set_env_and_set_resources_change_the_template(space: Kubectl) -> None:
    start(space, "settings")
    space("set", "env", "deployment/settings", "A=1")
    space("set", "resources", "deployment/settings", "--limits=cpu=100m")
    container = space.json("deployment", "settings")["spec"]["template"]["spec"]["containers"][0]
    assert container["env"] == [{"name": "A", "value": "1"}]
    assert container["resources"]["limits"] == {"cpu": "100m"}
    space("set", "env", "deployment/settings", "A-")
    status(space, "settings")


def test_scale_with_another_number_of_current_replicas_fails(space: Kubectl) -> None:
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
    eventually(lambda: not space("get", "pods", "-l", "app=sized", "-o", "name"), "the pods to be deleted")


def test_paused_deployment_is_released_on_resume(space: Kubectl) -> None:
    start(space, "paused")
    space("rollout", "pause", "deployment/paused")
    space("set", "image", "deployment/paused", "main=busybox:2")
    paused = eventually(
        lambda: (
            (found := space.json("deployment", "paused"))["status"]["observedGeneration"]
            == found["metadata"]["generation"]
            and found
        ),
        "the controller to process the change",
    )
    assert condition(paused, "Progressing")["reason"] == "DeploymentPaused"
    assert len(space.json("replicasets", "-l", "app=paused")["items"]) == 1
    assert "can't restart paused deployment" in space.run("rollout", "restart", "deployment/paused").stderr
    space("rollout", "resume", "deployment/paused")
    status(space, "paused")
    assert revision(space, "paused") == "2"


def test_bad_release_stops_at_max_unavailable(space: Kubectl) -> None:
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

    eventually(lambda: (sizes(), counts()) == ([2, 3], [3, 2, 2]), "the rollout to stop")
    space("rollout", "undo", "deployment/careful")
    status(space, "careful")
    eventually(lambda: sizes() == [0, 4], "the old pods to be restored")


def test_recreate_scales_the_old_replica_set_to_zero(space: Kubectl) -> None:
    start(space, "renewed", replicas=2, strategy={"type": "Recreate"})
    space("set", "image", "deployment/renewed", "main=busybox:2")
    status(space, "renewed")
    sets = space.json("replicasets", "-l", "app=renewed")["items"]
    assert sorted(rs["spec"]["replicas"] for rs in sets) == [0, 2]


def test_ready_pod_is_not_available_before_min_ready_seconds(space: Kubectl) -> None:
    space("apply", "-f", "-", stdin=text(deployment("patient", minReadySeconds=60)))
    space.wait("deployment/patient", "jsonpath={.status.readyReplicas}=1")
    state = space.json("deployment", "patient")["status"]
    assert "availableReplicas" not in state
    assert state["unavailableReplicas"] == 1


def test_release_without_progress_exceeds_its_deadline(space: Kubectl) -> None:
    space(
        "apply", "-f", "-", stdin=text(deployment("late", image="never-ready", progressDeadlineSeconds=1)),
    )  # fmt: skip
    space.wait("deployment/late", "condition=Progressing=False")
    late = condition(space.json("deployment", "late"), "Progressing")
    assert late["reason"] == "ProgressDeadlineExceeded"
    assert (
        'deployment "late" exceeded its progress deadline' in space.run("rollout", "status", "deployment/late").stderr
    )


def test_old_revisions_beyond_the_limit_are_deleted(space: Kubectl) -> None:
    start(space, "short", revisionHistoryLimit=1)
    for tag in ("2", "3"):
        space("set", "image", "deployment/short", f"main=busybox:{tag}")
        status(space, "short")
    eventually(
        lambda: len(space.json("replicasets", "-l", "app=short")["items"]) == 2, "the oldest ReplicaSet to be deleted"
    )


@pytest.mark.parametrize(
    ("name", "shown"),
    [("nosuch", "ImagePullBackOff"), ("crash", "CrashLoopBackOff"), ("never-ready", "Running"), ("slow", "Running")],
)
def test_image_name_decides_the_state_of_the_pod(space: Kubectl, name: str, shown: str) -> None:
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
        eventually(
            lambda: "Back-off pulling image" in space("get", "pod", "image-nosuch", "-o", path),
            "the reason of the waiting container",
        )
    space("delete", "pod", f"image-{name}", "--wait=false")


def test_deleted_pod_is_replaced(space: Kubectl) -> None:
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
