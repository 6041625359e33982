"""What a gatekeeper counts, whatever it is sent."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.api import labels
from altershield.api.kinds import WorkloadState
from gatekeeper.gates import OUTCOMES, decide
from gatekeeper.journal import Journal
from gatekeeper.metrics import Metrics
from gatekeeper.review import read
from gatekeeper.tls import Certificate

from .reviews import RECONCILER, VALIDATE, StaticView, encode, record, released, review, version_of, webhook

BYPASSES = "altershield_admission_bypasses_total"
KNOWN_ACTORS = {"reconciler", "serviceaccount", "user"}


def fresh() -> Metrics:
    return Metrics(Certificate(Path(), Path()))


def series(metrics: Metrics) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
    return {(s.name, tuple(sorted(s.labels.items()))) for m in metrics.registry.collect() for s in m.samples}


def bypasses(metrics: Metrics) -> dict[tuple[str, str], float]:
    """Those that were counted, by bypass and actor."""
    found = [s for m in metrics.registry.collect() for s in m.samples if s.name == BYPASSES]
    return {(s.labels["bypass"], s.labels["actor"]): s.value for s in found if s.value}


@given(
    decided=st.sampled_from([(webhook, *outcome) for webhook, outcomes in OUTCOMES.items() for outcome in outcomes]),
    operation=st.sampled_from(["CREATE", "UPDATE", "DELETE", "CONNECT"]),
    user=st.text() | st.sampled_from(["system:serviceaccount:", "system:serviceaccount", "reconciler", RECONCILER]),
)
def test_no_user_makes_a_series(decided: tuple[str, str, str], operation: str, user: str) -> None:
    metrics = fresh()
    before = series(metrics)
    webhook, decision, reason = decided
    metrics.decided(webhook, operation, decision, reason, user, 0.001)
    assert series(metrics) == before
    assert sum(bypasses(metrics).values()) == (reason in ("reconciler", "ignored-suspend", "blocking-off"))
    assert {actor for _, actor in bypasses(metrics)} <= KNOWN_ACTORS


REPAIR = {labels.IGNORED_SUSPEND: "true"}


@pytest.mark.parametrize(
    ("user", "own", "expected"),
    [
        (RECONCILER, {}, ("reconciler", "reconciler")),
        (RECONCILER, REPAIR, ("reconciler", "reconciler")),
        ("jane", REPAIR, ("ignored-suspend", "user")),
        ("system:admin", REPAIR, ("ignored-suspend", "user")),
        ("system:serviceaccount:ci:deployer", REPAIR, ("ignored-suspend", "serviceaccount")),
        ("system:serviceaccount:shop:altershield", REPAIR, ("ignored-suspend", "serviceaccount")),
        ("jane", {}, None),
    ],
)
async def test_who_passes_a_suspension_is_counted_by_kind(
    user: str, own: dict[str, str], expected: tuple[str, str] | None
) -> None:
    new, old = released("busybox:2", suspend="1"), released(suspend="1")
    new["metadata"]["labels"].update(own)
    metrics = fresh()

    await judge(metrics, review(new, old, user=user), StaticView())

    assert bypasses(metrics) == ({expected: 1} if expected else {})


async def test_a_rolled_back_version_let_through_while_blocking_is_off_is_counted() -> None:
    again = released("busybox:2")
    records = record(version_of(again), status=WorkloadState.ROLLBACK)
    metrics = fresh()

    await judge(metrics, review(again, released(), user="jane"), StaticView(blocking=False, records=records))

    assert bypasses(metrics) == {("blocking-off", "user"): 1}


async def judge(metrics: Metrics, body: dict[str, Any], view: StaticView) -> None:
    """As the server does."""
    asked = webhook(VALIDATE)
    sent = read(encode(body), asked.resource)
    journal = Journal(metrics)
    journal.note(asked.name, sent, decide(asked, sent, view), 0.001)
    journal.flush()
