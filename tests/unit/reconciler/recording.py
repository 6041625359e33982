"""Announcements, for tests in which a world stands for the recorder of Events."""

from kube_base.access.events import ObjectRef


class Announcing:
    """Passes each announcement on to `event` once, as if the Event was written at once."""

    def __init__(self) -> None:
        self.announced: set[str] = set()

    def event(self, regarding: ObjectRef, type_: str, reason: str, message: str) -> None:
        raise NotImplementedError

    def announce(
        self,
        regarding: ObjectRef,
        type_: str,
        reason: str,
        message: str,
        *,
        identity: str,
        at: float | None = None,
    ) -> None:
        if not self.is_announced(identity):
            self.announced.add(identity)
            self.event(regarding, type_, reason, message)

    def is_announced(self, identity: str) -> bool:
        return identity in self.announced
