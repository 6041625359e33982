"""What becomes of pending deletions."""

from altershield.api.flow_control import MAX_PENDING, PodDeletionFlowControl
from altershield.flow_control.decision import REPEATED, Working, step
from altershield.flow_control.settling import (
    ABANDONED,
    ANSWER_IN_EFFECT,
    ASK_AFTER,
    DROP_AFTER,
    GIVE_BACK_AFTER,
    Seen,
    questions,
    settle,
)
from altershield.flow_control.windows import CLOCK_ERROR
from tests.unit.altershield.flow_control.builders import NOW, asked, deletion, policy, written

OF = asked(policy("10m/600"), "a", "b")


def settled(of: PodDeletionFlowControl, read: dict[str, Seen], now: float) -> tuple[list[str], int, set[str]]:
    """The names of the pods that were settled, the deletions that count, and what is still pending."""
    work = Working(of, now)
    ended = settle(work, read)
    after = written(of, work.status() if work.changed else None)
    return [each.name for each in ended], after.status.windows[0].used, set(after.status.pending)


def test_deletion_that_happened_stays_counted() -> None:
    assert settled(OF, {"a": Seen.ENDING}, NOW + DROP_AFTER - 1) == ([], 2, {"a", "b"})
    assert settled(OF, {"a": Seen.ENDING}, NOW + DROP_AFTER) == (["web-a"], 2, {"b"})


def test_deletion_of_a_pod_that_is_alive_after_the_last_answer_is_given_back() -> None:
    assert GIVE_BACK_AFTER > 35
    assert settled(OF, {"a": Seen.ALIVE}, NOW + GIVE_BACK_AFTER - 1) == ([], 2, {"a", "b"})
    assert settled(OF, {"a": Seen.ALIVE}, NOW + GIVE_BACK_AFTER) == (["web-a"], 1, {"b"})


def test_count_is_held_as_long_as_a_repeated_request_that_relies_on_it_may_take_effect() -> None:
    of = written(OF, step(OF, [deletion("a")], NOW + REPEATED).status)
    last = NOW + REPEATED + ANSWER_IN_EFFECT + CLOCK_ERROR
    assert settled(of, {"a": Seen.ALIVE}, last) == ([], 2, {"a", "b"})


def test_deletion_of_a_pod_that_cannot_be_read_stays_counted_and_ends_some_time() -> None:
    of = asked(policy("1h/600"), "a", "b")
    assert settled(of, {}, NOW + ABANDONED - 1) == ([], 2, {"a", "b"})
    assert settled(of, {}, NOW + ABANDONED) == (["web-a", "web-b"], 2, set())


def test_confirmed_deletions_make_room_at_once_if_many_are_pending() -> None:
    of = asked(policy("10m/600"), *(f"u{number}" for number in range(MAX_PENDING // 2 + 1)))
    assert settled(of, {"u7": Seen.ENDING}, NOW)[0] == ["web-u7"]
    of = asked(policy("10m/600"), *(f"u{number}" for number in range(MAX_PENDING // 2)))
    assert settled(of, {"u7": Seen.ENDING}, NOW)[0] == []


def test_api_server_is_asked_about_pods_that_no_cache_knows_to_be_ending() -> None:
    def found(after: float) -> list[tuple[str, bool]]:
        return [(each.uid, each.decisive) for each in questions(OF, {"b": Seen.ENDING}, NOW + after)]

    assert found(ASK_AFTER - 1) == []
    assert found(ASK_AFTER) == [("a", False)]
    assert found(GIVE_BACK_AFTER) == [("a", True)]
    moved = asked(OF, "a", now=NOW + 20)
    assert [each.decisive for each in questions(moved, {}, NOW + GIVE_BACK_AFTER) if each.uid == "a"] == [False]
