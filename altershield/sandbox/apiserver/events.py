"""Events have two faces over one storage: `v1` and `events.k8s.io/v1`, which names some fields differently."""

from altershield.sandbox.apiserver.attributes import Object

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


def from_core(event: Object) -> Object:
    return {_NAMES.get(key, key): value for key, value in event.items()}


def to_core(event: Object) -> Object:
    return {_BACK.get(key, key): value for key, value in event.items()}
