"""The record of the ReleaseOverrides that let a release pass closed gates. Pure functions.

A gatekeeper stores a use in the override before it admits the release. Anybody with the right may delete the override
after that, so the release has the use among its actions, and so has the history.
"""

from collections.abc import Iterable

import msgspec

from altershield.api.gates.overrides import ReleaseOverride, Use
from altershield.api.workload_requests import MAX_ACTIONS, OVERRIDE, Action, Result
from altershield.releases.release import version_of
from altershield.workloads.pods import clip
from kube_base.times import unix
from reconciler.cluster.release import Release
from reconciler.releases.terms.draft import with_update_time
from reconciler.releases.terms.effects import Decision

_CLOCKS_DIFFER = 30.0  # seconds, at most, between two gatekeepers
_MAX_TEXT = 1000  # characters


def overridden(release: Release, overrides: Iterable[ReleaseOverride], now: float) -> Decision | None:
    """The decision that adds the uses of overrides by this release to its actions; None if it has them. `overrides`:
    those for its workload."""
    known = release.status.actions
    used = [_action(each, use) for each in overrides for use in each.status.uses if _is_by(use, release)]
    new = [each for each in used if each not in known and not _was_dropped(each, known)]
    if not new:
        return None
    status = msgspec.structs.replace(release.status, actions=(*known, *new)[-MAX_ACTIONS:])
    return Decision(with_update_time(status, now))


def _is_by(use: Use, release: Release) -> bool:
    """Whether this release used it, not an earlier release of the version: that one has the use already."""
    spec = release.spec
    began = unix(spec.release_time) if spec.release_time else spec.create_time_unix
    by_version = use.version == version_of(release) and use.uid in ("", spec.workload_ref.uid)
    return by_version and unix(use.time) >= began - _CLOCKS_DIFFER


def _action(override: ReleaseOverride, use: Use) -> Action:
    metadata, spec = override.metadata, override.spec
    return Action(
        verb=OVERRIDE,
        by=spec.requested_by,
        reason=clip(spec.reason, _MAX_TEXT),
        time=use.time,
        result=Result.DONE,
        outcome=clip(
            f"ReleaseOverride {metadata.namespace}/{metadata.name} let it pass {', '.join(use.gates)}", _MAX_TEXT
        ),
    )


def _was_dropped(action: Action, known: tuple[Action, ...]) -> bool:
    """Whether later actions have taken its place."""
    return len(known) >= MAX_ACTIONS and unix(action.time) <= min(unix(each.time) for each in known)
