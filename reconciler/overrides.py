"""Controller: reports the uses of each ReleaseOverride by Events. Gatekeepers record them."""

from collections.abc import Callable

import msgspec

from altershield.api.condition_types import ConditionType
from altershield.api.gates.overrides import KIND, ReleaseOverride
from altershield.api.meta import Condition, set_condition
from altershield.api.resources import RELEASE_OVERRIDES
from altershield.api.rights import Right
from kube_base.access.events import EventRecorder, ObjectRef
from kube_base.times import unix
from reconciler.cluster.caches import Caches, Key
from reconciler.cluster.gates import OVERRIDES as WATCH
from reconciler.cluster.writer import Writer
from reconciler.machinery.announcer import Announcer
from reconciler.subject import Controller, Parts, Subject


class OverrideReconciler:
    """Its keys are the namespace and name of a ReleaseOverride. `clock` returns Unix seconds."""

    def __init__(self, caches: Caches, writer: Writer, recorder: EventRecorder, clock: Callable[[], float]) -> None:
        self._caches = caches
        self._writer = writer
        self._announcer = Announcer(recorder, clock)
        self._clock = clock

    async def reconcile(self, key: Key) -> float | None:
        """Write the condition Usable, and the Events that gatekeepers stored with the uses. Returns the seconds until
        the time of the override is over."""
        override = self._caches[WATCH].get(*key)
        if override is None or override.metadata.deletion_timestamp is not None:
            return None
        uid, now = override.metadata.uid, self._clock()
        ends = unix(override.metadata.creation_timestamp) + override.spec.ttl_seconds
        known = override.status.conditions
        conditions = set_condition(known, _usable(override, now < ends), now)
        if conditions != known:
            status = msgspec.structs.replace(
                override.status,
                conditions=conditions,
                announcements=self._announcer.left(uid, override.status.announcements),
                observed_generation=override.metadata.generation,
            )
            changed = msgspec.structs.replace(override, status=status)
            override = await self._writer.replace_status(self._caches[WATCH], changed)
        retry = self._announcer.write(
            ObjectRef.of(RELEASE_OVERRIDES, override.metadata), uid, override.status.announcements
        )
        left = ends - now if now < ends else None
        return min((each for each in (retry, left) if each is not None), default=None)


def _usable(override: ReleaseOverride, in_time: bool) -> Condition:
    """Whether a further version may pass."""
    spec, uses = override.spec, len(override.status.uses)
    if uses >= spec.uses:
        found = "False", "Used", f"{uses} of {spec.uses} versions have passed"
    elif not in_time:
        found = "False", "Expired", f"its {spec.ttl_seconds} s are over; {uses} of {spec.uses} versions have passed"
    else:
        found = "True", "Usable", f"{spec.uses - uses} versions may pass"
    return Condition(ConditionType.USABLE, *found, observed_generation=override.metadata.generation)


def start(parts: Parts[Key]) -> Controller[Key]:
    parts.queue_changes_of(parts.caches[WATCH])
    overrides = OverrideReconciler(parts.caches, parts.writer, parts.recorder, parts.clock)
    return Controller(reconcile=overrides.reconcile)


OVERRIDES = Subject(
    "release-overrides",
    start,
    kinds=(KIND,),
    rights=(
        Right((RELEASE_OVERRIDES,), "get list watch", why="`get` after a conflict of two writers."),
        Right((RELEASE_OVERRIDES,), "update", "status"),
    ),
    watches=(WATCH,),
    writes=((RELEASE_OVERRIDES, ("update status",)),),
    workers=4,
)
