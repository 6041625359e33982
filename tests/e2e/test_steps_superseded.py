"""Versions of a Deployment that replace each other while they are held at their step. For Kubernetes, a pod of a
version that was held is never available: its controller removes such pods first, also if they serve."""

from tests.e2e import ready_pods
from tests.e2e.held_releases import apply, pods_by_version, policy, reach, rolling
from tests.e2e.sleep import release, sleep
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually

OWN = rolling(unavailable=0, surge=1)


def next_version(kubectl: Kubectl, image: str, replicas: int) -> str:
    """Release this image, and wait until its pods are up, or until its first pod is there if they never are."""
    version = apply(kubectl, sleep(image=image, replicas=replicas, strategy=OWN))
    if image.startswith("never-ready"):
        eventually(lambda: version in pods_by_version(kubectl), "the first pod of the version")
    else:
        reach(kubectl, version, 1, "Soaking")
    return version


def available(kubectl: Kubectl) -> Json:
    """The condition Available. The time of its last transition shows whether it was False in between."""
    found = kubectl.json("deployment", "sleep")["status"]["conditions"]
    condition: Json = next(each for each in found if each["type"] == "Available")
    return {name: condition[name] for name in ("status", "lastTransitionTime")}


def test_only_pod_serves_until_the_end_although_versions_replace_each_other(kubectl: Kubectl) -> None:
    base = release(kubectl, sleep(replicas=1, strategy=OWN))
    policy(kubectl, {"pods": [1], "soakSeconds": 600})
    before = available(kubectl)
    with ready_pods.watching(kubectl, 1) as ready:
        for image in ("second", "third", "never-ready:4", "fifth", "never-ready:6", "seventh"):
            version = next_version(kubectl, image, 1)
            assert pods_by_version(kubectl)[base] == 1
        assert ready.fewest == 1
    assert pods_by_version(kubectl) == {base: 1, version: 1}
    assert available(kubectl) == before


def test_pods_of_the_base_serve_although_versions_that_do_not_come_up_replace_each_other(kubectl: Kubectl) -> None:
    """The step has three of four pods, so two pods of the base are left beside the one above the replicas."""
    base = release(kubectl, sleep(replicas=4, strategy=OWN))
    policy(kubectl, {"pods": [3], "soakSeconds": 600})
    with ready_pods.watching(kubectl, 4) as ready:
        for image in ("second", "third", "fourth"):
            next_version(kubectl, image, 4)
        assert ready.fewest == 4
        for image in ("never-ready:5", "never-ready:6", "seventh"):
            version = next_version(kubectl, image, 4)
        assert ready.fewest >= 2
    eventually(lambda: pods_by_version(kubectl) == {base: 2, version: 3}, "the pods of the step")
