"""The queries of a check by PromQL, and the results that follow from the answers."""

import msgspec
import pytest

from altershield.api.change_workload import SourceRef
from altershield.api.check_specs import SecretRef
from reconciler.checks.check import Fail, Pass, Pending, Started, Unknown
from reconciler.outbound.credentials import Credentials
from reconciler.outbound.outbound_errors import NotDeliveredError
from tests.unit.reconciler.checks.range_queries import Prometheus, Secrets, poll, runner
from tests.unit.reconciler.checks.subjects import STARTED, URL, check, subject


async def test_check_passes_when_all_samples_pass() -> None:
    prometheus = Prometheus(lambda query, time: 0.5)
    checks, batch = runner(prometheus), subject()
    assert await checks.start(batch) == Started("queries")
    assert await poll(checks, batch, 14) == Pending("0 of 3 samples are known; no sample is old enough")
    assert prometheus.requests == []
    assert await poll(checks, batch, 15) == Pending("1 of 3 samples are known")
    assert await poll(checks, batch, 35) == Pass("3 of 3 samples passed")
    assert prometheus.requests[-1] == {
        "query": "up",
        "start": f"{STARTED + 10}.000",
        "end": f"{STARTED + 30}.000",
        "step": "10",
        "timeout": "9s",
        "credentials": None,
    }


async def test_check_fails_with_the_first_sample_that_fails() -> None:
    checks, batch = runner(Prometheus(lambda query, time: 2 if time > STARTED + 10 else 0)), subject()
    assert isinstance(await poll(checks, batch, 15), Pending)
    assert await poll(checks, batch, 25) == Fail("2 is above max 1 (1 sample failed, 0 may fail)")


@pytest.mark.parametrize("kind", ["same", "restarted"])
async def test_restarted_reconciler_comes_to_the_same_results_at_the_same_times(kind: str) -> None:
    prometheus = Prometheus(lambda query, time: "NaN" if time == STARTED + 20 else (time - STARTED) / 50)
    checks, batch = runner(prometheus), subject(check(failure_limit=0, samples=5))
    answers = []
    for after in range(0, 120, 7):
        checks = runner(prometheus) if kind == "restarted" else checks
        answers.append(await poll(checks, batch, after))
    first = next(index for index, answer in enumerate(answers) if not isinstance(answer, Pending))
    assert first == 10  # 65 s: the sample at 60 s is the first one above 1
    assert answers[first] == Fail("1.2 is above max 1 (1 sample failed, 0 may fail)")


async def test_poll_before_the_next_sample_sends_no_request_unless_the_last_one_failed() -> None:
    prometheus = Prometheus(lambda query, time: 0)
    checks, batch = runner(prometheus), subject()
    for after in (15, 16, 24):
        await poll(checks, batch, after)
    assert len(prometheus.requests) == 1
    prometheus.error = NotDeliveredError("the request cannot be sent")
    assert await poll(checks, batch, 25) == Pending(
        "0 of 3 samples are known; the last one that is not: query: the request cannot be sent"
    )
    prometheus.error = None
    assert await poll(checks, batch, 26) == Pending("2 of 3 samples are known")
    await checks.end(batch, "queries")
    await checks.end(batch, "queries")
    await poll(checks, batch, 27)
    assert len(prometheus.requests) == 4


async def test_missing_data_is_not_asked_for_again_before_the_next_sample_but_at_the_deadline() -> None:
    prometheus = Prometheus(lambda query, time: None)
    checks, batch = runner(prometheus), subject()
    for after in (15, 16, 24, 24.5):
        await poll(checks, batch, after)
    assert len(prometheus.requests) == 1
    await poll(checks, batch, 119)
    await poll(checks, batch, 120, last=True)
    assert len(prometheus.requests) == 3


async def test_sample_in_the_future_of_a_slow_clock_is_asked_for_again() -> None:
    prometheus = Prometheus(lambda query, time: 0, behind=7)
    checks, batch = runner(prometheus), subject()
    assert isinstance(await poll(checks, batch, 15), Pending)
    assert await poll(checks, batch, 23) == Pending("1 of 3 samples are known")
    assert len(prometheus.requests) == 2


async def test_unreachable_prometheus_is_unknown_at_the_deadline() -> None:
    prometheus = Prometheus(lambda query, time: 0)
    prometheus.error = NotDeliveredError("the request cannot be sent")
    checks, batch = runner(prometheus), subject()
    assert isinstance(await poll(checks, batch, 119), Pending)
    answer = await poll(checks, batch, 120, last=True)
    assert answer == Unknown("0 of 3 samples are known; the last one that is not: query: the request cannot be sent")


async def test_missing_series_and_nan_are_replaced_by_later_samples() -> None:
    gaps = {STARTED + 10: None, STARTED + 20: "NaN", STARTED + 30: "+Inf"}
    checks, batch = runner(Prometheus(lambda query, time: gaps.get(int(time), 1))), subject()
    assert await poll(checks, batch, 45) == Pending(
        "1 of 3 samples are known; the last one that is not: query: the value is +Inf"
    )
    assert await poll(checks, batch, 65) == Pass("3 of 3 samples passed")


async def test_new_version_is_compared_with_the_old_one_by_their_pods() -> None:
    def series(query: str, time: float) -> float:
        new = "sleep-7d4b9-abcde|" in query
        assert new or "sleep-5c6f8-[a-z0-9]{5}" in query
        return (500 if new else 400) if query.startswith("count") else (0.3 if new else 0.1)

    definition = check(
        'errors{pod=~"{{pods}}"}',
        max="",
        baseline_query='errors{pod=~"{{previousPods}}"}',
        max_ratio="2",
        max_increase="0.1",
        count_query='count{pod=~"{{pods}}"}',
        baseline_count_query='count{pod=~"{{previousPods}}"}',
        min_count=100,
    )
    prometheus = Prometheus(series)
    answer = await poll(runner(prometheus), subject(definition), 15)
    assert answer == Fail("0.3 is too far above the old version's 0.1 (1 sample failed, 0 may fail)")
    assert len(prometheus.requests) == 4


async def test_first_release_has_no_old_version_and_is_unknown_at_once() -> None:
    definition = check(baseline_query='up{version="{{previousVersion}}"}', max_ratio="2")
    checks = runner(Prometheus(lambda query, time: 0))
    answer = await checks.start(subject(definition, previous=SourceRef()))
    assert answer == Unknown("{{previousVersion}} has no value for this release")


async def test_hostile_pod_name_is_unknown_and_never_sent() -> None:
    prometheus = Prometheus(lambda query, time: 0)
    checks, batch = runner(prometheus), subject(check('up{pod=~"{{pods}}"}'), pods=('x"} or vector(0) #',))
    assert isinstance(await checks.start(batch), Unknown)
    assert isinstance(await poll(checks, batch, 60), Unknown)
    assert prometheus.requests == []


async def test_check_that_was_never_accepted_is_unknown_and_sends_nothing() -> None:
    prometheus = Prometheus(lambda query, time: 0)
    checks, batch = runner(prometheus), subject(check(url=f"{URL}/delete?all="))
    for answer in (await checks.start(batch), await poll(checks, batch, 60)):
        assert answer == Unknown("url has a query or a fragment")
    assert prometheus.requests == []


async def test_check_of_another_kind_is_unknown() -> None:
    definition = msgspec.structs.replace(check(), prometheus=None)
    assert await runner(Prometheus(lambda query, time: 0)).start(subject(definition)) == Unknown(
        "the check has no PromQL"
    )


async def test_credentials_come_from_the_secret_in_the_namespace_of_the_policy() -> None:
    prometheus, own = Prometheus(lambda query, time: 0), Credentials("Bearer t")
    secrets = Secrets(own)
    batch = subject(check(secret_ref=SecretRef("p")))
    assert isinstance(await poll(runner(prometheus, secrets), batch, 35), Pass)
    assert secrets.reads == [("policies", "p")]
    assert prometheus.requests[0]["credentials"] is own


async def test_unusable_secret_makes_samples_unknown_and_no_request_is_sent_without_it() -> None:
    prometheus = Prometheus(lambda query, time: 0)
    answer = await poll(runner(prometheus), subject(check(secret_ref=SecretRef("p"))), 35)
    assert isinstance(answer, Pending)
    assert "the Secret policies/p does not exist" in answer.reason
    assert prometheus.requests == []


@pytest.mark.parametrize(("behind", "known"), [(0, 3), (3, 3), (7, 2), (60, 0), (-60, 3)])
async def test_samples_that_are_in_the_future_of_a_slow_clock_are_unknown(behind: float, known: int) -> None:
    prometheus = Prometheus(lambda query, time: 0, behind=behind)
    answer = await poll(runner(prometheus), subject(check(samples=4, lag_seconds=5)), 38)
    assert isinstance(answer, Pending)
    assert answer.reason.startswith(f"{known} of 4 samples are known")


async def test_memory_of_samples_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.checks.prometheus_check._REMEMBERED", 2)
    checks = runner(Prometheus(lambda query, time: 0))
    for number in range(5):
        await poll(checks, subject(started=STARTED - number), 15)
    assert len(checks._latest) == 2
