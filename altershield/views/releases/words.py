"""Why pods of a release are not up yet, read from the pods and their Events with the rights of the user.

The ChangeWorkload has these words, too, but those of Events only after half a minute.
"""

from collections.abc import Sequence

import msgspec

from altershield import releases
from altershield.api import labels
from altershield.api.change_workload import ChangeWorkload, WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import find_condition
from altershield.releases.texts import not_up
from altershield.views.releases.model import Release
from altershield.workloads import BY_KIND, is_pod_of_revision
from altershield.workloads import pods as pod_projections
from altershield.workloads.pod_events import PodEvent, telling
from altershield.workloads.pods import Pod, Trouble
from kube_base.access.client import Client
from kube_base.access.errors import KubernetesError
from kube_base.resources import EVENTS, PODS

QUIET = 10
"""Seconds after its creation for which the Events of a pod are not read."""

_MAX_RELEASES = 10  # whose pods are read by one command
_MAX_PODS = 50  # of one release
_MAX_EVENTS = 50  # of one pod
_ASKED = 2  # pods of a release whose Events are read
_SAYS_WHY = (ConditionType.PODS_NOT_UP, ConditionType.STALLED)


async def with_words(client: Client, found: Sequence[Release], now: float) -> list[Release]:
    """The releases; those under way that do not say why their pods are not up, with the words of their pods. `now`:
    Unix seconds. Without the permission to list pods or Events, there are no such words."""
    left, made = _MAX_RELEASES, []
    for each in found:
        if left and each.stored is not None and each.present and not each.pending and _silent(each.stored.release):
            left -= 1
            each = each._replace(words=await _words(client, each, each.stored.release, now))
        made.append(each)
    return made


def _silent(change: ChangeWorkload) -> bool:
    """Whether the release is under way, and no condition says why its pods are not up."""
    if releases.state(change) not in (WorkloadState.RUNNING, WorkloadState.TIME_OUT_PRE_THRESHOLD):
        return False
    conditions = (find_condition(change.status.conditions, type_) for type_ in _SAYS_WHY)
    return not any(each is not None and each.is_true for each in conditions)


async def _words(client: Client, shown: Release, change: ChangeWorkload, now: float) -> str:
    metadata, source = shown.workload.metadata, change.status.source
    selector = f"{labels.VERSION}={releases.version_of(change)}"
    try:
        listed = await client.list(PODS, metadata.namespace, as_=msgspec.Raw, label_selector=selector, limit=_MAX_PODS)
        adapter = BY_KIND[shown.workload.group_kind]
        pods = [pod_projections.read(raw) for raw in listed.items]
        pods = [pod for pod in pods if pod.exists and is_pod_of_revision(adapter, pod, source.name, source.uid)]
        found = [(pod, pod.trouble) for pod in pods if pod.trouble is not None and pod.trouble.tells]
        for pod in silent(pods, now)[:_ASKED]:
            trouble = await _events(client, pod)
            found += [(pod, trouble)] if trouble is not None else []
    except KubernetesError:
        return ""
    if not found:
        return ""
    first, trouble = min(found, key=lambda each: (each[0].metadata.created, each[0].metadata.name))
    return not_up(len(found), max(shown.workload.replicas, len(pods)), first.metadata.name, str(trouble))


def silent(pods: Sequence[Pod], now: float) -> list[Pod]:
    """The pods whose status does not say why they are not up, the oldest first; without new ones."""
    found = [
        pod
        for pod in pods
        if not pod.ready
        and not pod.unscheduled
        and (pod.trouble is None or not pod.trouble.tells)
        and now - pod.metadata.created >= QUIET
    ]
    return sorted(found, key=lambda pod: (pod.metadata.created, pod.metadata.name))


async def _events(client: Client, pod: Pod) -> Trouble | None:
    selector = f"involvedObject.uid={pod.metadata.uid}"
    listed = await client.list(EVENTS, pod.metadata.namespace, as_=PodEvent, field_selector=selector, limit=_MAX_EVENTS)
    return telling(listed.items)
