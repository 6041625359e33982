"""Workloads whose strategies can be held, and the holds in them."""

import msgspec

from altershield.api.annotations import ROLLOUT
from altershield.workloads.hold import Hold
from tests.unit.gatekeeper.reviews import Object, about, released

STRATEGIES: dict[str, Object] = {
    "Deployment": {
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        "progressDeadlineSeconds": 600,
    },
    "StatefulSet": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}},
    "DaemonSet": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}},
    "CloneSet": {"updateStrategy": {"type": "ReCreate", "partition": 0}},
}


def workload(image: str = "busybox", **own: str) -> Object:
    found = released(image, **own)
    status = {"desiredNumberScheduled": 5}
    return {**found, "spec": {**found["spec"], **STRATEGIES[about().kind]}, "status": status}


def hold_of(obj: Object) -> Hold:
    return msgspec.json.decode(obj["metadata"]["annotations"][ROLLOUT], type=Hold)
