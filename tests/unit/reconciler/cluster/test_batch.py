"""The projection of a ChangePod."""

from altershield.api.change_pod import ChangePod, ChangePodSpec
from altershield.api.pod_verdicts import PodInfo
from kube_base.meta import ObjectMeta
from reconciler.cluster.batch import project
from tests.unit.altershield.workloads.objects import pod


def test_member_shares_the_texts_of_its_pod_and_never_takes_the_uid_of_another_pod() -> None:
    known = pod(name="web-1", uid="uid-1")
    spec = ChangePodSpec("web", "", 0, (PodInfo("web-1", "uid-1"), PodInfo("web-1", "uid-of-the-pod-before")))
    made = ChangePod(ObjectMeta(name="web-pods-1", namespace="shop"), spec)
    same, before = project(made, lambda namespace, name: known).members
    assert same.pod is known.metadata.name
    assert (same.uid, before.uid) == ("uid-1", "uid-of-the-pod-before")
