"""Which workloads need somebody, and which releases say so. Pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from altershield import releases
from altershield.api.change_workload import ChangeWorkload, WorkloadState
from altershield.releases import Outcome, steps
from altershield.releases.release import OBSERVING
from altershield.views.releases.model import Release
from kube_base.resources import GroupKind


class Attention(IntEnum):
    """Why a workload needs somebody, the most urgent first."""

    SUSPENDED = 0
    """Its releases are denied, except a repair."""
    FAILED = 1
    """A version was rolled back, is being rolled back or was refused, pods failed, or pods do not stay up."""
    APPROVAL = 2
    """A step begins only after a person promotes it."""
    HELD = 3
    """A person holds or paused the release, or it does not proceed for a reason that does not end by itself."""
    UNDER_WAY = 4
    """A release is under way: nobody is needed."""
    NONE = 5

    @property
    def needs_somebody(self) -> bool:
        return self < Attention.UNDER_WAY


class Triage(NamedTuple):
    """What `altershield status` without a name shows."""

    releases: Sequence[Release]
    """The releases that say why their workload needs somebody or is under way, the most urgent first."""
    needing: int
    """How many workloads need somebody."""
    under_way: int
    """How many others have a release under way."""
    others: int
    """How many workloads are not shown."""
    needs: Mapping[tuple[str, str, GroupKind], Attention]
    """Why each workload needs somebody, by `Release.key`."""

    @property
    def summary(self) -> str:
        """One sentence about the workloads that are not shown; empty if all are shown."""
        if not self.others:
            return ""
        shown = [
            _count(self.needing, "workload needs somebody", "workloads need somebody"),
            _count(self.under_way, "release is under way", "releases are under way"),
        ]
        text = ", ".join(filter(None, shown)) or "no workload needs somebody, and no release is under way"
        others = _count(self.others, "other workload is", "other workloads are")
        return (
            f"{text[0].upper()}{text[1:]}; {others} not shown, add --all to see {'it' if self.others == 1 else 'them'}"
        )


def triage(found: Sequence[Release]) -> Triage:
    """`found`: the releases of all workloads, as `model.shown` returns them."""
    families: dict[tuple[str, str, GroupKind], list[Release]] = {}
    for each in found:
        families.setdefault(each.key, []).append(each)
    judged = sorted(((attention(each), each) for each in families.values()), key=lambda pair: pair[0])
    counts = [level for level, _ in judged]
    return Triage(
        [each for level, family in judged if level is not Attention.NONE for each in family if _matters(each)],
        sum(level.needs_somebody for level in counts),
        counts.count(Attention.UNDER_WAY),
        counts.count(Attention.NONE),
        {family[0].key: level for level, family in judged},
    )


def attention(family: Iterable[Release]) -> Attention:
    """Why the workload needs somebody. `family`: all releases of one workload, at least one."""
    family = list(family)
    outcome = releases.outcome(family[0].workload, (each.stored.release for each in family if each.stored is not None))
    present = next((each for each in family if each.present), None)
    change = present.stored.release if present is not None and present.stored is not None else None
    if outcome is Outcome.SUSPENDED:
        return Attention.SUSPENDED
    if outcome is Outcome.ROLLED_BACK:
        return Attention.FAILED
    if outcome is Outcome.SUCCEEDED:
        return Attention.FAILED if change is not None and _unstable(change) else Attention.NONE
    return Attention.UNDER_WAY if change is None or (present is not None and present.pending) else _under_way(change)


def _under_way(change: ChangeWorkload) -> Attention:
    if releases.state(change) is WorkloadState.ROLLBACK or releases.failures(change):
        return Attention.FAILED
    status = change.status.rollout
    if steps.is_held(status):
        return Attention.HELD
    if steps.in_steps(status) and steps.waits_for_person(status):
        return Attention.APPROVAL
    return Attention.HELD if releases.stalled(change) is not None else Attention.UNDER_WAY


def _unstable(change: ChangeWorkload) -> bool:
    """Whether pods of a release that passed restart or are down."""
    settling = releases.unsettled(change)
    return settling is not None and settling.reason != OBSERVING


def _matters(release: Release) -> bool:
    """Whether the release says why its workload is shown: it is the present one, or its version is denied."""
    return release.present or (
        release.stored is not None and releases.wants_attention(release.stored.release, release.workload)
    )


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}" if number else ""
