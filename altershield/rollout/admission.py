"""What the gatekeeper does with the hold of a release in steps, when a workload is created or changed. Pure functions.

The annotation of the stored workload is the only source. The held fields follow from it, and only the gatekeeper
writes them: what a mutating webhook writes gets no field manager, so that the owner of the workload can go on applying
its manifest. Only AlterShield writes the annotation: what anybody else writes into it is taken back.

The API server may call a webhook a second time for a request, with the object that the first call returned and the
stored object of before. `admit` then returns the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from altershield.api.annotations import ROLLOUT
from altershield.api.rollout import Rollout
from altershield.rollout.steps import next_step, step_pods
from altershield.workloads import hold
from altershield.workloads.adapter import Adapter, Fields
from altershield.workloads.held import Object, in_force, is_reserved, own_values, plain, steps, values, with_values
from altershield.workloads.hold import Cause, Hold


@dataclass(frozen=True, slots=True)
class State:
    """The part of a workload that this module reads. `annotation`: the value of the annotation `rollout`, or None.
    `spec` has at least `replicas` and the fields that the adapter holds."""

    annotation: str | None
    spec: Object


@dataclass(frozen=True, slots=True)
class Wanted:
    """The steps that a policy asks for. `policy`: `NAMESPACE/NAME@GENERATION`."""

    rollout: Rollout
    policy: str


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
    """None: the release is not made in steps."""
    replicas: int
    """The pods that the workload should have."""
    time: str
    """When the request was received, in the format of Kubernetes."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """How the workload is admitted: the annotation and the held fields as they should be."""

    hold: Hold | None
    """None: the annotation is removed."""
    fields: Fields
    edited: tuple[str, ...] = ()
    """The paths of fields of which the user has changed the own value. It is in force when the hold ends."""
    restored: bool = False
    """Whether the annotation of the request is not taken."""

    @property
    def annotation(self) -> str | None:
        return msgspec.json.encode(self.hold).decode() if self.hold is not None else None


def admit(change: Change) -> Admitted | None:
    """How the workload is admitted; None if there is nothing to hold and nothing that has to be restored."""
    new, old = change.new, change.old
    stored = old.annotation if old is not None else None
    if new.annotation == stored:
        return _admit(change)
    sent = steps({ROLLOUT: new.annotation}) if new.annotation is not None else None
    if change.by_reconciler:
        return _by_reconciler(change, sent)
    if sent is not None:
        again = _admit(replace(change, new=_before_hold(change, sent)))
        if again is not None and again.hold is not None and _same(again, sent, values(change.adapter, new.spec)):
            return replace(again, hold=msgspec.structs.replace(sent, version=again.hold.version))
    return _foreign(change, stored, sent)


def _admit(change: Change) -> Admitted | None:
    """The rule for a request whose annotation is the stored one."""
    adapter, old, new = change.adapter, change.old, change.new
    present, known = values(adapter, new.spec), _steps_of(old)
    if known is None or old is None:
        if change.version and change.wanted is not None and not change.by_reconciler:
            return _begin(change, change.wanted, plain(_without_pause(change, present)), None)
        own: Fields = plain(present)
        return Admitted(None, own) if own != present else None
    own = _own_values(change, known, old)
    edited = tuple(path for path, value in own.items() if value != known.fields.get(path))
    if change.version:
        if change.by_reconciler or change.version == known.base or change.wanted is None:
            return Admitted(None, own, edited)
        return replace(_begin(change, change.wanted, own, known), edited=edited)
    kept = msgspec.structs.replace(known, fields=dict(own), write=known.write + 1) if edited else known
    return Admitted(kept, in_force(adapter, kept), edited)


def _own_values(change: Change, known: Hold, old: State) -> Fields:
    """The user's own values after the request: a field that it changes has the user's new value."""
    before = own_values(change.adapter, known, old.spec)
    stored, present = values(change.adapter, old.spec), values(change.adapter, change.new.spec)
    return {
        path: before[path] if value == stored[path] or is_reserved(path, value) else value
        for path, value in present.items()
    }


def _begin(change: Change, wanted: Wanted, own: Fields, known: Hold | None) -> Admitted:
    """The first pods of a release. One that replaces another held release keeps its base. The pods of that release do
    not have the base's version any more: as many are replaced first."""
    rollout, replicas = wanted.rollout, change.replicas
    at_least = min(max(known.pods, known.at_least), replicas) if known is not None else 0
    pods = max(at_least, step_pods(rollout, next_step(rollout, 0, replicas), replicas))
    at_once = change.adapter.at_once(own, replicas, surge=True)
    found = Hold(
        version=change.version,
        causes=(Cause(hold.STEPS, time=change.time, pods=pods if at_once is None else min(pods, at_once)),),
        fields=dict(own),
        base=known.base if known is not None else change.base,
        rollout=rollout,
        policy=wanted.policy,
        at_least=at_least,
        replicas=replicas,
        write=known.write + 1 if known is not None else 1,
    )
    return Admitted(found, in_force(change.adapter, found))


def _by_reconciler(change: Change, sent: Hold | None) -> Admitted | None:
    """The reconciler writes the annotation. A write that removes it carries the user's own values itself."""
    if sent is not None:
        return Admitted(sent, in_force(change.adapter, sent))
    known = _steps_of(change.old)
    if known is None or change.old is None or change.new.annotation is not None:
        return None
    return Admitted(None, _own_values(change, known, change.old))


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
    if change.new.annotation is not None and sent is None and hold.read({ROLLOUT: change.new.annotation}) is None:
        return None
    return Admitted(None, plain(values(change.adapter, spec)), restored=True)


def _before_hold(change: Change, sent: Hold) -> State:
    """The request as it was before `sent`, if that is the hold of an earlier call."""
    known = _steps_of(change.old)
    fields = {}
    for path in change.adapter.held_fields:
        unchanged = known is not None and sent.fields.get(path) == known.fields.get(path)
        fields[path] = (
            values(change.adapter, change.old.spec)[path]
            if unchanged and change.old is not None
            else sent.fields.get(path)
        )
    stored = change.old.annotation if change.old is not None else None
    return State(stored, with_values(change.new.spec, fields))


def _same(again: Admitted, sent: Hold, present: Mapping[str, Any]) -> bool:
    """Whether an earlier call for the same request returned `sent`. It was a little earlier, and another webhook may
    have changed the template since."""
    found = again.hold
    if found is None or not found.causes or not sent.causes:
        return False
    causes = (msgspec.structs.replace(found.causes[0], time=sent.causes[0].time),)
    same = msgspec.structs.replace(found, version=sent.version, causes=causes) == sent
    return same and dict(again.fields) == dict(present)


def _steps_of(state: State | None) -> Hold | None:
    return steps({ROLLOUT: state.annotation}) if state is not None and state.annotation is not None else None


def _without_pause(change: Change, present: Fields) -> Fields:
    """The user's own values of the fields, also if AlterShield pauses the rollout of the version before."""
    if change.old is None or change.old.annotation is None or not change.version:
        return present
    raw = {"metadata": {"annotations": {ROLLOUT: change.old.annotation}}, "spec": change.new.spec}
    return values(change.adapter, hold.with_own_fields(raw, change.adapter.pause())["spec"])
