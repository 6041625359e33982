"""The fuse of a ReleaseLimit: when it trips, and its ReleaseFreeze. Pure functions.

The status says that the fuse has tripped before the freeze is created, and the name of the freeze follows from the
status. So a crash between two writes ends with one freeze.
"""

import hashlib
from collections.abc import Sequence

from altershield.api.gates.freezes import BlownFuse, ReleaseFreeze, ReleaseFreezeSpec
from altershield.api.gates.limits import CountedFailure, Fuse, ReleaseLimit, Trip
from altershield.api.gates.named_workload import NamedWorkload
from altershield.api.gates.rules import MAX_GATE_REASON
from kube_base.meta import ObjectMeta
from kube_base.times import unix

Workloads = tuple[NamedWorkload, ...]

_MAX_NAME = 200  # of the limit, in the name of the freeze
_DIGEST_DIGITS = 10


def trip(limit: str, failures: Sequence[CountedFailure], fuse: Fuse | None, since: float, now: float) -> Trip | None:
    """The trip of the fuse of a limit with this name; None if the fuse has not tripped.

    It trips if so many workloads failed in the period that ends with the last failure, and after `since`, Unix seconds.
    A last failure that is older than the period trips nothing: no reconciler ran.
    """
    times = [unix(each.time) for each in failures if unix(each.time) > since]
    if fuse is None or not times or max(times) <= now - fuse.period_seconds:
        return None
    last = max(times)
    if sum(each > last - fuse.period_seconds for each in times) < fuse.failures:
        return None
    time = next(each.time for each in failures if unix(each.time) == last)
    return Trip(time, freeze_name(limit, time))


def freeze_name(limit: str, time: str) -> str:
    """`fuse-LIMIT-TIME`, for a time in the format of Kubernetes."""
    if len(limit) > _MAX_NAME:
        digest = hashlib.sha256(limit.encode()).hexdigest()[:_DIGEST_DIGITS]
        limit = f"{limit[: _MAX_NAME - _DIGEST_DIGITS - 1].rstrip('-.')}-{digest}"
    return f"fuse-{limit}-{''.join(filter(str.isdigit, time))}"


def freeze(limit: ReleaseLimit, tripped: Trip, user: str) -> ReleaseFreeze:
    """The freeze. It lasts until a person ends it. `user`: the user name of the reconciler."""
    spec, metadata = limit.spec, limit.metadata
    workloads = failed(limit.status.failures, spec.fuse, unix(limit.status.counted_since), tripped)
    return ReleaseFreeze(
        metadata=ObjectMeta(name=tripped.freeze, namespace=metadata.namespace),
        spec=ReleaseFreezeSpec(
            selector=spec.selector,
            namespace_selector=spec.namespace_selector,
            mode=spec.mode,
            when_closed=spec.when_closed,
            judges=spec.judges,
            reason=reason(metadata.name, workloads),
            requested_by=user,
            fuse=BlownFuse(metadata.name, workloads),
        ),
    )


def reason(limit: str, workloads: Workloads) -> str:
    """`the fuse of the ReleaseLimit NAME tripped: releases of 3 workloads failed: …`, cut to the length of a reason."""
    text = f"the fuse of the ReleaseLimit {limit} tripped: releases of {len(workloads)} workloads failed: "
    named = list[str]()
    for number, each in enumerate(workloads):
        more = f" and {len(workloads) - number} more"
        if len(text) + len(", ".join((*named, each.text))) + len(more) > MAX_GATE_REASON:
            return text + ", ".join(named) + more
        named.append(each.text)
    return text + ", ".join(named)


def failed(failures: Sequence[CountedFailure], fuse: Fuse | None, since: float, tripped: Trip) -> Workloads:
    """The workloads whose failures tripped the fuse. `since`: Unix seconds; earlier failures do not count."""
    at = unix(tripped.time)
    begin = max(since, at - fuse.period_seconds if fuse is not None else 0.0)
    return tuple(
        NamedWorkload(each.namespace, each.api_version, each.kind, each.name)
        for each in failures
        if begin < unix(each.time) <= at
    )
