"""The users who delete most, and the deletions that were refused last. Both lists are bounded."""

from collections.abc import Iterable, Sequence

import msgspec

from altershield.api.flow_control import MAX_DENIED, MAX_SOURCES, Denied, Source
from altershield.api.meta import time_of
from altershield.flow_control.deletion import Deletion
from kube_base.times import rfc3339

MAX_NAME = 253
"""The characters of a user name that the status keeps."""


def with_deletion(sources: Sequence[Source], by: str, now: int, horizon: int) -> tuple[Source, ...]:
    """The sources after one more deletion by the user `by`. A source without a deletion for `horizon` seconds is
    dropped.

    A new source replaces the smallest one and takes over its count (the algorithm Space-Saving). So a count is never
    too small, and a user with more than a tenth of the deletions is in the list.
    """
    kept = [each for each in sources if time_of(each.last_time, now) > now - horizon]
    known = next((each for each in kept if each.by == by), None)
    replaced = known
    if known is None and len(kept) >= MAX_SOURCES:
        replaced = min(kept, key=lambda each: each.count)
    count = replaced.count if replaced is not None else 0
    kept = [each for each in kept if each is not replaced]
    kept.append(Source(by, count + 1, rfc3339(now)))
    return tuple(sorted(kept, key=lambda each: (-each.count, each.by)))


def denied_entry(deletion: Deletion, now: int) -> Denied:
    """The entry of a refused deletion in `lastDenied`."""
    return Denied(
        namespace=deletion.namespace,
        name=deletion.name,
        operation=str(deletion.operation),
        by=deletion.by[:MAX_NAME],
        time=rfc3339(now),
    )


def with_denied(known: Sequence[Denied], new: Iterable[Denied]) -> tuple[Denied, ...]:
    """The refused deletions, `known` and `new` ones, the last ones first. There is one entry for each pod, operation
    and user."""
    found = {_identity(each): each for each in reversed(known)}
    for each in new:
        before = found.pop(_identity(each), None)
        if before is not None:
            each = msgspec.structs.replace(each, count=before.count + each.count)
        found[_identity(each)] = each
    return tuple(reversed(found.values()))[:MAX_DENIED]


def _identity(each: Denied) -> tuple[str, str, str, str]:
    return each.namespace, each.name, each.operation, each.by
