"""A workload in a model of an API server that calls the mutating webhook, other webhooks, and the validating one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jsonpatch
import msgspec

from altershield.api.rollout import Rollout
from altershield.rollout.admission import Admitted, Change, State, Wanted, admit, follows
from altershield.workloads import hold
from altershield.workloads.held import Object, difference, steps, values, with_values
from altershield.workloads.hold import Hold
from tests.support.workloads import BY_NAME

STEPS = Rollout(pods=(1, "30%"))
WANTED = Wanted(STEPS, "shop/web@1")
TIME, SINCE, LATER = "2026-08-21T07:29:49Z", "2026-08-21T07:28:49Z", "2026-08-21T07:29:51Z"

SPECS: dict[str, Object] = {
    "Deployment": {
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        "progressDeadlineSeconds": 600,
        "minReadySeconds": 10,
    },
    "StatefulSet": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}},
    "DaemonSet": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}},
    "CloneSet": {"updateStrategy": {"type": "ReCreate", "partition": 0, "maxUnavailable": "20%"}},
}
"""The specs of users, without the template and the replicas."""


@dataclass
class World:
    """`version`: of the template. `spec`: without it and the replicas."""

    kind: str
    spec: Object
    version: str = "1"
    annotation: str | None = None
    replicas: int = 10
    wanted: Wanted | None = WANTED
    answers: list[Admitted | None] = field(default_factory=list)
    """The first answer to each request."""
    applied: dict[str, Any] = field(default_factory=dict)
    """The values that the next request applies newly (`Change.applied`)."""

    @property
    def hold(self) -> Hold | None:
        return steps({hold.ROLLOUT: self.annotation}) if self.annotation is not None else None

    @property
    def state(self) -> State:
        return State(self.annotation, self.spec)

    def change(self, old: State | None, new: State, version: str, *, by_reconciler: bool, time: str = TIME) -> Change:
        released = version if version != self.version or old is None else ""
        return Change(
            adapter=BY_NAME[self.kind],
            old=old,
            new=new,
            version=released,
            base=self.version if released else "",
            by_reconciler=by_reconciler,
            wanted=self.wanted if not by_reconciler else None,
            obstacle="it is created" if old is None else "",
            replicas=self.replicas,
            labels={},
            time=time,
            since=SINCE,
            applied=self.applied,
        )

    def request(
        self,
        *,
        spec: Object | None = None,
        version: str = "",
        annotation: str | None = "kept",
        by_reconciler: bool = False,
        other: Callable[[State], State] | None = None,
        injected: str = "",
    ) -> Admitted | None:
        """An UPDATE. `other` is a webhook that changes the object after AlterShield's, and `injected` is the version
        after a webhook has changed the template. AlterShield's webhook is then called again."""
        old, version = self.state, version or self.version
        new = State(self.annotation if annotation == "kept" else annotation, spec if spec is not None else self.spec)
        first = admit(self.change(old, new, version, by_reconciler=by_reconciler))
        admitted = applied(new, first)
        version = injected or version
        if other is not None:
            admitted = other(admitted)
        again = admit(self.change(old, admitted, version, by_reconciler=by_reconciler, time=LATER))
        if again is not None and again.restored:
            assert again.annotation == admitted.annotation, "the own annotation is taken for that of somebody else"
        final = applied(admitted, again)
        if not injected and other is None:
            assert final == admitted, "a second call changes nothing"
        checked = admit(self.change(old, final, version, by_reconciler=by_reconciler, time=LATER))
        assert checked is None or follows(final, checked)
        self.annotation, self.spec, self.version = final.annotation, final.spec, version
        self.answers.append(first)
        return first

    # what AlterShield does

    def step(self, pods: int) -> None:
        """More pods may have the version."""
        known = self.hold
        assert known is not None
        (cause,) = known.causes
        changed = msgspec.structs.replace(
            known, causes=(msgspec.structs.replace(cause, pods=pods),), replicas=self.replicas, write=known.write + 1
        )
        answer = self.request(annotation=msgspec.json.encode(changed).decode(), by_reconciler=True)
        assert answer is not None
        assert answer.hold == changed

    def finish(self, version: str = "") -> None:
        """The last step; with a version, going back to it."""
        known = self.hold
        assert known is not None
        spec = with_values(self.spec, {path: known.fields.get(path) for path in BY_NAME[self.kind].held_fields})
        self.request(spec=spec, version=version, annotation=None, by_reconciler=True)

    def pause(self) -> None:
        """The pause after a failure."""
        raw = {"metadata": {"annotations": self._annotations}, "spec": self.spec}
        cause = hold.Cause(hold.PAUSE, "a pod failed", TIME)
        done = jsonpatch.apply_patch(raw, hold.begin(raw, BY_NAME[self.kind].pause(), self.version, cause))
        annotation = done["metadata"].get("annotations", {}).get(hold.ROLLOUT)
        self.request(spec=done["spec"], annotation=annotation, by_reconciler=True)

    @property
    def _annotations(self) -> dict[str, str]:
        return {hold.ROLLOUT: self.annotation} if self.annotation is not None else {}


def applied(state: State, admitted: Admitted | None) -> State:
    """The object after the patch of the mutating webhook."""
    if admitted is None:
        return state
    spec = jsonpatch.apply_patch({"spec": state.spec}, difference(state.spec, admitted.spec))["spec"]
    return State(admitted.annotation, spec)


def fields_of(kind: str, spec: Object) -> dict[str, Any]:
    return values(BY_NAME[kind], spec)
