"""Controller: creates settings that are missing, and reports in the status of each OpsConfigInfo whether it is
valid and which values are in effect."""

from collections.abc import Callable

import msgspec

from altershield.api.announcements import announcement
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition, find_condition, set_condition
from altershield.api.ops_config import CREATED, DEFAULTS, Problem, in_effect, problem
from altershield.api.ops_config_info import KIND, OpsConfigInfo, OpsConfigInfoStatus
from altershield.api.resources import OPS_CONFIG_INFOS
from altershield.api.rights import Right
from kube_base.access.events import EventRecorder, ObjectRef
from kube_base.access.objects import key_of
from kube_base.access.queue import WorkQueue
from kube_base.meta import ObjectMeta
from reconciler.cluster.caches import Caches, Key
from reconciler.cluster.writer import Writer
from reconciler.machinery.announcer import Announcer
from reconciler.subject import Controller, Parts, Subject


class SettingsReconciler:
    """Its keys are the namespace and name of an OpsConfigInfo."""

    def __init__(self, caches: Caches, writer: Writer, recorder: EventRecorder, clock: Callable[[], float]) -> None:
        self._caches = caches
        self._writer = writer
        self._announcer = Announcer(recorder, clock)
        self._clock = clock

    @property
    def required(self) -> list[Key]:
        """The settings that are created if they are missing."""
        return [(self._caches.system_namespace, name) for name in CREATED]

    async def reconcile(self, key: Key) -> float | None:
        """Create a missing setting, or update the status of an existing one.

        A setting that is newly rejected, or rejected for another reason, also gets the Event SettingRejected.
        """
        setting = self._caches.settings.get(*key)
        if setting is None:
            if key in self.required:
                namespace, name = key
                default = OpsConfigInfo(metadata=ObjectMeta(name=name, namespace=namespace), spec=DEFAULTS[name])
                await self._writer.create(self._caches.settings, default, namespace)
            return None
        if setting.metadata.deletion_timestamp is not None:
            return None
        wrong = problem(setting, self._caches.system_namespace)
        counts = key[0] == self._caches.system_namespace and key[1] in DEFAULTS
        status = _status(setting, wrong, counts, self._caches.system_namespace, self._clock())
        uid = setting.metadata.uid
        if status != setting.status:
            known = find_condition(setting.status.conditions, ConditionType.ACCEPTED)
            events = []
            if wrong is not None and (known is None or known.message != wrong.message):
                events.append(announcement("SettingRejected", wrong.message, self._clock()))
            announcements = self._announcer.with_new(uid, status.announcements, events)
            status = msgspec.structs.replace(status, announcements=announcements)
            setting = await self._writer.save_status(self._caches.settings, setting, status)
        regarding = ObjectRef.of(OPS_CONFIG_INFOS, setting.metadata)
        return self._announcer.write(regarding, uid, setting.status.announcements)


def _status(
    setting: OpsConfigInfo, wrong: Problem | None, counts: bool, system_namespace: str, now: float
) -> OpsConfigInfoStatus:
    generation = setting.metadata.generation
    if wrong is None:
        condition = Condition(ConditionType.ACCEPTED, "True", "Valid", "the setting is in effect")
    else:
        condition = Condition(ConditionType.ACCEPTED, "False", wrong.reason, wrong.message)
    condition = msgspec.structs.replace(condition, observed_generation=generation)
    value = in_effect(setting, system_namespace) if counts else None
    return OpsConfigInfoStatus(
        enable=value.enable if value is not None else None,
        content=value.content if value is not None else "",
        announcements=setting.status.announcements,
        conditions=set_condition(setting.status.conditions, condition, now),
        observed_generation=generation,
    )


class SettingRoutes:
    """Handlers for the events of the caches. `old` is None for a new object, `new` is None for a deleted one."""

    def __init__(self, caches: Caches, queue: WorkQueue[Key]) -> None:
        self._queue = queue
        caches.settings.add_handler(self._setting)

    def _setting(self, old: OpsConfigInfo | None, new: OpsConfigInfo | None) -> None:
        for setting in (old, new):
            if setting is not None:
                self._queue.add(key_of(setting.metadata))


def start(parts: Parts[Key]) -> Controller[Key]:
    SettingRoutes(parts.caches, parts.queue)
    parts.acceptance.count(OPS_CONFIG_INFOS.kind, parts.caches.settings.all)
    settings = SettingsReconciler(parts.caches, parts.writer, parts.recorder, parts.clock)

    def add_required() -> None:
        for key in settings.required:
            parts.queue.add(key)

    return Controller(reconcile=settings.reconcile, on_lead=add_required)


SETTINGS = Subject(
    "settings",
    start,
    kinds=(KIND,),
    rights=(Right((OPS_CONFIG_INFOS,), "list watch"), Right((OPS_CONFIG_INFOS,), "patch", "status")),
    writes=((OPS_CONFIG_INFOS, ("create", "patch status")),),
)
