"""The identity of a StatefulSet's pods: name, ordinal, labels, claims. Pure functions.

The rules are those of pkg/controller/statefulset/stateful_set_utils.go.
"""

import re

from kube_base.resources import STATEFUL_SETS
from kube_sandbox.cluster.history import REVISION_LABEL
from kube_sandbox.cluster.kinds import Object, Pod
from kube_sandbox.cluster.pod_control import pod_body
from kube_sandbox.cluster.workload_kinds import StatefulSet

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"

_NAME = re.compile(r"(.*)-([0-9]+)")


def start(set_: StatefulSet) -> int:
    return set_.spec.ordinals.start if set_.spec.ordinals else 0


def ordinal(set_: StatefulSet, pod: Pod) -> int | None:
    """The ordinal of a pod; None if its name is not one of this StatefulSet."""
    match = _NAME.fullmatch(pod.metadata.name)
    return int(match.group(2)) if match and match.group(1) == set_.metadata.name else None


def revision(pod: Pod) -> str:
    return pod.metadata.labels.get(REVISION_LABEL, "")


def identity(set_: StatefulSet, number: int) -> dict[str, str]:
    """The labels that identify the pod with this ordinal."""
    return {POD_NAME_LABEL: f"{set_.metadata.name}-{number}", INDEX_LABEL: str(number)}


def has_identity(set_: StatefulSet, pod: Pod, number: int) -> bool:
    return identity(set_, number).items() <= pod.metadata.labels.items()


def body(set_: StatefulSet, number: int, template: Object, revision_name: str) -> Object:
    """The pod with this ordinal, made from the template of the revision."""
    name = f"{set_.metadata.name}-{number}"
    labels = {**identity(set_, number), REVISION_LABEL: revision_name}
    pod = pod_body(template, STATEFUL_SETS, set_.metadata, labels, name=name)
    spec = pod["spec"]
    spec["hostname"] = name
    if set_.spec.service_name:
        spec["subdomain"] = set_.spec.service_name
    if set_.spec.volume_claim_templates:
        own = {
            claim["metadata"]["name"]: {
                "name": claim["metadata"]["name"],
                "persistentVolumeClaim": {"claimName": claim_name(set_, claim, number)},
            }
            for claim in set_.spec.volume_claim_templates
        }
        others = [volume for volume in spec.get("volumes") or () if volume["name"] not in own]
        spec["volumes"] = [*own.values(), *others]
    return pod


def claim_name(set_: StatefulSet, claim: Object, number: int) -> str:
    return f"{claim['metadata']['name']}-{set_.metadata.name}-{number}"


def claims(set_: StatefulSet, number: int) -> list[Object]:
    """The PersistentVolumeClaims of the pod with this ordinal. They remain after the pod is deleted."""
    return [
        {
            **claim,
            "metadata": {
                **claim["metadata"],
                "name": claim_name(set_, claim, number),
                "namespace": set_.metadata.namespace,
                "labels": {**(claim["metadata"].get("labels") or {}), **set_.spec.selector.match_labels},
            },
        }
        for claim in set_.spec.volume_claim_templates
    ]
