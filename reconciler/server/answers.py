"""Answers of an AlterShield server: one envelope for all calls, with a content (`domain`) for each.

The server answers most errors with HTTP 200, so `success` decides, not the HTTP status and not the result code.
"""

import enum
import re
from typing import Annotated, TypeVar

import msgspec

from altershield.texts import one_line

T = TypeVar("T")

MAX_ANSWER = 2**20  # bytes

DUPLICATE = "106"
NOT_SUPPORTED = "103"
ILLEGAL_ARGUMENT = "101"
DENIED = "102"
SERVER_ERRORS = ("901", "998")

_STATE = re.compile(r"unsupported operation in ([A-Z_]{1,64})\b")
_SKIPPED = "exeNodeStateMachine is null"  # the server has no code for the state of a node after a skip


class Envelope(msgspec.Struct, frozen=True, rename="camel"):
    """An answer. `domain` is decoded by `content`."""

    success: bool
    result_code: str | None = None
    msg: str | None = None
    domain: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def code(self) -> str:
        return one_line(self.result_code or "", 32)

    @property
    def text(self) -> str:
        """The server's message on one line."""
        return one_line(self.msg or "")

    @property
    def state(self) -> str:
        """The state of the node in the message of a code 103, or empty."""
        found = _STATE.search(self.msg or "")
        return found[1] if found else ""


class ServerVerdict(enum.StrEnum):
    """A verdict. Only `pass` and `none` (no rule matched) let a release continue."""

    PASS = "pass"  # noqa: S105  (no password)
    NONE = "none"
    INCONC = "inconc"
    FAIL = "fail"
    OTHER = "other"
    """A text that the open API does not know, or no verdict."""

    @classmethod
    def of(cls, text: str | None) -> "ServerVerdict":
        """The verdict of a text of the server. The comparison is exact: an unknown text must not pass."""
        return cls(text) if text in (cls.PASS, cls.NONE, cls.INCONC, cls.FAIL) else cls.OTHER

    @property
    def passed(self) -> bool:
        return self in (ServerVerdict.PASS, ServerVerdict.NONE)


class Polled(msgspec.Struct, frozen=True):
    """The answer to a poll. A `pass` is conclusive. A `fail` may only mean that the check has not finished or timed
    out: the server's code says `finished` in both cases."""

    finished: bool
    verdict: ServerVerdict
    message: str = ""


class StartedNode(msgspec.Struct, frozen=True, rename="camel"):
    """The content of the answer to the start of a batch."""

    node_id: Annotated[str, msgspec.Meta(pattern=r"^[!-~]{1,64}\Z")]


class _Verdict(msgspec.Struct, frozen=True):
    verdict: str | None = None
    msg: str | None = None


class CheckResult(msgspec.Struct, frozen=True):
    """The content of the answer to a poll."""

    finished: bool
    verdict: _Verdict | None = None

    @property
    def polled(self) -> Polled:
        found = self.verdict or _Verdict()
        return Polled(self.finished, ServerVerdict.of(found.verdict), one_line(found.msg or ""))


class Switches(msgspec.Struct, frozen=True):
    """The content of a heartbeat: which checks the server's operators have turned off."""

    check: str | bool | None = msgspec.field(default=None, name="OPSCLOUD_CLIENT_SWITCH_CHG_SRV_CHECK")
    scenes: str | None = msgspec.field(default=None, name="OPSCLOUD_CLIENT_SWITCH_OFF_CHANGE_SCENE_KEYS")

    def enabled(self, scene: str) -> bool:
        """Whether releases of `scene` are checked."""
        off = [each.strip() for each in (self.scenes or "").split(",")]
        return str(self.check).lower() != "false" and scene not in off and "*" not in off


def envelope(body: bytes) -> Envelope:
    """ValueError if the body is not an envelope."""
    return _decoded(body, Envelope)


def content(answer: Envelope, type_: type[T]) -> T:
    """The content of an answer. ValueError if it is not of the type."""
    return _decoded(answer.domain, type_)


def is_skipped(code: str, text: str) -> bool:
    """Whether the server refused a call because the node has been skipped."""
    return code == ILLEGAL_ARGUMENT and _SKIPPED in text


def _decoded(data: bytes | msgspec.Raw, type_: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=type_)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(one_line(str(error), 256)) from error
