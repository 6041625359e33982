"""ReleaseFreezes: no release may begin until a person, or a time, ends the freeze."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from altershield.api.gates.freezes import ReleaseFreeze, ReleaseFreezeSpec
from altershield.api.resources import RELEASE_FREEZES
from altershield.gates.gate import Gate
from altershield.gates.release import Closed, Release, selects_any, unchanged_until
from kube_base.times import rfc3339, unix


@dataclass(frozen=True, slots=True)
class Freeze:
    """A ReleaseFreeze. It is in force as soon as it exists."""

    namespace: str
    name: str
    rules: ReleaseFreezeSpec
    begins: float
    """Unix seconds."""
    ends: float
    """Unix seconds; infinity: when a person ends it."""

    def is_open(self, now: float) -> bool:
        return not self.begins <= now < self.ends

    def opens_at(self, now: float) -> float:
        """When it ends, while it is closed; 0: when a person ends it."""
        return self.ends if self.ends != float("inf") else 0.0

    def closes_at(self, now: float) -> float:
        """When it begins, while it is open; 0: it is over."""
        return self.begins if now < self.begins else 0.0

    def closed_since(self, now: float) -> float:
        """When it began, while it is closed."""
        return self.begins


def in_force(freeze: ReleaseFreeze) -> Freeze | None:
    """The freeze; None if it is being deleted."""
    metadata, spec = freeze.metadata, freeze.spec
    if metadata.deletion_timestamp is not None:
        return None
    begins = unix(spec.from_) or unix(metadata.creation_timestamp)
    return Freeze(metadata.namespace, metadata.name, spec, begins, unix(spec.until) or float("inf"))


def closed(freezes: Iterable[Freeze], release: Release, now: float) -> Iterator[Closed]:
    """The freezes of one namespace that are closed for the release."""
    for freeze in freezes:
        if not freeze.is_open(now) and selects_any(freeze, release) and not _is_repaired(freeze, release):
            yield Closed(
                kind=RELEASE_FREEZES.kind,
                namespace=freeze.namespace,
                name=freeze.name,
                rules=freeze.rules,
                reason=freeze.rules.reason,
                what="no release may begin",
                since=rfc3339(freeze.begins),
                opens_at=rfc3339(freeze.opens_at(now)) if freeze.opens_at(now) else "",
            )


def _is_repaired(freeze: Freeze, release: Release) -> bool:
    """Whether the release repairs a workload whose failure is a reason of the freeze."""
    fuse = freeze.rules.fuse
    return fuse is not None and release.repairs and release.workload in fuse.workloads


def _may_be_closed(freezes: Sequence[Freeze], now: float) -> tuple[Sequence[Freeze], float]:
    return [each for each in freezes if not each.is_open(now)], unchanged_until(freezes, now)


FREEZES = Gate(RELEASE_FREEZES, ReleaseFreeze, in_force, closed, _may_be_closed)
