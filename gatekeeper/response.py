"""Responses of handlers, and the typed values that responses, logs and metrics share."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from altershield.api.json_patch import Operation

Wanted = Mapping[str, str | None]
"""Keys of labels or annotations, and the values that they should have. None: it should not exist."""


class Decision(StrEnum):
    ALLOWED = "allowed"
    PATCHED = "patched"
    DENIED = "denied"


class Reason(StrEnum):
    """The reasons of the gatekeeper itself. Each feature has its own reasons."""

    PASSED = "passed"
    UNDECLARED = "undeclared"
    """A handler returned an outcome that it does not declare. This is a bug of the handler. The request is answered."""


class Actor(StrEnum):
    """The kinds of users that requests are counted by."""

    RECONCILER = "reconciler"
    SERVICE_ACCOUNT = "serviceaccount"
    USER = "user"


class Outcome(NamedTuple):
    """One way in which a request can end. Handlers declare theirs; the label values of the metrics follow."""

    decision: Decision
    reason: StrEnum
    bypassed_by: tuple[Actor, ...] = ()
    """For a request that passes although a handler would deny it: the kinds of users who can cause this. Metrics count
    such requests by the kind of user."""


class Cause(msgspec.Struct, frozen=True):
    """A part of a denial that clients can read: an entry of `details.causes`."""

    reason: str
    message: str
    field: str = ""


class Denial(msgspec.Struct, frozen=True):
    """Why a request is denied, for the `status` of the response. kubectl prints
    `Error from server (REASON): admission webhook "NAME" denied the request: MESSAGE`."""

    message: str
    reason: str
    code: int = 403
    causes: tuple[Cause, ...] = ()

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "status": "Failure", "message": self.message, "reason": self.reason, "code": self.code,
        }  # fmt: skip
        if self.causes:
            found["details"] = {
                "causes": [
                    {"reason": each.reason, "message": each.message, **({"field": each.field} if each.field else {})}
                    for each in self.causes
                ]
            }
        return found


class Response(msgspec.Struct, frozen=True):
    """The answer of a handler. `labels` and `template_labels` are the values that labels of the object and of its pod
    template should have; other labels do not change. `annotations` are those of the object. `patch` has further JSON
    patch operations. The API server writes `audit` into its audit log, under the name of the webhook. `reason` is for
    logs and metrics."""

    labels: Wanted = {}
    template_labels: Wanted = {}
    annotations: Wanted = {}
    patch: Sequence[Operation] = ()
    warnings: tuple[str, ...] = ()
    audit: Mapping[str, str] = {}
    denial: Denial | None = None
    reason: StrEnum | None = None


NOTHING = Response()
"""The answer of a handler that neither changes nor denies a request."""


class Answer(msgspec.Struct, frozen=True):
    """The combined responses of all handlers of a request."""

    decision: Decision
    reason: StrEnum
    patch: Sequence[Operation] = ()
    warnings: tuple[str, ...] = ()
    audit: Mapping[str, str] = {}
    denial: Denial | None = None


PASSED = Answer(Decision.ALLOWED, Reason.PASSED)
