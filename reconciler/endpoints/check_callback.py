"""A callback about a check: the verdict of the receiver of an `http` check of a DefensePolicy."""

from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from altershield.texts import one_line
from reconciler.checks.check import Fail, Pass, Result, Unknown
from reconciler.checks.identity import CheckRun, parsed
from reconciler.checks.reasons import reason
from reconciler.endpoints.endpoint_errors import EndpointError

MAX_BODY = 16 * 1024
"""Bytes of a callback."""

_MAX_TEXT = 256


@dataclass(frozen=True, kw_only=True)
class CheckCallback:
    """A callback. `read` verifies no signature."""

    run: CheckRun
    result: Result


class _Wire(msgspec.Struct):
    run: Annotated[str, msgspec.Meta(max_length=512)]
    verdict: Literal["pass", "fail", "unknown"]
    message: str | None = None


_decode = msgspec.json.Decoder(_Wire).decode


def read(body: bytes) -> CheckCallback:
    """The callback in a body. EndpointError (400) if the body is not a callback."""
    try:
        wire = _decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise EndpointError(f"the body is not a callback: {one_line(str(error), _MAX_TEXT)}", 400) from None
    run = parsed(wire.run)
    if run is None:
        raise EndpointError("the body is not a callback: `run` is not the one of a request", 400)
    return CheckCallback(run=run, result=_result(wire.verdict, reason(wire.message or "")))


def _result(verdict: str, message: str) -> Result:
    match verdict:
        case "pass":
            return Pass(message)
        case "fail":
            return Fail(message or "the callback says fail")
    return Unknown(message or "the callback says unknown")
