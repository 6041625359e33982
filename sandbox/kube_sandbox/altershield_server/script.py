"""The script of the server: how checks end, how callbacks are sent, which calls fail. Also the JSON of
`PUT /sandbox/script`.

    script = Script(seed=7, post=StageScript(fail_share=0.02, delay=(0.2, 5)))
    script.faults = [Fault(kind=FaultKind.HTTP, calls=[Call.POLL], times=3)]

All attributes may change while the server runs. A check keeps the values from its start. All times are in seconds.
Shares are from 0 to 1. `seed`, the order and the batch decide which of them are affected: a run can be repeated.
"""

import math
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Literal

import msgspec

from kube_sandbox.altershield_server import chance
from kube_sandbox.altershield_server.vocabulary import Call, Code, Stage

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=86_400)]
Span = tuple[Seconds, Seconds]
"""A range; each use takes a number in it."""

Name = Annotated[str, msgspec.Meta(max_length=256)]
Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]
_Few = msgspec.Meta(max_length=100)

NEVER = "never"
STUCK = "stuck"
CRASH = "crash"
PASS = "pass"  # noqa: S105
FAIL = "fail"


class RuleScript(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A rule that runs in a check."""

    name: Name = "scripted rule"
    owner: Name = "sandbox"
    msg: Annotated[str, msgspec.Meta(max_length=16_384)] = ""
    verdict: Literal["", "PASS", "FAIL", "INCONC"] = ""
    """Empty: as the check ends."""

    allow_ignore: bool = True


class StageScript(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How the checks of one stage end."""

    verdict: Name = PASS
    """`pass` or `fail`. `never`: the rules do not end, so that the step times out. `stuck`: the check is never started;
    there is no timeout and no callback. `crash`: the check crashes and is reported as passed. Any other text is sent in
    callbacks as it is, and polls say `fail`."""

    fail_share: Share = 0.0
    """This share of the checks fails, whatever `verdict` says."""

    rules: Annotated[list[RuleScript], _Few] = msgspec.field(default_factory=lambda: [RuleScript()])
    """Empty: no rule matches. The check passes at once, unless another verdict is scripted."""

    start_delay: Span = (0.0, 0.0)
    """From the call to the start of the rules (state `*_AOP_SUBMIT`)."""

    delay: Span = (0.0, 0.0)
    """The duration of the rules (state `*_AOP`)."""

    timeout: Seconds = 660.0
    """The step timeout. It is counted from the start of the rules; when it expires, the check is reported as passed,
    without rules. A new scene of the published server has 1 s for PRE and 10 s for POST."""


class Case(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How the checks of certain orders end, instead of `Script.pre` and `Script.post`."""

    order: Name = "*"
    """A shell pattern for the order id, the title, or one of the applications."""

    batch: int | None = None
    stage: Stage | None = None
    check: StageScript


class CallbackScript(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Faults of callbacks."""

    lose: Share = 0.0
    duplicate: Share = 0.0
    """Sent two times."""

    late: Share = 0.0
    late_by: Span = (1.0, 5.0)
    reorder: Share = 0.0
    """Held until another callback was sent, or for 5 s."""

    delay: Span = (0.0, 0.0)
    """From the end of a check to its callback."""

    before_answer: bool = False
    """The answer of the call waits until the check has ended and its callback was sent (at most 6 s)."""


class FaultKind(StrEnum):
    REFUSE = "refuse"
    """`success: false` with `code` and `message`."""

    HTTP = "http"
    """The HTTP status `status`."""

    EMPTY = "empty"
    """HTTP status 200 with an empty body, as after an exception that the server does not handle."""

    HANG = "hang"
    """No answer until the client closes the connection."""

    DROP = "drop"
    """The connection is closed without an answer."""

    SLOW = "slow"
    """The answer comes after `seconds` more."""


class Fault(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Calls that fail. The first fault that applies to a call is used."""

    kind: FaultKind
    calls: Annotated[list[Call], _Few] = []
    """Empty: all calls."""

    order: Name = "*"
    """A shell pattern for the order id."""

    share: Share = 1.0
    skip: Count = 0
    """This number of calls is unaffected at first."""

    times: Count | None = None
    """This number of calls fails, later ones do not. null: no limit."""

    processed: bool = False
    """Whether the call takes effect before it fails. SLOW: always."""

    code: Code = Code.ILLEGAL_ARGUMENT
    message: Name = "refused by the script"
    status: Annotated[int, msgspec.Meta(ge=400, le=599)] = 500
    seconds: Seconds = 1.0


class Heartbeat(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The switches that the heartbeat reports."""

    checks: bool = True
    off_scenes: Annotated[list[Name], _Few] = []


class Script(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The whole script. The default: each check passes at once with one rule, and no call fails."""

    seed: int = 0
    pre: StageScript = msgspec.field(default_factory=StageScript)
    post: StageScript = msgspec.field(default_factory=StageScript)
    cases: Annotated[list[Case], _Few] = []
    callbacks: CallbackScript = msgspec.field(default_factory=CallbackScript)
    faults: Annotated[list[Fault], _Few] = []
    latency: Span = (0.0, 0.0)
    """Added to the time of each call."""

    down: bool = False
    """Each connection to the API is closed without an answer. The paths below `/sandbox` still work."""

    unfinished_polls: bool = False
    """Polls say `finished: false` while a check runs, as the interface intends. The published server says
    `finished: true` and `fail`."""

    heartbeat: Heartbeat = msgspec.field(default_factory=Heartbeat)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How one check ends."""

    verdict: str
    rules: tuple[RuleScript, ...]
    start_delay: float
    delay: float
    """Infinite if the rules do not end."""

    timeout: float


def plan(script: Script, stage: Stage, order: str, names: tuple[str, ...], batch: int | None) -> Plan:
    """How the check of this order, batch and stage ends. `names` are the texts that `Case.order` is compared with."""
    chosen = _chosen(script, stage, names, batch)
    key = (stage, order, batch)
    verdict = FAIL if chance.happens(chosen.fail_share, script.seed, "fail", *key) else chosen.verdict
    return Plan(
        verdict=verdict,
        rules=tuple(chosen.rules),
        start_delay=math.inf if verdict == STUCK else chance.between(chosen.start_delay, script.seed, "start", *key),
        delay=math.inf if verdict == NEVER else chance.between(chosen.delay, script.seed, "delay", *key),
        timeout=chosen.timeout,
    )


def _chosen(script: Script, stage: Stage, names: tuple[str, ...], batch: int | None) -> StageScript:
    for case in script.cases:
        if (
            case.batch in (None, batch)
            and case.stage in (None, stage)
            and any(fnmatchcase(name, case.order) for name in names)
        ):
            return case.check
    return script.pre if stage == Stage.PRE else script.post
