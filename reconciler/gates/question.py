"""What the worker is asked, and what it answers. Both are sent as JSON."""

import msgspec

from altershield.api.gates.windows import ReleaseWindowSpec
from reconciler.gates.problems import Problem
from reconciler.gates.times import Times


class Request(msgspec.Struct, frozen=True):
    """The arguments of `schedules.intervals`."""

    spec: ReleaseWindowSpec
    texts: dict[str, str]
    begin: int
    end: int


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The times, or why there are none."""

    times: Times | None = None
    problem: Problem | None = None
