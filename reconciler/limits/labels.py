"""The labels of workloads, for the selectors of limits. Caches do not keep them."""

from collections.abc import Mapping

import msgspec

from altershield.workloads import BY_KIND
from altershield.workloads.workload import Workload
from kube_base.access.client import Client
from kube_base.access.errors import NotFoundError
from kube_base.meta import ObjectMeta
from reconciler.cluster.release import Release


class _Labelled(msgspec.Struct):
    metadata: ObjectMeta


class Labels:
    """The labels that workloads had when one of their releases was first counted. So a label that somebody changes
    later changes no count."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, tuple[int, Mapping[str, str]]] = {}
        """By uid of the ChangeWorkload: when the release was created, and the labels."""

    async def of(self, release: Release, workload: Workload) -> Mapping[str, str] | None:
        """The labels of the workload at its release; None: it does not exist any more."""
        uid, created = release.metadata.uid, release.spec.create_time_unix
        known = self._known.get(uid)
        if known is not None and known[0] == created:
            return known[1]
        resource, metadata = BY_KIND[workload.group_kind].resource, workload.metadata
        try:
            found = await self._client.get(resource, metadata.name, metadata.namespace, as_=_Labelled)
        except NotFoundError:
            return None
        if found.metadata.uid != metadata.uid:
            return None
        self._known[uid] = created, found.metadata.labels
        return found.metadata.labels

    def forget(self, release: Release) -> None:
        """The ChangeWorkload does not exist any more."""
        self._known.pop(release.metadata.uid, None)
