"""Conversion of Events between `v1`, in which they are stored, and `events.k8s.io/v1`, which renames some fields."""

from kube_sandbox.apiserver.attributes import Object

_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_BACK = {new: core for core, new in _NAMES.items()}


_OPTIONAL = ("reportingComponent", "reportingInstance", "involvedObject")
"""Fields that `v1` always contains. `events.k8s.io/v1` omits them when they are empty."""


def from_core(event: Object) -> Object:
    return {_NAMES.get(key, key): value for key, value in event.items() if value or key not in _OPTIONAL}


def to_core(event: Object) -> Object:
    core = {_BACK.get(key, key): value for key, value in event.items()}
    return {"involvedObject": {}, "reportingComponent": "", "reportingInstance": "", **core}
