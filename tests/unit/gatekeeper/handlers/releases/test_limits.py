"""Admitted releases count for ReleaseLimits: at once in this process, and without a dry run."""

from typing import Any

import pytest

from altershield.api.gates.limits import Rate
from altershield.gates.freezes import FREEZES
from altershield.gates.limits import LIMITS
from tests.unit.altershield.gates.placed import freeze, limit
from tests.unit.gatekeeper.reviews import (
    RECONCILER,
    VALIDATE,
    StaticGates,
    StaticListers,
    ask,
    deployment,
    kind,
    release,
    released,
    review,
    validate,
    version_of,
)

pytestmark = pytest.mark.usefixtures("every_kind")

OLD, NEW = version_of(deployment()), version_of(deployment("busybox:2"))
LIMITED = StaticGates({LIMITS: [limit(rate=Rate(1, 3600))]})


def send(listers: StaticListers, name: str = "sleep", **request: Any) -> dict[str, Any]:
    """Release the second version of a workload with this name."""
    found: dict[str, Any] = ask(VALIDATE, review(released("busybox:2"), released(), name=name, **request), listers)
    return found


def test_the_own_admissions_close_a_limit_before_the_reconciler_counts_them() -> None:
    listers = StaticListers(gates=LIMITED)
    assert send(listers, "a")["allowed"]
    assert send(listers, "a")["allowed"], "the client repeats its request"
    denied = send(listers, "b")
    text = f"{kind()} b may not be released now: ReleaseLimit altershieldoperator-system/l: 1 release began within"
    assert text in denied["status"]["message"]
    causes = [each["reason"] for each in denied["status"]["details"]["causes"]]
    assert causes == ["ReleaseLimit", "OpensAt"]


def test_a_dry_run_and_a_denied_release_do_not_count() -> None:
    listers = StaticListers(gates=LIMITED)
    assert send(listers, "a", dryRun=True)["allowed"]
    assert send(listers, "b")["allowed"]
    both = StaticListers(gates=StaticGates({LIMITS: [limit(rate=Rate(1, 3600))], FREEZES: [freeze()]}))
    assert not send(both, "a")["allowed"]
    assert both.admissions.recent(0.0) == {}


def test_what_passes_a_limit_counts_too() -> None:
    back = StaticListers(gates=LIMITED, releases=release(OLD, status="Running", previous={"fingerprint": NEW}))
    assert send(back)["allowed"]
    assert not send(back, "b")["allowed"]
    own = StaticListers(gates=LIMITED, releases=release(OLD, status="Rollback", rollbackTarget={"fingerprint": NEW}))
    assert validate(released("busybox:2"), released(), own, user=RECONCILER)["allowed"]
    assert not send(own, "b")["allowed"]


def test_what_is_no_release_does_not_count() -> None:
    listers = StaticListers(gates=LIMITED)
    old = released()
    assert validate({**old, "spec": {**old["spec"], "replicas": 9}}, old, listers)["allowed"]
    assert listers.admissions.recent(0.0) == {}


def test_a_workload_rests_after_the_success_of_its_present_release() -> None:
    resting = StaticGates({LIMITS: [limit(quiet_seconds=604_800)]})
    now = 4_000_000_000  # the success lies in the future of this machine
    for state, allowed in (("Success", False), ("Running", True)):
        present = release(OLD, status=state, entryTimeUnix=now)
        assert send(StaticListers(gates=resting, releases=present))["allowed"] is allowed
