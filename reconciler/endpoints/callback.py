"""A callback: the verdict of an AlterShield server on one stage of one node.

The wire format is that of the published server (the class `ChangeExecuteCallbackWrapperRequest` and its members).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from altershield.texts import one_line
from reconciler.endpoints.endpoint_errors import EndpointError
from reconciler.server import texts
from reconciler.server.answers import ServerVerdict
from reconciler.server.messages import Stage

MAX_MESSAGE = 1024
"""Bytes of the message; a ChangePod holds as many characters."""
MAX_RULES = 100

_MAX_TEXT = 256
_DECIDED = ("FAIL", "INCONC")
_MAX_TIME = 2**53


class CheckType(StrEnum):
    """The kind of the node: an order, a batch or an action."""

    ORDER = "CHANGE_ORDER"
    BATCH = "CHANGE_BATCH"
    ACTION = "CHANGE_ACTION"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The newest execution of one rule. Texts are on one line, and bounded."""

    execution: str
    """The id of the execution, with which the rule can be skipped."""
    rule: str
    name: str
    owner: str
    status: str
    """`EXE`, `SUCCESS`, `FAIL` or `TIMEOUT`."""
    verdict: str
    """`NONE`, `PASS`, `FAIL` or `INCONC`."""
    message: str
    skippable: bool
    skipped: bool
    began: int = 0
    """When the execution began, in Unix milliseconds by the server's clock; 0: it is not known."""

    @property
    def failed(self) -> bool:
        """Whether it did not pass, and nobody ignored it."""
        return self.verdict in _DECIDED and not self.skipped

    def __str__(self) -> str:
        title = f"{self.name or self.rule or 'a rule without a name'}{f' ({self.owner})' if self.owner else ''}"
        return f"{title}: {self.message or self.status or 'no reason given'}"


@dataclass(frozen=True, kw_only=True)
class Callback:
    """A callback whose signature was verified."""

    check_type: CheckType
    order: str
    """Our id of the order."""
    node: str
    """The server's id of the node. It may be unknown, or not be stored yet."""
    stage: Stage
    verdict: ServerVerdict
    message: str
    """Why the check did not pass: `<name> (<owner>): <message>` of each rule that failed, then of each that is
    inconclusive. At most `MAX_MESSAGE` bytes."""
    rules: tuple[Rule, ...]
    """Rules that failed come first, then those that are inconclusive. At most `MAX_RULES`."""
    rollback: bool
    """Whether the server advises a rollback. The published server never does."""
    sent: float
    """When the server signed the callback, Unix seconds by its clock. A replica that knows a newer callback about the
    node and stage ignores this one."""


_Order = Annotated[str, msgspec.Meta(min_length=1, max_length=texts.ORDER_ID)]
_Node = Annotated[str, msgspec.Meta(pattern=r"^[!-~]{1,64}\Z")]


class _Rule(msgspec.Struct, rename="camel"):
    rule_exe_id: str | int | None = None
    relation_id: str | int | None = None
    external_rule_id: str | int | None = None
    name: str | None = None
    owner: str | None = None
    status: str | None = None
    verdict: str | None = None
    msg: str | None = None
    allow_ignore: bool | None = None
    ignored: bool | None = None
    gmt_start: int | str | None = None
    gmt_finish: int | str | None = None

    @property
    def id(self) -> str:
        return next((str(each) for each in (self.relation_id, self.external_rule_id) if each not in (None, "")), "")

    @property
    def began(self) -> int:
        return self.gmt_start if isinstance(self.gmt_start, int) else 0


class _Verdict(msgspec.Struct):
    verdict: str
    msg: str | None = None
    rollback: bool | None = None
    rules: list[_Rule] | None = None


class _Request(msgspec.Struct, rename="camel"):
    biz_exec_order_id: _Order
    node_id: _Node
    defense_stage_enum: Stage
    verdict: _Verdict


class _Wire(msgspec.Struct, rename="camel"):
    change_check_type: CheckType
    callback_request: _Request


_decode = msgspec.json.Decoder(_Wire).decode


def read(content: bytes, sent: float) -> Callback:
    """The callback with this content, which was signed at `sent` (Unix seconds). EndpointError (400) if it is not a
    callback."""
    try:
        wire = _decode(content)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise EndpointError(f"the body is not a callback: {one_line(str(error), _MAX_TEXT)}", 400) from None
    request = wire.callback_request
    verdict = ServerVerdict.of(request.verdict.verdict)
    rules = sorted(newest(request.verdict.rules or ()), key=lambda rule: _rank(rule.verdict))
    return Callback(
        check_type=wire.change_check_type,
        order=request.biz_exec_order_id,
        node=request.node_id,
        stage=request.defense_stage_enum,
        verdict=verdict,
        message=_message(verdict, request.verdict, rules),
        rules=tuple(rules[:MAX_RULES]),
        rollback=bool(request.verdict.rollback),
        sent=sent,
    )


def newest(rules: Iterable[Any]) -> list[Rule]:
    """The newest execution of each rule. The server also lists executions from before the check was run again. Of two
    that began at the same time, the later one in the list counts."""
    found: dict[str, _Rule] = {}
    for number, each in enumerate(rules):
        key = each.id or f"\x00{number}"  # without an id, it may be any rule
        if key not in found or each.began >= found[key].began:
            found[key] = each
    return [_rule(each) for each in found.values()]


def _rule(each: _Rule) -> Rule:
    return Rule(
        execution=one_line(str(each.rule_exe_id or ""), _MAX_TEXT),
        rule=one_line(each.id, _MAX_TEXT),
        name=one_line(each.name or "", _MAX_TEXT),
        owner=one_line(each.owner or "", _MAX_TEXT),
        status=one_line(each.status or "", _MAX_TEXT),
        verdict=one_line(each.verdict or "", _MAX_TEXT),
        message=one_line(each.msg or "", MAX_MESSAGE),
        skippable=bool(each.allow_ignore),
        skipped=bool(each.ignored),
        began=min(max(each.began, 0), _MAX_TIME),
    )


def _rank(verdict: str) -> int:
    return _DECIDED.index(verdict) if verdict in _DECIDED else len(_DECIDED)


def _message(verdict: ServerVerdict, wire: _Verdict, rules: Iterable[Rule]) -> str:
    """The reason for the verdict. A verdict that passes has none, although a rule on trial may have failed."""
    if verdict.passed:
        return ""
    reasons = [str(rule) for rule in rules if rule.failed]
    if wire.msg:
        reasons.append(wire.msg)
    if verdict is ServerVerdict.OTHER:
        reasons.insert(0, f"the server answered with the unknown verdict {one_line(wire.verdict, 32)!r}")
    return one_line("; ".join(reasons) or "the server gave no reason", MAX_MESSAGE)
