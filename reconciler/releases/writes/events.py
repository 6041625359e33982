"""Writes the Events of a release that are missing. They follow from its ChangeWorkload and from its workload."""

from collections.abc import Callable, Sequence

from altershield.api.announcements import Announcement, announcement
from altershield.releases.release import version_of
from altershield.workloads import BY_KIND
from altershield.workloads.workload import Workload
from kube_base.access.events import NORMAL, WARNING, EventRecorder, ObjectRef
from reconciler.cluster.release import Release
from reconciler.machinery.announcer import Announcer
from reconciler.policies.applied import ignored
from reconciler.releases.terms.announcements import true_now


class ReleaseEvents:
    """`clock` returns Unix seconds."""

    def __init__(self, recorder: EventRecorder, clock: Callable[[], float]) -> None:
        self._recorder = recorder
        self._announcer = Announcer(recorder, clock)

    def left(self, release: Release) -> Sequence[Announcement]:
        """The announcements in the status whose Events may be missing."""
        return self._announcer.left(release.metadata.uid, release.status.announcements)

    def write(self, release: Release, workload: Workload) -> float | None:
        """Write the Events that are missing, and that are true now. Returns the seconds after which this is to be
        called again, or None."""
        found = true_now(release, workload, release.status.announcements)
        if version_of(release) == workload.version and (why := ignored(workload)):
            found.append(announcement("AnnotationIgnored", why, release.spec.create_time_unix))
        if not found:
            return None
        return self._announcer.write(_regarding(workload), release.metadata.uid, found)

    def announce(self, workload: Workload, reason: str, message: str, *, warning: bool = True) -> None:
        """Record an Event about the workload that no status has. A crash can lose it."""
        self._recorder.event(_regarding(workload), WARNING if warning else NORMAL, reason, message)


def _regarding(workload: Workload) -> ObjectRef:
    resource, metadata = BY_KIND[workload.group_kind].resource, workload.metadata
    return ObjectRef(resource.api_version, resource.kind, metadata.name, metadata.namespace, metadata.uid)
