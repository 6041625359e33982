"""The decision, the reason and the audit annotations with which a request about a release ends."""

from typing import Any

import pytest

from altershield.api import labels
from gatekeeper.dispatch import decide
from gatekeeper.errors import ReviewError
from gatekeeper.handlers.releases import version
from gatekeeper.handlers.releases.reasons import Reason as ReleaseReason
from gatekeeper.response import Decision, Reason
from tests.unit.gatekeeper.reviews import (
    MUTATE,
    RECONCILER,
    VALIDATE,
    StaticListers,
    deployment,
    encode,
    mutate,
    release,
    released,
    review,
    rolling_back,
    route,
    version_of,
)

SUSPENDED = "1683791175"
OLD, NEW = version_of(deployment()), version_of(deployment("busybox:2"))
REASON = "deployment sleep is suspended"


def outcome(which: str, new: Any, old: Any = None, listers: StaticListers | None = None, **request: Any) -> Any:
    """The decision, the reason and the audit annotations."""
    served = route(which)
    wire = served.decode(encode(review(new, old, **request)))
    answer = decide(served, wire, listers or StaticListers())
    return answer.decision, answer.reason, dict(answer.audit)


def rolled_back() -> StaticListers:
    condition = {"type": "RolledBack", "status": "True", "reason": "PodNotUp", "message": "pods did not come up"}
    return StaticListers(releases=release(NEW, status="Failed", conditions=[condition]))


def suspended(**own: str) -> tuple[Any, Any]:
    return released("busybox:2", suspend=SUSPENDED, **own), released(suspend=SUSPENDED)


def test_created_workload_is_patched_with_reason_new_version() -> None:
    expected = (Decision.PATCHED, ReleaseReason.NEW_VERSION, {"version": OLD})
    assert outcome(MUTATE, deployment()) == expected


def test_workload_with_its_version_is_allowed_with_reason_new_version() -> None:
    stamped, _ = mutate(deployment())
    assert outcome(MUTATE, stamped) == (Decision.ALLOWED, ReleaseReason.NEW_VERSION, {"version": OLD})


def test_removed_label_is_restored_with_reason_restored() -> None:
    assert outcome(MUTATE, deployment(), released()) == (Decision.PATCHED, ReleaseReason.RESTORED, {})


def test_label_of_altershield_in_a_template_is_removed_with_reason_restored() -> None:
    new = released()
    new["spec"]["template"]["metadata"]["labels"][labels.SUSPEND] = "1"
    assert outcome(MUTATE, new, released()) == (Decision.PATCHED, ReleaseReason.RESTORED, {})


@pytest.mark.parametrize("in_template", [{}, {labels.SUSPEND: "1"}])
def test_change_of_another_label_is_allowed_with_reason_passed(in_template: dict[str, str]) -> None:
    new, old = released(), released()
    for each in (new, old):
        each["spec"]["template"]["metadata"]["labels"].update(in_template)
    new["metadata"]["labels"]["app"] = "other"
    assert outcome(MUTATE, new, old) == (Decision.ALLOWED, Reason.PASSED, {})


def test_release_of_a_suspended_workload_is_denied_with_reason_suspended() -> None:
    audit = {"version": NEW, "reason": REASON}
    assert outcome(VALIDATE, *suspended()) == (Decision.DENIED, ReleaseReason.SUSPENDED, audit)


def test_repair_is_allowed_with_its_bypass_in_the_audit_log() -> None:
    audit = {"version": NEW, "bypass": "ignored-suspend"}
    expected = (Decision.ALLOWED, ReleaseReason.IGNORED_SUSPEND, audit)
    assert outcome(VALIDATE, *suspended(ignored_suspend="true")) == expected


def test_release_of_the_reconciler_is_allowed_with_its_bypass_in_the_audit_log() -> None:
    audit = {"version": NEW, "bypass": "reconciler"}
    expected = (Decision.ALLOWED, ReleaseReason.RECONCILER, audit)
    assert outcome(VALIDATE, *suspended(), StaticListers(releases=rolling_back()), user=RECONCILER) == expected


def test_rolled_back_version_is_denied_with_reason_rolled_back() -> None:
    decision, reason, audit = outcome(VALIDATE, released("busybox:2"), released(), rolled_back())
    assert (decision, reason, audit["version"]) == (Decision.DENIED, ReleaseReason.ROLLED_BACK, NEW)
    assert "was rolled back" in audit["reason"]


def test_rolled_back_version_is_allowed_with_reason_blocking_off() -> None:
    listers = rolled_back()
    listers.blocking = False
    audit = {"version": NEW, "bypass": "blocking-off"}
    expected = (Decision.ALLOWED, ReleaseReason.BLOCKING_OFF, audit)
    assert outcome(VALIDATE, released("busybox:2"), released(), listers) == expected


def test_inherited_suspension_is_in_the_audit_log() -> None:
    listers = StaticListers(releases=release(OLD, status="Suspend", entryTimeUnix=int(SUSPENDED)))
    ((name, _),) = listers.releases.items()
    audit = {"version": OLD, "inherited": name.removeprefix("default/")}
    assert outcome(MUTATE, deployment(), None, listers) == (Decision.PATCHED, ReleaseReason.NEW_VERSION, audit)


@pytest.mark.parametrize("which", [MUTATE, VALIDATE])
def test_fingerprint_is_computed_once_per_request(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    new, old = suspended()
    new["spec"]["template"]["metadata"]["labels"][labels.SUSPEND] = "1"
    computed = []
    compute = version.new_version

    def count(*templates: Any) -> str:
        computed.append(templates)
        return compute(*templates)

    monkeypatch.setattr(version, "new_version", count)
    outcome(which, new, old, rolled_back())
    assert len(computed) == 1


def test_template_that_is_nested_too_deeply_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_deep(*_: Any) -> str:
        raise RecursionError

    monkeypatch.setattr(version, "new_version", too_deep)
    with pytest.raises(ReviewError, match="nested too deeply"):
        outcome(MUTATE, deployment())
