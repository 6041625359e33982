"""The actions that people request on a release, and the answers to them."""

import enum
from typing import Annotated

import msgspec

from altershield.api.fields import Name, Text
from altershield.api.schema import doc

MAX_ACTIONS = 16
"""The maximum number of `actions` in a status."""


class Verb(enum.StrEnum):
    """`ChangeWorkload.status.request.verb`: the action that a person requests."""

    APPROVE = "Approve"
    """The failure is a false alarm: the failed pods count as passed, and the suspension ends."""
    REPAIR = "Repair"
    """The next release passes the suspension, once."""
    RESUME = "Resume"
    """Further releases pass. The verdict on this release stays."""
    ROLLBACK = "Rollback"
    """An older version is released again."""
    RETRY = "Retry"
    """The failed pods, and those that wait for a person, are verified again. A refused order or rollback is tried
    again."""
    PROMOTE = "Promote"
    """A release in steps takes its next step, without the rest of its soak and without waiting for approval."""
    PROMOTE_FULL = "PromoteFull"
    """As `Promote`; later steps have no soak and no approval either. Each is still verified."""
    HOLD = "Hold"
    """A release in steps stays where it is until a person promotes it."""


BYPASS = "Bypass"
"""The verb of an action without a request: a release passed the suspension by the label `ignored-suspend`."""

OVERRIDE = "Override"
"""The verb of an action without a request: a ReleaseOverride let the release pass closed gates. The action is by the
user who asked for the override, with the reason and the time of its use."""


class Result(enum.StrEnum):
    """`ChangeWorkload.status.actions[].result`."""

    DONE = "Done"
    UNCHANGED = "Unchanged"
    """The request did not apply in the state of the release, or its effect was there already."""
    REFUSED = "Refused"
    """The request cannot be carried out."""


class Request(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """An action on this release that a person requests. AlterShield carries the request out, removes it, and adds it to
    `actions`."""

    verb: Annotated[Name, doc("The requested action.")]
    by: Annotated[Text, doc("The user who asks; the API server refuses the name of another user.")] = ""
    reason: Annotated[str, msgspec.Meta(max_length=512, description="The reason, for other people.")] = ""
    time: Annotated[Name, doc("When the person requested it, UTC.")] = ""
    to: Annotated[
        Name,
        doc("Of a `Rollback`: the version, or the name of the object that holds it; empty: the last that passed."),
    ] = ""
    begun: Annotated[bool, doc("Whether AlterShield has begun to carry it out.")] = False


class Action(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A request that was carried out, or the reason why it was not."""

    verb: Annotated[
        Name,
        doc(
            "The verb of the request. `Bypass`: a release passed the suspension by the label `ignored-suspend`. "
            "`Override`: a ReleaseOverride let the release pass closed gates."
        ),
    ] = ""
    by: Annotated[Text, doc("The user who asked.")] = ""
    reason: Annotated[Text, doc("The reason that the user gave.")] = ""
    time: Annotated[Name, doc("When AlterShield answered, UTC.")] = ""
    result: Annotated[Name, doc("`Done`, `Unchanged` (it did not apply) or `Refused` (it was not possible).")] = ""
    outcome: Annotated[Text, doc("What was done, or why nothing was done.")] = ""
