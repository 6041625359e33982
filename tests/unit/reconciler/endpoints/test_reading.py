"""Which verdict, message and rules a callback has."""

from typing import Any

import pytest

from reconciler.endpoints.callback import MAX_MESSAGE, Callback, read
from reconciler.server.answers import ServerVerdict

from .serving import body, rule


def taken(word: str, /, *rules: dict[str, Any], **more: Any) -> Callback:
    return read(body(word, *rules, **more), 1.5)


def message(*rules: dict[str, Any], verdict: str = "fail") -> str:
    return taken(verdict, *rules).message


@pytest.mark.parametrize(
    ("word", "verdict"),
    [
        ("pass", ServerVerdict.PASS),
        ("none", ServerVerdict.NONE),
        ("inconc", ServerVerdict.INCONC),
        ("fail", ServerVerdict.FAIL),
        ("PASS", ServerVerdict.OTHER),
        ("", ServerVerdict.OTHER),
        ("ok", ServerVerdict.OTHER),
    ],
)
def test_word_of_the_server_is_the_verdict(word: str, verdict: ServerVerdict) -> None:
    found = taken(word)
    assert found.verdict is verdict
    assert bool(found.message) is not verdict.passed


def test_unknown_verdict_is_in_the_message() -> None:
    assert message(verdict="maybe") == "the server answered with the unknown verdict 'maybe'"


def test_message_has_failed_rules_first_and_then_inconclusive_ones() -> None:
    rules = [rule("a", "PASS"), rule("b", "INCONC", "no data"), rule("c", "FAIL", "slow"), rule("d", "NONE")]
    assert message(*rules) == "c (jane): slow; b (jane): no data"
    assert [each.name for each in taken("fail", *rules).rules] == ["c", "b", "a", "d"]


def test_newest_execution_of_a_rule_counts() -> None:
    old = rule("a", "FAIL", "before the check was run again", gmtStart=1_700_000_000_000)
    new = rule("a", "PASS", "fine", gmtStart=1_700_000_001_000)
    assert [each.verdict for each in taken("pass", new, old).rules] == ["PASS"]
    assert [each.verdict for each in taken("pass", old, new).rules] == ["PASS"]
    assert message(rule("a", "PASS"), rule("a", "FAIL", "later in the list")) == "a (jane): later in the list"


def test_rules_without_an_id_are_all_listed() -> None:
    one = {"name": "a", "verdict": "FAIL", "msg": "one"}
    assert (
        message(one, one | {"msg": "two"}, {"verdict": "FAIL"})
        == "a: one; a: two; a rule without a name: no reason given"
    )


def test_rule_that_was_skipped_is_no_reason() -> None:
    assert message(rule("a", ignored=True), rule("b")) == "b (jane): 5 % errors"


def test_failed_rule_on_trial_is_no_reason_for_a_pass() -> None:
    found = taken("pass", rule("a", "FAIL"))
    assert (found.message, found.rules[0].verdict) == ("", "FAIL")


def test_failure_without_rules_has_a_message() -> None:
    assert message() == "the server gave no reason"
    assert taken("fail", verdict={"verdict": "fail", "msg": "no rule ran"}).message == "no rule ran"


def test_texts_of_the_server_are_cut_and_have_no_control_characters() -> None:
    found = taken("fail", *(rule(f"n{number}\x1b[31m\n" * 50, "FAIL", "x\r\ny" * 9999) for number in range(3)))
    assert len(found.message.encode()) <= MAX_MESSAGE
    assert "\x1b" not in found.message + found.rules[0].name
    assert "\n" not in found.message + found.rules[0].message


def test_ids_may_be_numbers_and_null_members_are_like_missing_ones() -> None:
    found = taken("fail", rule(relationId=7, ruleExeId=9, owner=None, msg=None, status="TIMEOUT", ignored=None))
    assert (found.rules[0].rule, found.rules[0].execution) == ("7", "9")
    assert found.message == "errors: TIMEOUT"
    assert taken("pass", verdict={"verdict": "pass", "rules": None, "msg": None}).rules == ()


def test_rollback_hint_is_kept() -> None:
    assert taken("fail", verdict={"verdict": "fail", "rollback": True}).rollback
    assert not taken("fail").rollback


def test_time_of_the_signature_is_kept() -> None:
    assert taken("pass").sent == 1.5
