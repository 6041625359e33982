"""Annotations of the version before: a pause after a failure, without steps."""

import json

import msgspec

from altershield.api.annotations import ROLLOUT
from altershield.workloads import BY_KIND, held, hold
from kube_base.resources import GroupKind

ADAPTER = BY_KIND[GroupKind("apps", "Deployment")]
PAUSE = {"version": "v2", "causes": [{"by": "pause", "reason": "failed"}], "fields": {"/spec/paused": None}}


def test_a_pause_of_before_is_kept_and_is_no_release_in_steps() -> None:
    annotations = {ROLLOUT: json.dumps(PAUSE)}
    known = hold.read(annotations)
    assert known is not None
    assert (known.rollout, [each.by for each in known.causes]) == (None, [hold.PAUSE])
    assert held.steps(annotations) is None
    raw = {"metadata": {"annotations": annotations}, "spec": {"paused": True}}
    assert held.restoration(ADAPTER, raw) == [], "letting go of steps leaves the pause"


def test_fields_of_a_later_version_are_not_written_back() -> None:
    later = {**PAUSE, "causes": [{"by": "steps", "pods": 1}], "rollout": {"pods": [1]}, "later": 7}
    known = held.steps({ROLLOUT: json.dumps(later)})
    assert known is not None
    assert "later" not in msgspec.json.decode(msgspec.json.encode(known)), "a write of this version loses the field"
