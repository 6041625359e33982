"""Which spec of a stored DefensePolicy is in force at admission."""

from typing import Any

import msgspec
import pytest

from altershield.api.policy import Mode
from altershield.api.rollout import Rollout
from altershield.policies.stored import read

STEPS = {"rollout": {"pods": [1, "30%"]}}
ACCEPTED = {"accepted": {"mode": "warn"}, "acceptedGeneration": 1}


def in_force(spec: Any, status: Any = None, **metadata: Any) -> Any:
    head = {"namespace": "shop", "name": "web", "generation": 2, **metadata}
    obj = {"metadata": head, "spec": spec, "status": status or {}}
    return read(msgspec.json.encode(obj)).in_force


def test_accepted_spec_is_in_force_if_it_is_up_to_date() -> None:
    found = in_force(STEPS, {**ACCEPTED, "observedGeneration": 2})
    assert (found.generation, found.spec.mode, found.spec.rollout) == (1, Mode.WARN, None)
    assert (found.namespace, found.name) == ("shop", "web")


def test_new_spec_is_in_force_until_the_reconciler_has_seen_it() -> None:
    found = in_force(STEPS, {**ACCEPTED, "observedGeneration": 1})
    assert (found.generation, found.spec.rollout) == (2, Rollout(pods=(1, "30%")))
    assert in_force({}).generation == 2


@pytest.mark.parametrize("spec", [{"selector": 7}, {"mode": "later"}, {"rollout": {"pods": {}}}, []])
def test_accepted_spec_is_in_force_if_the_new_one_cannot_be_read(spec: Any) -> None:
    assert in_force(spec, {**ACCEPTED, "observedGeneration": 1}).spec.mode is Mode.WARN
    assert in_force(spec) is None


def test_rejected_and_deleted_policies_do_not_count() -> None:
    assert in_force(STEPS, {"observedGeneration": 2}) is None
    assert in_force(STEPS, {**ACCEPTED, "observedGeneration": 2}, deletionTimestamp="2026-01-01T00:00:00Z") is None


def test_checks_of_a_later_version_do_not_matter() -> None:
    assert in_force({**STEPS, "checks": [{"name": 7, "phase": "Later"}]}).spec.rollout is not None
