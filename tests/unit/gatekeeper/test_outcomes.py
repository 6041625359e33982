"""The decision, the reason and the audit annotations with which a request about a release ends."""

from typing import Any

import pytest

from altershield.api import labels
from gatekeeper.dispatch import decide
from gatekeeper.errors import ReviewError
from gatekeeper.handlers.releases import fingerprint
from gatekeeper.handlers.releases.reasons import Reason as ReleaseReason
from gatekeeper.response import Decision, Reason

from .reviews import (
    MUTATE,
    RECONCILER,
    VALIDATE,
    StaticListers,
    deployment,
    encode,
    release,
    released,
    review,
    route,
    version_of,
)

SUSPENDED = "1683791175"
OLD, NEW = version_of(deployment()), version_of(deployment("busybox:2"))
REASON = "deployment sleep is suspended"


def outcome(which: str, new: Any, old: Any = None, listers: StaticListers | None = None, **request: Any) -> Any:
    """The decision, the reason and the audit annotations."""
    asked = route(which)
    wire = asked.decode(encode(review(new, old, **request)))
    answer = decide(asked, wire, listers or StaticListers())
    return answer.decision, answer.reason, dict(answer.audit)


def rolled_back() -> StaticListers:
    condition = {"type": "RolledBack", "status": "True", "reason": "PodNotUp", "message": "pods did not come up"}
    return StaticListers(releases=release(NEW, status="Failed", conditions=[condition]))


def suspended(**own: str) -> tuple[Any, Any]:
    return released("busybox:2", suspend=SUSPENDED, **own), released(suspend=SUSPENDED)


def test_a_created_workload_is_patched_with_a_new_version() -> None:
    expected = (Decision.PATCHED, ReleaseReason.NEW_VERSION, {"version": OLD})
    assert outcome(MUTATE, deployment()) == expected


def test_a_stamped_workload_is_allowed_as_a_new_version() -> None:
    stamped = deployment(own={labels.VERSION: OLD}, template_version=OLD)
    assert outcome(MUTATE, stamped) == (Decision.ALLOWED, ReleaseReason.NEW_VERSION, {"version": OLD})


def test_a_label_that_was_dropped_is_restored() -> None:
    assert outcome(MUTATE, deployment(), released()) == (Decision.PATCHED, ReleaseReason.RESTORED, {})


def test_a_label_in_the_template_that_does_not_belong_there_is_restored() -> None:
    new = released()
    new["spec"]["template"]["metadata"]["labels"][labels.SUSPEND] = "1"
    assert outcome(MUTATE, new, released()) == (Decision.PATCHED, ReleaseReason.RESTORED, {})


@pytest.mark.parametrize("in_template", [{}, {labels.SUSPEND: "1"}])
def test_a_change_of_another_label_passes(in_template: dict[str, str]) -> None:
    new, old = released(), released()
    for each in (new, old):
        each["spec"]["template"]["metadata"]["labels"].update(in_template)
    new["metadata"]["labels"]["app"] = "other"
    assert outcome(MUTATE, new, old) == (Decision.ALLOWED, Reason.PASSED, {})


def test_a_release_of_a_suspended_workload_is_denied() -> None:
    audit = {"version": NEW, "reason": REASON}
    assert outcome(VALIDATE, *suspended()) == (Decision.DENIED, ReleaseReason.SUSPENDED, audit)


def test_a_repair_is_allowed_and_the_audit_log_says_why() -> None:
    audit = {"version": NEW, "bypass": "ignored-suspend"}
    expected = (Decision.ALLOWED, ReleaseReason.IGNORED_SUSPEND, audit)
    assert outcome(VALIDATE, *suspended(ignored_suspend="true")) == expected


def test_a_release_of_the_reconciler_is_allowed_and_the_audit_log_says_why() -> None:
    audit = {"version": NEW, "bypass": "reconciler"}
    expected = (Decision.ALLOWED, ReleaseReason.RECONCILER, audit)
    assert outcome(VALIDATE, *suspended(), user=RECONCILER) == expected


def test_a_version_that_was_rolled_back_is_denied() -> None:
    decision, reason, audit = outcome(VALIDATE, released("busybox:2"), released(), rolled_back())
    assert (decision, reason, audit["version"]) == (Decision.DENIED, ReleaseReason.ROLLED_BACK, NEW)
    assert "was rolled back" in audit["reason"]


def test_a_version_that_was_rolled_back_is_allowed_while_blocking_is_off() -> None:
    listers = rolled_back()
    listers.blocking = False
    audit = {"version": NEW, "bypass": "blocking-off"}
    expected = (Decision.ALLOWED, ReleaseReason.BLOCKING_OFF, audit)
    assert outcome(VALIDATE, released("busybox:2"), released(), listers) == expected


def test_an_inherited_suspension_is_in_the_audit_log() -> None:
    listers = StaticListers(releases=release(OLD, status="Suspend", entryTimeUnix=int(SUSPENDED)))
    ((name, _),) = listers.releases.items()
    audit = {"version": OLD, "inherited": name.removeprefix("default/")}
    assert outcome(MUTATE, deployment(), None, listers) == (Decision.PATCHED, ReleaseReason.NEW_VERSION, audit)


@pytest.mark.parametrize("which", [MUTATE, VALIDATE])
def test_the_fingerprint_is_computed_once_per_request(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    new, old = suspended()
    new["spec"]["template"]["metadata"]["labels"][labels.SUSPEND] = "1"
    computed = []
    compute = fingerprint.release

    def count(*templates: Any) -> str:
        computed.append(templates)
        return compute(*templates)

    monkeypatch.setattr(fingerprint, "release", count)
    outcome(which, new, old, rolled_back())
    assert len(computed) == 1


def test_a_template_that_is_too_deep_to_compare_is_an_unreadable_review(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_deep(*_: Any) -> str:
        raise RecursionError

    monkeypatch.setattr(fingerprint, "release", too_deep)
    with pytest.raises(ReviewError, match="nested too deeply"):
        outcome(MUTATE, deployment())
