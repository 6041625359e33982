"""What the gatekeeper does with the hold of a release in steps, when a workload is created or changed. Pure functions.

The annotation of the stored workload is the only source. The held fields follow from it, and only the gatekeeper
writes them: what a mutating webhook writes gets no field manager, so that the owner of the workload can go on applying
its manifest. Only AlterShield writes the annotation: what anybody else writes into it is taken back.

The API server may call a webhook a second time for a request, with the object that the first call returned and the
stored object of before. `admit` then returns the same.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from altershield.api.annotations import ROLLOUT
from altershield.api.rollout import Rollout
from altershield.gates.release import Labels
from altershield.rollout.steps import first_step, next_step, step_pods
from altershield.rollout.waits import NO_WAITS, Waits
from altershield.workloads import hold
from altershield.workloads.adapter import Adapter, Fields
from altershield.workloads.held import (
    Object,
    in_force,
    is_reserved,
    own_values,
    plain,
    steps,
    values,
    with_edits,
    with_values,
)
from altershield.workloads.hold import Cause, Hold


@dataclass(frozen=True, slots=True)
class State:
    """The part of a workload that this module reads. `annotation`: the value of the annotation `rollout`, or None.
    `spec` has at least the fields that the adapter holds."""

    annotation: str | None
    spec: Object


@dataclass(frozen=True, slots=True)
class Wanted:
    """The steps that a policy asks for. `policy`: `NAMESPACE/NAME@GENERATION`. `waits`: what the release waits for
    before its first pod."""

    rollout: Rollout
    policy: str
    waits: Waits = NO_WAITS


@dataclass(frozen=True, slots=True)
class Change:
    """A CREATE (`old` is None) or an UPDATE of a workload."""

    adapter: Adapter
    old: State | None
    new: State
    version: str
    """The version that the change releases; empty if the template does not change."""
    base: str
    """The fingerprint of the old template; empty if the change releases nothing."""
    by_reconciler: bool
    wanted: Wanted | None
    """None: no policy asks for steps."""
    obstacle: str
    """Why the release cannot be made in steps (`obstacles.obstacle`); empty if it can."""
    replicas: int
    """The pods that the workload should have."""
    time: str
    """When the request was received, in the format of Kubernetes."""
    labels: Labels
    """The labels of the workload after the change, without those of AlterShield."""
    since: str
    """The earliest time at which an earlier call for the same request was received."""
    applied: Fields = field(default_factory=dict)
    """The held fields to which the request gives a new value by client-side apply (`edits.newly_applied`)."""
    failed: int = 0
    """How many pods have a version that failed and is not held any more."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """How the workload is admitted: the annotation and the spec as they should be."""

    annotation: str | None
    """None: there is none."""
    spec: Object
    """As that of the request, with other values of the held fields."""
    hold: Hold | None = None
    """The hold of the annotation; None: no release in steps is held."""
    edited: tuple[str, ...] = ()
    """The paths of fields of which the user has changed the own value, if it is in force only when the hold ends."""
    restored: bool = False
    """Whether the annotation of the request is not taken."""
    obstacle: str = ""
    """Why the release cannot be made in steps; empty if it is, or no policy asks for it."""


def admit(change: Change) -> Admitted | None:
    """How the workload is admitted; None if there is nothing to hold and nothing that has to be restored."""
    new, old = change.new, change.old
    stored = old.annotation if old is not None else None
    if new.annotation == stored:
        return _admit(change)
    sent = steps({ROLLOUT: new.annotation}) if new.annotation is not None else None
    if change.by_reconciler:
        return _by_reconciler(change, sent)
    again = _again(change, sent) if sent is not None else None
    return again if again is not None else _foreign(change, stored, sent)


def follows(state: State, admitted: Admitted) -> bool:
    """Whether a workload is as it was admitted. A webhook that is called later may have changed the template, and with
    it the version."""
    if state.spec != admitted.spec:
        return False
    if state.annotation == admitted.annotation:
        return True
    found = _steps_of(state)
    return (
        found is not None
        and admitted.hold is not None
        and msgspec.structs.replace(found, version=admitted.hold.version) == admitted.hold
    )


def _admit(change: Change) -> Admitted | None:
    """The rule for a request whose annotation is the stored one."""
    adapter, old, new = change.adapter, change.old, change.new
    known = _steps_of(old)
    if known is None or old is None:
        if change.version and change.wanted is not None and not change.by_reconciler:
            spec = _without_pause(change)
            return _begin(change, change.wanted, spec, plain(values(adapter, spec)))
        return _plain(new.annotation, adapter, new.spec)
    own = _own_values(change, known, old)
    edited = tuple(path for path, value in own.items() if value != known.fields.get(path))
    if change.version:
        if change.by_reconciler or change.version == known.base or change.wanted is None:
            return Admitted(None, with_values(new.spec, own), edited=edited)
        return _begin(change, change.wanted, new.spec, own, known, edited)
    if not edited:
        return Admitted(old.annotation, with_values(new.spec, in_force(adapter, known)), known)
    kept = msgspec.structs.replace(with_edits(known, own), write=known.write + 1)
    return Admitted(
        hold.encoded(kept, old.annotation),
        with_values(new.spec, in_force(adapter, kept)),
        kept,
        _delayed(adapter, kept, edited),
    )


def _plain(annotation: str | None, adapter: Adapter, spec: Object) -> Admitted | None:
    """A workload that is not held. None: it has no value that only AlterShield writes."""
    present = values(adapter, spec)
    own = plain(present)
    return Admitted(annotation, with_values(spec, own)) if own != present else None


def _own_values(change: Change, known: Hold, old: State) -> dict[str, Any]:
    """The user's own values after the request: a field that it changes has the user's new value. So has one to which it
    applies the value that the field has already. A held value is what an earlier call wrote, if the stored field has
    another one."""
    before, held = own_values(change.adapter, known, old.spec), in_force(change.adapter, known)
    stored, present = values(change.adapter, old.spec), values(change.adapter, change.new.spec)
    same = {
        path
        for path, value in present.items()
        if value in (stored[path], held.get(path)) and change.applied.get(path) != value
    }
    return {
        path: before[path] if path in same or is_reserved(path, value) else value for path, value in present.items()
    }


def _begin(
    change: Change, wanted: Wanted, spec: Object, own: Fields, known: Hold | None = None, edited: tuple[str, ...] = ()
) -> Admitted:
    """The first pods of a release. One that replaces another held release keeps its base. The pods of that release do
    not have the base's version any more: as many are replaced first. So are those of a version that failed later."""
    adapter, rollout, replicas = change.adapter, wanted.rollout, change.replicas
    obstacle = change.obstacle or adapter.obstacle(with_values(spec, own))
    if obstacle and known is not None:
        return Admitted(None, with_values(spec, own), edited=edited, obstacle=obstacle)
    if obstacle:
        new = change.new
        found = _plain(new.annotation, adapter, new.spec) or Admitted(new.annotation, new.spec)
        return replace(found, obstacle=obstacle)
    at_least = min(max(known.pods, known.at_least) if known is not None else change.failed, replicas)
    first = first_step(rollout, at_least, replicas)
    pods = max(at_least, step_pods(rollout, next_step(rollout, 0, replicas), replicas))
    at_once = adapter.at_once(own, replicas, surge=True)
    if wanted.waits.before(first, first=True):
        pods = 0
    begun = Hold(
        version=change.version,
        causes=(Cause(hold.STEPS, time=change.time, pods=pods if at_once is None else min(pods, at_once)),),
        fields=dict(own),
        base=known.base if known is not None else change.base,
        rollout=rollout,
        policy=wanted.policy,
        labels=dict(change.labels),
        at_least=at_least,
        replicas=replicas,
        write=known.write + 1 if known is not None else 1,
    )
    return Admitted(
        hold.encoded(begun), with_values(spec, in_force(adapter, begun)), begun, _delayed(adapter, begun, edited)
    )


def _delayed(adapter: Adapter, known: Hold, edited: tuple[str, ...]) -> tuple[str, ...]:
    """The edited fields that have another value while the release is held: the user's own pause is in force at once."""
    held = in_force(adapter, known)
    return tuple(path for path in edited if held.get(path) != known.fields.get(path))


def _by_reconciler(change: Change, sent: Hold | None) -> Admitted | None:
    """The reconciler writes the annotation. A write that removes it carries the user's own values itself."""
    if sent is None:
        return None
    spec = with_values(change.new.spec, in_force(change.adapter, sent))
    return Admitted(change.new.annotation, spec, sent)


def _foreign(change: Change, stored: str | None, sent: Hold | None) -> Admitted | None:
    """The rule for a request with an annotation that is not AlterShield's for it: the stored one stays. If the request
    is a copy of a held workload, its fields become those of the user who wrote the original."""
    spec = change.new.spec
    if sent is not None and _steps_of(change.old) is None:
        present = values(change.adapter, spec)
        if present == dict(in_force(change.adapter, sent)):
            spec = with_values(spec, {path: sent.fields.get(path) for path in present})
    found = _admit(replace(change, new=State(stored, spec)))
    if found is not None:
        return replace(found, restored=True)
    if stored is not None and steps({ROLLOUT: stored}) is None:
        return None  # a pause, which the reconciler writes and removes
    return Admitted(stored, spec, restored=True)


def _again(change: Change, sent: Hold) -> Admitted | None:
    """The answer if an earlier call for the same request returned `sent`; else None. Another webhook may have changed
    the template or a field since."""
    found = _admit(replace(change, new=_before_hold(change, sent)))
    if found is None or found.hold is None:
        return None
    expected = found.hold
    if change.version:
        time = sent.causes[0].time
        if not change.since <= time <= change.time:
            return None
        causes = tuple(msgspec.structs.replace(each, time=time) for each in expected.causes)
        expected = msgspec.structs.replace(expected, causes=causes)
        # the first pods may be others: their number depends on the fields that another webhook changed
        if {each.by for each in sent.causes} == {each.by for each in causes}:
            sent = msgspec.structs.replace(sent, causes=causes)
    if msgspec.structs.replace(sent, version=expected.version, fields=expected.fields) != expected:
        return None
    return replace(found, annotation=hold.encoded(expected, change.new.annotation), hold=expected)


def _before_hold(change: Change, sent: Hold) -> State:
    """The request as it was before `sent`, if that is the hold of an earlier call. A field without its held value was
    changed after that call."""
    adapter, known = change.adapter, _steps_of(change.old)
    own = own_values(adapter, sent, change.new.spec)
    if known is not None and change.old is not None:
        stored = values(adapter, change.old.spec)
        own = {path: stored[path] if value == known.fields.get(path) else value for path, value in own.items()}
    annotation = change.old.annotation if change.old is not None else None
    return State(annotation, with_values(change.new.spec, own))


def _steps_of(state: State | None) -> Hold | None:
    return steps({ROLLOUT: state.annotation}) if state is not None and state.annotation is not None else None


def _without_pause(change: Change) -> Object:
    """The spec without the pause by which AlterShield holds the version before: it ends with this release."""
    if change.old is None or change.old.annotation is None:
        return change.new.spec
    raw = {"metadata": {"annotations": {ROLLOUT: change.old.annotation}}, "spec": change.new.spec}
    found: Object = hold.with_own_fields(raw, change.adapter.pause())["spec"]
    return found
