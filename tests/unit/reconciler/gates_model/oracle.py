"""What the rules of release gates say about a release: slow, and read off docs/release-gates.md sentence by sentence.

Nothing here calls the code that decides.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from altershield.api.gates.freezes import ReleaseFreeze
from altershield.api.gates.limits import ReleaseLimit
from altershield.api.gates.named_workload import NamedWorkload
from altershield.api.gates.overrides import ReleaseOverride
from altershield.api.gates.rules import GateScope
from altershield.api.gates.windows import ReleaseWindow
from altershield.api.names import SYSTEM_NAMESPACE as SYSTEM
from altershield.api.selectors import Selector
from kube_base.times import unix

from . import walk

Labels = Mapping[str, str]
Name = tuple[str, str, str]
"""Kind, namespace and name."""

CLOCKS = 31.0
"""By how many seconds clocks may differ, and one that is lost by rounding."""


@dataclass(frozen=True)
class Asked:
    """A release that is asked for. `labels`: of the workload before, after, and at the release before."""

    workload: NamedWorkload
    namespace_labels: Labels
    labels: tuple[Labels, ...]
    kind: str
    version: str
    uid: str
    repairs: bool
    succeeded: float
    """When the present release succeeded; 0: it did not."""


@dataclass
class View:
    """What a gatekeeper knows of the gates, and what there is to count."""

    start: int
    windows: list[ReleaseWindow]
    freezes: list[ReleaseFreeze]
    limits: list[ReleaseLimit]
    overrides: list[ReleaseOverride]
    begun: dict[Name, list[tuple[float, bool]]] = field(default_factory=dict)
    """For each limit: the times of the releases that count, and whether they surely do."""
    under_way: dict[Name, set[NamedWorkload]] = field(default_factory=dict)
    recent: dict[Name, set[tuple[NamedWorkload, str]]] = field(default_factory=dict)
    """The releases that the gatekeeper admitted in the last two minutes."""
    admitted: dict[Name, set[tuple[NamedWorkload, str]]] = field(default_factory=dict)
    """The releases that the gatekeeper surely has to count itself: those that it admitted a short time ago."""
    unsure: set[Name] = field(default_factory=set)
    """The limits whose counts are not known: something is on its way."""


@dataclass
class Verdict:
    """The gates that are closed and enforced. Of the windows of the type Allow of a namespace, one may be named for all
    of them. `perhaps`: gates of which the oracle does not know whether they are closed."""

    closed: set[Name]
    allows: dict[str, set[Name]]
    perhaps: set[Name]


def meets(selector: Selector | None, labels: Labels) -> bool:
    if selector is None:
        return True
    for key, value in selector.match_labels.items():
        if labels.get(key) != value:
            return False
    for each in selector.match_expressions:
        has = labels.get(each.key)
        wanted = {
            "In": has in each.values,
            "NotIn": has not in each.values,
            "Exists": has is not None,
            "DoesNotExist": has is None,
        }
        if not wanted[each.operator]:
            return False
    return True


def is_for(namespace: str, rules: GateScope, asked: Asked) -> bool:
    """Whether an object of this namespace judges this kind of change in the namespace of the workload."""
    if asked.kind not in rules.judges:
        return False
    if namespace == SYSTEM:
        return meets(rules.namespace_selector, asked.namespace_labels)
    return namespace == asked.workload.namespace


def verdict(asked: Asked, view: View, now: float) -> Verdict:
    """What is closed for a release at a time."""
    found = Verdict(set(), {}, set())
    for window in view.windows:
        if window.spec.type == "Deny" or (window.status.accepted and window.status.accepted.type == "Deny"):
            _deny(window, asked, view.start, now, found)
    for namespace in (SYSTEM, asked.workload.namespace):
        _allow([each for each in view.windows if each.metadata.namespace == namespace], asked, view, now, found)
    for freeze in view.freezes:
        spec, own = freeze.spec, freeze.metadata
        begin = unix(spec.from_) if spec.from_ else unix(own.creation_timestamp)
        in_force = begin <= now and (spec.until is None or now < unix(spec.until))
        is_repair = spec.fuse is not None and asked.repairs and asked.workload in spec.fuse.workloads
        selected = is_for(own.namespace, spec, asked) and any(meets(spec.selector, each) for each in asked.labels)
        if in_force and selected and not is_repair and spec.mode == "enforce":
            found.closed.add(("ReleaseFreeze", own.namespace, own.name))
    for limit in view.limits:
        _limit(limit, asked, view, now, found)
    return found


def is_open(window: ReleaseWindow, start: int, now: float) -> bool:
    """Whether an accepted window is open. Past the times that the reconciler has worked out, an Allow is closed, and a
    Deny is as its last time says."""
    spec, until = window.status.accepted, unix(window.status.computed_until)
    assert spec is not None
    if spec.type == "Allow":
        least = spec.min_remaining_seconds
        return now < until and walk.is_inside(spec, start, now) and walk.ends(spec, start, now, least) - now > least
    if now < until:
        return not walk.is_inside(spec, start, now)
    return not any(unix(each.from_) <= now < unix(each.to) for each in window.status.intervals)


def _deny(window: ReleaseWindow, asked: Asked, start: int, now: float, found: Verdict) -> None:
    spec, own = window.status.accepted, window.metadata
    if spec is None or spec.type != "Deny" or spec.mode != "enforce":
        return  # one that never was accepted is not in force
    selected = is_for(own.namespace, spec, asked) and any(meets(spec.selector, each) for each in asked.labels)
    if selected and not is_open(window, start, now):
        found.closed.add(("ReleaseWindow", own.namespace, own.name))


def _allow(windows: Iterable[ReleaseWindow], asked: Asked, view: View, now: float, found: Verdict) -> None:
    """One of those that select the workload by all of its labels has to be open. One that never was accepted is
    closed."""
    names, one_open = set(), False
    for window in windows:
        spec, own = window.status.accepted or window.spec, window.metadata
        if spec.type != "Allow" or spec.mode != "enforce" or not is_for(own.namespace, spec, asked):
            continue
        if all(meets(spec.selector, each) for each in asked.labels):
            names.add(("ReleaseWindow", own.namespace, own.name))
            one_open = one_open or (window.status.accepted is not None and is_open(window, view.start, now))
    if names and not one_open:
        found.allows[next(iter(names))[1]] = names


def selects(limit: ReleaseLimit, asked: Asked) -> bool:
    own, spec = limit.metadata, limit.spec
    return is_for(own.namespace, spec, asked) and any(meets(spec.selector, each) for each in asked.labels)


def _limit(limit: ReleaseLimit, asked: Asked, view: View, now: float, found: Verdict) -> None:
    spec, name = limit.spec, ("ReleaseLimit", limit.metadata.namespace, limit.metadata.name)
    if not selects(limit, asked) or spec.mode != "enforce":
        return
    if spec.rate is not None:
        own_ones = view.admitted.get(name, set()) - {(asked.workload, asked.version)}
        if len(own_ones) >= spec.rate.releases:  # whatever others know
            found.closed.add(name)
            return
    if name in view.unsure:
        found.perhaps.add(name)
        return
    if spec.quiet_seconds is not None and asked.succeeded and now < asked.succeeded + spec.quiet_seconds:
        found.closed.add(name)
        return
    # a gatekeeper adds its own releases for two minutes if no count has shown them
    own = {each for each, version in view.recent.get(name, ()) if (each, version) != (asked.workload, asked.version)}
    if spec.concurrent is not None:
        others = view.under_way[name] - {asked.workload}
        if len(others) >= spec.concurrent:
            found.closed.add(name)
            return
        if len((others | own) - {asked.workload}) >= spec.concurrent:
            found.perhaps.add(name)
    if spec.rate is not None:
        begin = now - spec.rate.period_seconds
        times = view.begun[name]
        if sum(at > begin + CLOCKS for at, sure in times if sure) >= spec.rate.releases:
            found.closed.add(name)
        elif sum(at > begin - CLOCKS for at, _ in times) + len(view.recent.get(name, ())) >= spec.rate.releases:
            found.perhaps.add(name)


GATES = {"ReleaseWindow": "Window", "ReleaseFreeze": "Freeze", "ReleaseLimit": "Limit"}


def passes(override: ReleaseOverride, asked: Asked, gate: Name, now: float) -> bool:
    """Whether an override passes this gate for this version now, once more or for the first time."""
    own, spec = override.metadata, override.spec
    target = spec.target
    namespace = (target.namespace or own.namespace) if own.namespace == SYSTEM else own.namespace
    wanted = (namespace, target.kind, target.name)
    if wanted != (asked.workload.namespace, asked.workload.kind, asked.workload.name):
        return False
    if GATES[gate[0]] not in spec.gates or (own.namespace != SYSTEM and gate[1] != own.namespace):
        return False
    if any((each.uid, each.version) == (asked.uid, asked.version) for each in override.status.uses):
        return True
    return len(override.status.uses) < spec.uses and now < unix(own.creation_timestamp) + spec.ttl_seconds


def all_passed(found: Verdict, overrides: list[ReleaseOverride], asked: Asked, now: float) -> bool:
    """Whether overrides pass all gates that are closed."""
    gates = [*found.closed, *(next(iter(each)) for each in found.allows.values())]
    return all(any(passes(each, asked, gate, now) for each in overrides) for gate in gates)
