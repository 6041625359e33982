"""The metrics and logs of the gatekeeper for any requests."""

import asyncio
import json
import logging
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from altershield.admission.registration import Operation
from altershield.admission.webhooks import Webhook
from altershield.api import labels
from altershield.api.change_workload import WorkloadState
from altershield.process.certificate import Certificate
from gatekeeper.dispatch import decide
from gatekeeper.handlers.releases.reasons import Reason
from gatekeeper.journal import Journal
from gatekeeper.metrics import Metrics
from gatekeeper.response import PASSED, Answer, Decision, Outcome

from .reviews import (
    RECONCILER,
    ROUTES,
    VALIDATE,
    StaticListers,
    encode,
    release,
    released,
    review,
    rolling_back,
    route,
    version_of,
)

BYPASSES = "altershield_admission_bypasses_total"
KNOWN_ACTORS = {"reconciler", "serviceaccount", "user"}


def fresh() -> Metrics:
    return Metrics(Certificate(Path(), Path()), ROUTES.values())


def series(metrics: Metrics) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
    return {(s.name, tuple(sorted(s.labels.items()))) for m in metrics.registry.collect() for s in m.samples}


def bypasses(metrics: Metrics) -> dict[tuple[str, str], float]:
    """The bypasses that were counted, by bypass and actor."""
    found = [s for m in metrics.registry.collect() for s in m.samples if s.name == BYPASSES]
    return {(s.labels["bypass"], s.labels["actor"]): s.value for s in found if s.value}


@given(
    decided=st.sampled_from([(each.webhook, outcome) for each in ROUTES.values() for outcome in each.outcomes]),
    operation=st.sampled_from(Operation),
    user=st.text() | st.sampled_from(["system:serviceaccount:", "system:serviceaccount", "reconciler", RECONCILER]),
)
def test_user_names_create_no_series(decided: tuple[Webhook, Outcome], operation: Operation, user: str) -> None:
    metrics = fresh()
    before = series(metrics)
    webhook, (decision, reason, _) = decided
    declared = metrics.decided(webhook.name, operation, decision, reason, user, 0.001, dry_run=False)
    assert declared == (operation in webhook.operations)
    assert series(metrics) == before
    assert sum(bypasses(metrics).values()) == (
        reason in ("reconciler", "ignored-suspend", "blocking-off", "overridden", "break-glass")
    )
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
async def test_bypasses_are_counted_by_the_kind_of_user(
    user: str, own: dict[str, str], expected: tuple[str, str] | None
) -> None:
    new, old = released("busybox:2", suspend="1"), released(suspend="1")
    new["metadata"]["labels"].update(own)
    metrics = fresh()

    await decide_and_count(metrics, review(new, old, user=user), StaticListers(releases=rolling_back()))

    assert bypasses(metrics) == ({expected: 1} if expected else {})


async def test_rolled_back_version_that_passes_while_blocking_is_off_is_counted_as_bypass() -> None:
    again = released("busybox:2")
    releases = release(version_of(again), status=WorkloadState.ROLLBACK)
    metrics = fresh()

    await decide_and_count(
        metrics, review(again, released(), user="jane"), StaticListers(blocking=False, releases=releases)
    )

    assert bypasses(metrics) == {("blocking-off", "user"): 1}


async def decide_and_count(metrics: Metrics, body: dict[str, Any], listers: StaticListers) -> None:
    """Decide a request and count the decision, as the server does."""
    served = route(VALIDATE)
    sent = served.decode(encode(body))
    journal = Journal(metrics)
    journal.note(served.webhook, sent, decide(served, sent, listers), 0.001)
    journal.flush()


def test_denials_of_known_namespaces_are_counted_by_namespace_and_all_others_together() -> None:
    metrics = fresh()
    known = {f"team-{number}" for number in range(130)}
    metrics._known = known.__contains__
    before = series(metrics)

    for namespace in ("nobody", "x" * 10_000, "(other)", ""):
        metrics.denied(namespace, Reason.SUSPENDED)
    assert series(metrics) == before
    assert denials(metrics) == {("(other)", "suspended"): 4}

    for namespace in known:
        metrics.denied(namespace, Reason.ROLLED_BACK)
    assert denials(metrics)["(other)", "rolled-back"] == 30
    assert len(series(metrics)) == len(before) + 100


async def test_denial_is_counted_with_its_namespace_if_the_cache_has_releases_of_it() -> None:
    metrics = fresh()
    metrics._known = "default".__eq__

    await decide_and_count(metrics, review(released("busybox:2"), released(suspend="1"), user="jane"), StaticListers())

    assert denials(metrics) == {("default", "suspended"): 1}


def denials(metrics: Metrics) -> dict[tuple[str, str], float]:
    """The denials that were counted, by namespace and reason."""
    name = "altershield_admission_denials_total"
    found = [s for m in metrics.registry.collect() for s in m.samples if s.name == name]
    return {(s.labels["namespace"], s.labels["reason"]): s.value for s in found if s.value}


async def test_dry_run_is_counted_as_a_request_and_neither_as_a_denial_nor_as_a_bypass(capfdbinary: Any) -> None:
    metrics = fresh()
    new, old = released("busybox:2", suspend="1"), released(suspend="1")
    repaired = {**new, "metadata": {**new["metadata"], "labels": {**new["metadata"]["labels"], **REPAIR}}}

    for dry_run in (True, False, True):
        for each in (new, repaired):
            await decide_and_count(metrics, review(each, old, user="jane", dryRun=dry_run), StaticListers())

    assert denials(metrics) == {("(other)", "suspended"): 1}
    assert bypasses(metrics) == {("ignored-suspend", "user"): 1}
    assert requests(metrics, "dry_run", "decision", "reason") == {
        ("true", "denied", "suspended"): 2,
        ("false", "denied", "suspended"): 1,
        ("true", "allowed", "ignored-suspend"): 2,
        ("false", "allowed", "ignored-suspend"): 1,
    }


async def test_eviction_is_a_dry_run_if_its_delete_options_say_so() -> None:
    """`kubectl drain --dry-run=server` writes it into the object, and the API server says nothing about it."""
    metrics, served = fresh(), next(each for each in ROUTES.values() if each.webhook.name.startswith("vpod-eviction"))
    journal, asked = Journal(metrics), list[bool]()
    for options in ({}, {"dryRun": None}, {"dryRun": ["All"]}):
        body = review(None)
        obj = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web-1"}, "deleteOptions": options}
        asks = {
            "object": obj,
            "subResource": "eviction",
            "resource": {"group": "", "version": "v1", "resource": "pods"},
        }
        wire = served.decode(encode({**body, "request": {**body["request"], **asks}}))
        journal.note(served.webhook, wire, PASSED, 0.001)
        asked.append(next(iter(served.requests(wire).values())).dry_run)
    journal.flush()
    assert asked == [False, False, True]
    assert requests(metrics, "dry_run") == {("false",): 2, ("true",): 1}


def requests(metrics: Metrics, *names: str) -> dict[tuple[str, ...], float]:
    """The requests that were counted, by these labels."""
    metric = "altershield_admission_requests_total"
    found = [s for m in metrics.registry.collect() for s in m.samples if s.name == metric]
    return {tuple(s.labels[name] for name in names): s.value for s in found if s.value}


async def test_undeclared_outcome_does_not_lose_logs_and_counts_of_other_requests(
    capfdbinary: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class Unknown(StrEnum):
        SURPRISE = "surprise"

    caplog.set_level(logging.INFO)
    metrics = fresh()
    journal = Journal(metrics)
    served = route(VALIDATE)
    wire = served.decode(encode(review(released("busybox:2"), released())))
    before = series(metrics)
    for answer in (PASSED, Answer(Decision.DENIED, Unknown.SURPRISE), PASSED):
        journal.note(served.webhook, wire, answer, 0.001)
    journal.flush()

    assert requests(metrics, "decision", "reason") == {("allowed", "passed"): 2, ("allowed", "undeclared"): 1}
    assert series(metrics) == before
    assert [json.loads(line)["reason"] for line in capfdbinary.readouterr().err.splitlines()] == [
        "passed", "surprise", "passed",
    ]  # fmt: skip
    assert "does not declare" in caplog.text


async def test_many_decisions_are_written_in_small_parts(capfdbinary: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    journal = Journal(fresh())
    served = route(VALIDATE)
    wire = served.decode(encode(review(released("busybox:2"), released())))
    for _ in range(31):
        journal.note(served.webhook, wire, PASSED, 0.001)
    await asyncio.sleep(0)
    assert capfdbinary.readouterr().err == b""
    journal.note(served.webhook, wire, PASSED, 0.001)
    await asyncio.sleep(0)
    assert len(capfdbinary.readouterr().err.splitlines()) == 32


async def test_log_lines_contain_no_text_that_looks_like_a_secret(
    capfdbinary: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    journal = Journal(fresh())
    served = route(VALIDATE)
    secret = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJl.c2lnbmF0dXJl"
    journal.note(served.webhook, served.decode(encode(review(released(), user=f"Bearer {secret}"))), PASSED, 0.001)
    journal.flush()
    written = capfdbinary.readouterr().err
    assert secret.encode() not in written
    assert "REDACTED" in json.loads(written)["user"]
