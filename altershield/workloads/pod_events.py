"""The Events of a pod: why it is not up, if its status does not say why. Pure functions.

The reasons are those of the kubelet (pkg/kubelet/events, volumemanager, kuberuntime, prober).
"""

import re
from collections.abc import Iterable

import msgspec

from altershield.workloads.pods import Trouble, clip
from kube_base.times import unix

BEFORE_CONTAINERS = (
    "FailedAttachVolume",
    "FailedCreatePodSandBox",
    "FailedMapVolume",
    "FailedMount",
    "FailedPrepareDynamicResources",
    "NetworkNotReady",
)
"""Reasons of Events about volumes, devices or the network."""

AFTER_VOLUMES_AND_NETWORK = ("Pulling", "Pulled", "Created", "Started")
"""Reasons of Events about an image or a container. Volumes and the network were available then."""

_BEFORE_START = ("BackOff", "ErrImageNeverPull", "Failed", "FailedCreatePodContainer", "InspectFailed")
"""Reasons of Events about a container that does not start."""

_TELLING = (*BEFORE_CONTAINERS, *_BEFORE_START, "FailedPostStartHook", "Unhealthy")
"""Other warnings do not say why a pod is not up: it may start without an image pull secret or a DNS server."""

_FIELD = re.compile(r"spec\.(containers|initContainers)\{(.+)\}")


class _Regarding(msgspec.Struct, frozen=True, rename="camel"):
    field_path: str = ""


class _Series(msgspec.Struct, frozen=True, rename="camel"):
    last_observed_time: str | None = None


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    creation_timestamp: str | None = None


class PodEvent(msgspec.Struct, frozen=True, rename="camel"):
    """An Event about a pod."""

    reason: str = ""
    message: str = ""
    involved_object: _Regarding = _Regarding()
    last_timestamp: str | None = None
    event_time: str | None = None
    series: _Series | None = None
    metadata: _Metadata = _Metadata()

    @property
    def at(self) -> float:
        """When it last happened, Unix seconds; 0 if it is not known."""
        again = self.series.last_observed_time if self.series is not None else None
        return unix(again or self.last_timestamp or self.event_time or self.metadata.creation_timestamp)

    @property
    def _where(self) -> str:
        found = _FIELD.fullmatch(self.involved_object.field_path)
        if found is None:
            return ""
        return f"{'init container' if found[1] == 'initContainers' else 'container'} {found[2]}"

    @property
    def trouble(self) -> Trouble:
        """The Event as the reason why the pod is not up."""
        return Trouble(self.reason, clip(self.message), where=self._where)


def telling(events: Iterable[PodEvent]) -> Trouble | None:
    """The newest Event that says why the pod is not up, or None. Problems that were over when a container was started
    do not count; neither do those of volumes and the network that were over when an image was pulled."""
    events = list(events)
    available_at = max((event.at for event in events if event.reason in AFTER_VOLUMES_AND_NETWORK), default=-1.0)
    started_at = max((event.at for event in events if event.reason == "Started"), default=-1.0)

    def over(event: PodEvent) -> bool:
        if event.reason in BEFORE_CONTAINERS:
            return event.at <= available_at
        return event.reason in _BEFORE_START and event.at <= started_at

    found = [event for event in events if event.reason in _TELLING and not over(event)]
    return max(found, key=lambda event: event.at).trouble if found else None
