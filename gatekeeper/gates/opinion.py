"""What a gate has to say about a change."""

from collections.abc import Callable, Mapping

import msgspec

from gatekeeper.patch import Wanted
from gatekeeper.review import Change, Denial
from gatekeeper.view import View


class Opinion(msgspec.Struct, frozen=True):
    """`labels` and `template_labels` are what the workload's and its template's should be; only labels named
    there are touched. `reason` is one of a few words, for metrics and logs."""

    labels: Wanted = {}
    template_labels: Wanted = {}
    warnings: tuple[str, ...] = ()
    audit: Mapping[str, str] = {}
    denial: Denial | None = None
    reason: str = ""


NOTHING = Opinion()

Gate = Callable[[Change, View], Opinion]
"""A pure function of the change and of what the caches hold."""
