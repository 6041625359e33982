"""The record of the ReleaseOverrides that let a release pass closed gates. Pure functions.

A gatekeeper stores a use in the override before it admits the release. Anybody with the right may delete the override
after that, so the release has the use among its actions, and so has the history.
"""

from collections.abc import Collection, Iterable

import msgspec

from altershield.api.change_workload import WorkloadState
from altershield.api.gates.overrides import ReleaseOverride, Use
from altershield.api.workload_requests import MAX_ACTIONS, OVERRIDE, Action, Result
from altershield.releases.release import state, version_of
from altershield.workloads.pods import clip
from kube_base.times import unix
from reconciler.cluster.release import Release
from reconciler.releases.decisions.history import bounded
from reconciler.releases.terms.draft import with_update_time
from reconciler.releases.terms.effects import Decision

_CLOCKS_DIFFER = 30.0  # seconds, at most, between two gatekeepers
_MAX_TEXT = 1000  # characters


def overridden(release: Release, overrides: Iterable[ReleaseOverride], now: float) -> Decision | None:
    """The decision that adds the uses of overrides by this release to its actions; None if it has them. `overrides`:
    those for its workload."""
    uids = ("", release.spec.workload_ref.uid)
    used = [
        _action(each, use)
        for each, use in _uses(release, overrides)
        if use.uid in uids and not _is_earlier(use, release)
    ]
    return _with_actions(release, used, now)


def overridden_before(
    release: Release, overrides: Iterable[ReleaseOverride], recorded: Collection[Action], now: float
) -> Decision | None:
    """The decision that adds uses of overrides from before the release; None if there are none. `recorded`: the actions
    of its version in the history.

    A request may use an override and fail elsewhere, for example at a quota. A later request passes by the same use.
    The history has the uses by earlier releases. It is asked only when a release begins.
    """
    if state(release) is not WorkloadState.INIT:
        return None
    uid = release.spec.workload_ref.uid
    used = [
        _action(each, use) for each, use in _uses(release, overrides) if use.uid == uid and _is_earlier(use, release)
    ]
    new = [each for each in used if bounded(each) not in recorded and not _was_dropped(each, recorded)]
    return _with_actions(release, new, now)


def _with_actions(release: Release, used: Iterable[Action], now: float) -> Decision | None:
    known = release.status.actions
    new = [each for each in used if each not in known and not _was_dropped(each, known)]
    if not new:
        return None
    status = msgspec.structs.replace(release.status, actions=(*known, *new)[-MAX_ACTIONS:])
    return Decision(with_update_time(status, now))


def _uses(release: Release, overrides: Iterable[ReleaseOverride]) -> list[tuple[ReleaseOverride, Use]]:
    """The uses by the version, also by workloads of the name that were deleted."""
    version = version_of(release)
    return [(each, use) for each in overrides for use in each.status.uses if use.version == version]


def _is_earlier(use: Use, release: Release) -> bool:
    """Whether the use is from before the release."""
    spec = release.spec
    began = unix(spec.release_time) if spec.release_time else spec.create_time_unix
    return unix(use.time) < began - _CLOCKS_DIFFER


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


def _was_dropped(action: Action, known: Collection[Action]) -> bool:
    """Whether later actions have taken its place."""
    return len(known) >= MAX_ACTIONS and unix(action.time) <= min(unix(each.time) for each in known)
