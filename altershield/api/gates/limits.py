"""The kind ReleaseLimit: how many releases may begin in a time and be under way, how long a workload rests after a
release, and how many failures stop all releases. The CRD is generated from these types.

The reconciler counts releases and failures, and writes them into the status. Gatekeepers compare them with the spec.
"""

from typing import Annotated

import msgspec

from altershield.api.announcements import Announcements
from altershield.api.fields import Conditions, Generation, Name
from altershield.api.gates.named_workload import NamedWorkload
from altershield.api.gates.rules import Holding
from altershield.api.kinds import AGE, NOT_PROCESSED, Column, Kind
from altershield.api.resources import API_VERSION, RELEASE_LIMITS
from altershield.api.schema import doc, extra, rules
from kube_base.meta import ObjectMeta

MAX_RELEASES = 200
"""The maximum of `rate.releases`."""

MAX_CONCURRENT = 100
"""The maximum of `concurrent`."""

MAX_FUSE = 50
"""The maximum of `fuse.failures`."""

MAX_FAILURES = 100
"""The maximum number of failures in the status."""

MAX_PERIOD = 7 * 86_400
"""The maximum of the periods and of `quietSeconds`."""

_Period = Annotated[int, msgspec.Meta(ge=1, le=MAX_PERIOD)]


class Fuse(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """How many failures stop all releases."""

    failures: Annotated[
        int,
        msgspec.Meta(
            ge=1,
            le=MAX_FUSE,
            description="When the releases of so many different workloads have failed within the period, a "
            "ReleaseFreeze is created.",
        ),
    ]
    period_seconds: Annotated[_Period, doc("The period, in seconds.")]


class Rate(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """How many releases may begin in a period."""

    releases: Annotated[
        int, msgspec.Meta(ge=1, le=MAX_RELEASES, description="How many releases may begin in any such period.")
    ]
    period_seconds: Annotated[_Period, doc("The period, in seconds.")]


class ReleaseLimitSpec(Holding, frozen=True, omit_defaults=True, rename="camel", gc=False, kw_only=True):
    """The limits. At least one of `fuse`, `rate`, `concurrent` and `quietSeconds` is set."""

    fuse: Annotated[Fuse | None, doc("How many failures stop all releases.")] = None
    rate: Annotated[Rate | None, doc("How many releases may begin in a period.")] = None
    concurrent: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=MAX_CONCURRENT)] | None,
        doc(
            "How many releases may be under way: pods are replaced, verified, or have to stay verified. Releases that "
            "are held, stalled or stopped, or that wait for a person, do not count."
        ),
    ] = None
    quiet_seconds: Annotated[
        _Period | None,
        doc("Seconds after the success of a release of a workload before the next one of this workload may begin."),
    ] = None


class CountedRelease(NamedWorkload, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A release that counts."""

    version: Annotated[Name, doc("The version.")] = ""
    time: Annotated[Name, doc("When it began, UTC.")] = ""


class CountedFailure(NamedWorkload, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The first failure of a release that counts."""

    uid: Annotated[Name, doc("The uid of the release's ChangeWorkload.")] = ""
    time: Annotated[Name, doc("When it failed, UTC.")] = ""


class Trip(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """The fuse has tripped."""

    time: Annotated[Name, doc("When it tripped, UTC.")] = ""
    freeze: Annotated[Name, doc("The name of its ReleaseFreeze.")] = ""
    made: Annotated[bool, doc("Whether the ReleaseFreeze was created.")] = False


class ReleaseLimitStatus(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """What counts."""

    releases: Annotated[
        tuple[CountedRelease, ...],
        msgspec.Meta(
            max_length=MAX_RELEASES,
            description="With `rate`: the releases that began in the period, the newest last; not more than may begin.",
        ),
        extra(x_kubernetes_list_type="atomic"),
    ] = ()
    under_way: Annotated[
        tuple[CountedRelease, ...],
        msgspec.Meta(
            max_length=MAX_CONCURRENT + 1,
            description="With `concurrent`: the releases that are under way, the newest last; at most one more than "
            "may be.",
        ),
        extra(x_kubernetes_list_type="atomic"),
    ] = ()
    failures: Annotated[
        tuple[CountedFailure, ...],
        msgspec.Meta(
            max_length=MAX_FAILURES,
            description="With `fuse`: the first failures in the period, the last one of each workload.",
        ),
        extra(x_kubernetes_list_type="atomic"),
    ] = ()
    counted_since: Annotated[
        Name, doc("Earlier failures do not count any more, UTC; empty: all in the period count.")
    ] = ""
    trip: Annotated[Trip | None, doc("The fuse has tripped, and its ReleaseFreeze has not ended.")] = None
    announcements: Announcements = ()
    conditions: Conditions = ()
    observed_generation: Annotated[Generation, doc("The generation of the spec that this status describes.")] = 0


class ReleaseLimit(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """How many releases may begin, be under way, and fail."""

    metadata: ObjectMeta
    spec: Annotated[
        ReleaseLimitSpec,
        rules(
            (
                "has(self.fuse) || has(self.rate) || has(self.concurrent) || has(self.quietSeconds)",
                "a ReleaseLimit has at least one of fuse, rate, concurrent and quietSeconds",
            ),
        ),
    ]
    status: ReleaseLimitStatus = ReleaseLimitStatus()
    api_version: str = msgspec.field(default_factory=lambda: API_VERSION)
    kind: str = msgspec.field(default_factory=lambda: RELEASE_LIMITS.kind)


KIND = Kind(
    resource=RELEASE_LIMITS,
    type=ReleaseLimit,
    short_name="rl",
    title="Release limit",
    summary="How many releases may begin, be under way, and fail",
    columns=(
        Column("MODE", "string", ".spec.mode"),
        Column("ACCEPTED", "string", '.status.conditions[?(@.type=="Accepted")].status'),
        AGE,
        Column("RATE", "integer", ".spec.rate.releases", wide=True),
        Column("CONCURRENT", "integer", ".spec.concurrent", wide=True),
        Column("QUIET", "integer", ".spec.quietSeconds", wide=True),
        Column("FUSE", "integer", ".spec.fuse.failures", wide=True),
        Column("TRIPPED", "string", ".status.trip.freeze", wide=True),
    ),
    status={"conditions": NOT_PROCESSED},
    nullable=False,
)
