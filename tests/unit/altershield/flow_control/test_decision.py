"""Which deletions a policy admits, what it counts, and the texts of refusals."""

import msgspec
import pytest

from altershield.api.flow_control import (
    MAX_DENIED,
    MAX_PENDING,
    MAX_SOURCES,
    BreakerMode,
    BreakerState,
    Mode,
    Pending,
    Source,
)
from altershield.api.selectors import Operator, Requirement, Selector
from altershield.flow_control.decision import REPEATED, Working, in_order, note_denied, step, undo
from altershield.flow_control.deletion import Operation, covering, covers, exempt
from altershield.flow_control.statistics import denied_entry, with_deletion, with_denied
from altershield.flow_control.windows import CLOCK_ERROR
from kube_base.times import rfc3339
from tests.unit.altershield.flow_control.builders import NOW, asked, deletion, one, policy, refusal, written

USED = "PodDeletionFlowControl guard: 2 of 2 pod deletions in 10m are used"
FULL = asked(policy("10m/2"), "a", "b")


def used(of: object) -> list[int]:
    return [window.used for window in of.status.windows]  # type: ignore[attr-defined]


def test_deletion_counts_in_every_rule_and_waits_for_its_confirmation() -> None:
    found = asked(policy("10m/2", "1h/5"), "a", by="ann")
    assert used(found) == [1, 1]
    assert found.status.pending == {"a": Pending("shop", "web-a", "DELETE", "2027-01-15T08:00:00Z", by="ann")}
    assert [(each.by, each.count) for each in found.status.top_sources] == [("ann", 1)]


def test_refusal_beyond_a_limit_has_one_unchanging_sentence_and_no_write() -> None:
    done, _ = one(FULL, "c", NOW + 100)
    assert done.status is None
    assert done.verdicts[0].refusal == USED == refusal(FULL, "d", NOW + 300)
    assert [str(hint) for hint in done.verdicts[0].hints] == [
        "the next deletion passes at 2027-01-15T08:10:12Z",
        "most deletions come from ann (2)",
        "to raise a limit, or to exempt pods by spec.whiteListSelector, an administrator runs: "
        "kubectl edit poddeletionflowcontrols guard",
    ]
    assert refusal(FULL, "c", NOW + 612) == ""


def test_evictions_are_refused_with_429_and_deletions_with_403() -> None:
    assert deletion(operation=Operation.EVICT).code == 429
    assert deletion(operation=Operation.DELETE).code == 403


def test_pod_is_counted_once_however_often_its_deletion_is_asked_for() -> None:
    done, same = one(FULL, "a", NOW + REPEATED)
    assert (done.status, done.verdicts[0].refusal) == (None, "")
    moved = asked(FULL, "a", now=NOW + 20)
    assert used(moved) == [2]
    assert moved.status.pending["a"].time == "2027-01-15T08:00:20Z"
    assert refusal(moved, "c", NOW + 612) == ""  # the count of b has left the window
    assert refusal(asked(moved, "c", now=NOW + 612), "d", NOW + 612) == USED
    assert same is FULL


def test_repeated_request_has_its_own_count_and_other_requests_have_not() -> None:
    of = asked(policy("10m/2"), "a", shared=True, claim="first")
    for claim, counted in (("first", True), ("second", False), ("", False)):
        (verdict,) = step(of, [deletion("a", claim=claim)], NOW + 1).verdicts
        assert verdict.counted == counted


def test_policy_without_a_valid_rule_counts_deletions_for_its_breaker_and_sources() -> None:
    found = asked(policy("nonsense/2"), "a", by="ann")
    assert used(found) == []
    assert [each.by for each in found.status.top_sources] == ["ann"]


def test_several_deletions_in_one_step_share_a_write_and_never_exceed_the_limit() -> None:
    done = step(policy("10m/2"), [deletion(uid) for uid in "aabc"], NOW)
    assert [each.refusal for each in done.verdicts] == ["", "", "", USED]
    assert done.status is not None
    assert used(written(FULL, done.status)) == [2]


@pytest.mark.parametrize("uid", ["a", "c"])
def test_dry_run_gets_the_same_verdict_and_leaves_no_trace(uid: str) -> None:
    for of in (policy("10m/2"), FULL, policy("10m/0", breaker=BreakerMode.MANUAL)):
        for now in (NOW + 1, NOW + 60):
            dry = step(of, [deletion(uid, dry_run=True)], now)
            assert dry.status is None
            assert dry.verdicts[0].refusal == refusal(of, uid, now)


@pytest.mark.parametrize("fields", [{"mode": Mode.WARN}, {}], ids=["mode Warn", "exempt"])
def test_warn_mode_and_exempt_deletions_are_counted_beyond_the_limit_with_a_warning(fields: dict[str, Mode]) -> None:
    of = written(policy("10m/2", **fields), FULL.status)
    done, after = one(of, "c", exempt=not fields)
    assert done.verdicts[0].refusal == ""
    assert USED in str(done.verdicts[0].hints[0])
    assert used(after) == [3]


def test_exempt_are_break_glass_and_pods_that_are_not_ready_on_tainted_nodes() -> None:
    assert exempt(break_glass=True, by_taint_manager=False, ready=True)
    assert exempt(break_glass=False, by_taint_manager=True, ready=False)
    assert not exempt(break_glass=False, by_taint_manager=True, ready=True)
    assert not exempt(break_glass=False, by_taint_manager=False, ready=False)


def test_deletions_near_a_limit_get_a_warning() -> None:
    of = asked(policy("10m/5", warn_percent=80), "a", "b", "c")
    done, _ = one(of, "d")
    assert [str(hint) for hint in done.verdicts[0].hints] == [
        "PodDeletionFlowControl guard: 4 of 5 pod deletions in 10m are used"
    ]
    assert one(asked(policy("10m/5"), "a"), "b")[0].verdicts[0].hints == ()


def test_too_many_pending_deletions_are_refused_but_exempt_ones_pass() -> None:
    of = asked(policy("10m/1000"), *(f"u{number}" for number in range(MAX_PENDING)))
    assert refusal(of, "more") == "PodDeletionFlowControl guard: 500 pod deletions wait to be confirmed"
    done, after = one(of, "more", exempt=True)
    assert (done.verdicts[0].refusal, done.verdicts[0].counted) == ("", False)
    assert used(after) == [MAX_PENDING + 1]
    assert len(after.status.pending) == MAX_PENDING
    assert refusal(of, "u7", NOW + 30) == ""  # it has its place already


def test_lists_in_the_status_are_bounded_and_keep_the_greatest_and_latest() -> None:
    of = policy("10m/1000")
    for number in range(15):
        of = asked(of, *(f"{number}-{each}" for each in range(3 if number != 14 else 1)), by=f"user-{number}")
        of = asked(of, f"whale-{number}", f"whale-{number}-2", by="whale", now=NOW + number)
    assert len(of.status.top_sources) == MAX_SOURCES
    assert of.status.top_sources[0].by == "whale"
    later = asked(of, "later", now=NOW + 3000, by="ann")
    assert [each.by for each in later.status.top_sources] == ["ann"]
    entries = [denied_entry(deletion(f"u{number % 30}"), NOW + number) for number in range(60)]
    denied = note_denied(of, entries).last_denied
    assert len(denied) == MAX_DENIED
    assert (denied[0].name, denied[0].count) == ("web-u29", 2)


def test_refusal_of_one_policy_is_found_before_the_others_count() -> None:
    free = policy("10m/5", name="a-free")
    assert [each.metadata.name for each in in_order([free, FULL], deletion("c"), NOW)] == ["guard", "a-free"]
    assert [each.metadata.name for each in in_order([FULL, free], deletion("a"), NOW)] == ["a-free", "guard"]


def test_undo_takes_back_only_a_count_that_no_other_request_relies_on() -> None:
    of = asked(policy("10m/2"), "a", shared=True, claim="first")
    undone = undo(of, "a", "first", NOW + 1)
    assert undone is not None
    assert (undone.windows[0].used, undone.pending) == (0, {})
    for fields in ({"shared": True}, {"shared": False}):
        relied = asked(of, "a", claim="second", now=NOW + 1, **fields)
        assert used(relied) == [1]
        assert [undo(relied, "a", claim, NOW + 1) for claim in ("first", "second")] == [None, None]
        moved = asked(of, "a", claim="second", now=NOW + 20, **fields)
        assert [undo(moved, "a", claim, NOW + 20) for claim in ("first", "second")] == [None, None]
    assert undo(of, "b", "first", NOW + 1) is None


SELECTOR = Selector({"app": "web"}, (Requirement("tier", Operator.NOT_IN, ("test",)),))


def test_selectors_of_pods_namespaces_and_whitelist_decide_what_is_counted() -> None:
    web, test = {"app": "web"}, {"app": "web", "tier": "test"}
    of = policy("1m/1", pod_selector=SELECTOR)
    assert [covers(of, deletion(labels=labels)) for labels in (web, test, {})] == [True, False, False]
    of = policy("1m/1", namespace_selector=SELECTOR)
    assert [covers(of, deletion(namespace_labels=labels)) for labels in (web, test, {})] == [True, False, False]
    of = policy("1m/1", white_list_selector=SELECTOR)
    assert [covers(of, deletion(labels=labels)) for labels in (web, test, {})] == [False, True, True]
    empty = policy("1m/1", pod_selector=Selector(), namespace_selector=Selector(), white_list_selector=Selector())
    assert covers(empty, deletion())
    both = [policy("1m/1", name=name) for name in ("b", "a")]
    assert [each.metadata.name for each in covering(both, deletion())] == ["a", "b"]


def test_raised_limit_holds_from_the_next_request() -> None:
    raised = written(policy("10m/3"), FULL.status)
    assert refusal(raised, "c") == ""
    assert refusal(written(policy("10m/1"), FULL.status), "c") == USED.replace("2 of 2", "1 of 1")


def test_refused_repetition_keeps_the_count_of_the_first_request() -> None:
    of = asked(policy("10m/2", breaker=BreakerMode.MANUAL), "a", "b")
    done, opened = one(of, "c")
    assert opened.status.breaker.state == BreakerState.OPEN
    assert done.verdicts[0].refusal == USED
    assert refusal(opened, "a", NOW + REPEATED) == ""
    done, after = one(opened, "a", NOW + 30)
    assert "is open since" in done.verdicts[0].refusal
    assert (used(after), set(after.status.pending)) == ([2], {"a", "b"})


def test_status_is_at_most_a_few_hundred_kilobytes() -> None:
    names = {"namespace": "n" * 63, "name": "p" * 253, "by": "system:serviceaccount:" + "s" * 200}
    uids = [f"{number:036}" for number in range(MAX_PENDING)]
    of = policy(*(f"{number + 1}h/5000" for number in range(8)))
    of = written(of, step(of, [deletion(uid, **names) for uid in uids], NOW).status)
    assert len(msgspec.json.encode(of)) < 500_000


def test_pending_deletion_with_a_time_in_the_future_is_one_of_now() -> None:
    for ahead, seconds in ((CLOCK_ERROR, CLOCK_ERROR), (CLOCK_ERROR + 1, 0)):
        of = asked(policy("10m/2"), "a", now=NOW + ahead)
        assert Working(of, NOW).pending["a"].time == rfc3339(NOW + seconds)


def test_user_who_deletes_nothing_more_is_named_for_ten_minutes() -> None:
    of = asked(policy("1m/10"), "a", by="ann")
    for after, users in ((599, ["ann", "bob"]), (600, ["bob"])):
        later = asked(of, "b", now=NOW + after, by="bob")
        assert [each.by for each in later.status.top_sources] == users


def test_dry_run_does_not_keep_an_earlier_request_from_taking_its_count_back() -> None:
    of = asked(policy("10m/2"), "a", shared=True, claim="first")
    done, _ = one(of, "a", NOW + 1, claim="second", dry_run=True)
    assert (done.status, done.verdicts[0].counted) == (None, False)


def test_refused_repetition_keeps_its_count_also_if_another_deletion_is_written() -> None:
    lowered = written(policy("10m/1"), asked(policy("10m/2"), "a", "b").status)
    done = step(lowered, [deletion("a"), deletion("c", exempt=True)], NOW + 30)
    assert [bool(each.refusal) for each in done.verdicts] == [True, False]
    after = written(lowered, done.status)
    assert (used(after), set(after.status.pending)) == ([3], {"a", "b", "c"})
    assert after.status.pending["a"].time == rfc3339(NOW)


def test_refused_repetition_opens_the_breaker() -> None:
    lowered = written(policy("10m/1", breaker=BreakerMode.MANUAL), asked(policy("10m/2"), "a", "b").status)
    _, after = one(lowered, "a", NOW + 30)
    assert after.status.breaker.state == BreakerState.OPEN
    assert (used(after), set(after.status.pending)) == ([2], {"a", "b"})


def test_whitelist_may_have_expressions_alone() -> None:
    of = policy("1m/1", white_list_selector=Selector({}, (Requirement("tier", Operator.IN, ("test",)),)))
    assert [covers(of, deletion(labels={"tier": tier})) for tier in ("test", "live")] == [False, True]


def test_source_is_dropped_after_the_horizon_and_replaces_the_smallest_one_with_its_count() -> None:
    sources = [Source(f"user-{number}", number + 3, rfc3339(NOW)) for number in range(MAX_SOURCES)]
    found = with_deletion(sources, "zoe", NOW + 10, 600)
    assert (len(found), found[-1]) == (MAX_SOURCES, Source("zoe", 4, rfc3339(NOW + 10)))
    assert [each.count for each in found] == sorted((each.count for each in found), reverse=True)
    few = with_deletion(sources[:-1], "zoe", NOW + 10, 600)
    assert (len(few), few[-1].count) == (MAX_SOURCES, 1)
    assert with_deletion(sources, "zoe", NOW + 600, 600) == (Source("zoe", 1, rfc3339(NOW + 600)),)


def test_refused_deletions_are_listed_the_last_first_and_names_are_cut() -> None:
    entries = [denied_entry(deletion(uid, by="x" * 300), NOW) for uid in "abc"]
    assert len(entries[0].by) == 253
    listed = with_denied(with_denied((), entries), [entries[0]])
    assert [(each.name, each.count) for each in listed] == [("web-a", 2), ("web-c", 1), ("web-b", 1)]
    assert with_denied(listed, ()) == listed
