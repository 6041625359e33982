"""ControllerRevisions: the former templates of a StatefulSet, DaemonSet or CloneSet, which `kubectl rollout history`
and `kubectl rollout undo` read. The functions are pure; the class `History` reads and writes the API.

The rules are those of pkg/controller/history.
"""

import contextlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import orjson

from kube_base.access.errors import AlreadyExistsError, NotFoundError
from kube_base.resources import CONTROLLER_REVISIONS, Resource
from kube_sandbox.cluster import ownership, templates
from kube_sandbox.cluster.caches import Caches
from kube_sandbox.cluster.kinds import LabelSelector, Meta, Object
from kube_sandbox.cluster.workload_kinds import ControllerRevision

HASH_LABEL = "controller.kubernetes.io/hash"
REVISION_LABEL = "controller-revision-hash"
"""Label of a pod: its revision. The value is the name of the revision for StatefulSets and CloneSets, the hash for
DaemonSets."""

_MAX_PREFIX = 223


class Revisions(NamedTuple):
    """Names of two revisions. `current` is that of the last complete update, `update` that of the current template."""

    current: str
    update: str


class _Spec(Protocol):
    @property
    def selector(self) -> LabelSelector: ...
    @property
    def template(self) -> Object: ...


class Owner(Protocol):
    """A workload with ControllerRevisions."""

    @property
    def metadata(self) -> Meta: ...
    @property
    def spec(self) -> _Spec: ...


def snapshot(template: Object) -> Object:
    """The `data` of a revision: the patch that restores the template."""
    return {"spec": {"template": {"$patch": "replace", **template}}}


def template_of(revision: ControllerRevision) -> Object:
    template: Object = revision.data["spec"]["template"]
    return {key: value for key, value in template.items() if key != "$patch"}


def data_hash(data: Any, collisions: int | None) -> str:
    """A hash of up to ten letters and digits. Another `collisions` (status.collisionCount) gives another hash."""
    text = orjson.dumps(data, option=orjson.OPT_SORT_KEYS) + str(collisions if collisions is not None else "").encode()
    return templates.safe_hash(text)


def name_of(owner: str, hash_: str) -> str:
    return f"{owner[:_MAX_PREFIX]}-{hash_}"


def in_order(revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    return sorted(revisions, key=lambda one: (one.revision, one.metadata.creation_timestamp or "", one.metadata.name))


def named(revisions: Iterable[ControllerRevision], name: str) -> ControllerRevision | None:
    return next((one for one in revisions if one.metadata.name == name), None)


def next_number(ordered: Sequence[ControllerRevision]) -> int:
    return ordered[-1].revision + 1 if ordered else 1


def find_equal(ordered: Sequence[ControllerRevision], data: Any) -> ControllerRevision | None:
    """The latest revision with this data."""
    wanted = orjson.dumps(data, option=orjson.OPT_SORT_KEYS)
    return next(
        (one for one in reversed(ordered) if orjson.dumps(one.data, option=orjson.OPT_SORT_KEYS) == wanted), None
    )


def expendable(
    ordered: Sequence[ControllerRevision], live: Collection[str], limit: int | None, *, counts_live: bool = False
) -> list[ControllerRevision]:
    """The oldest unused revisions beyond revisionHistoryLimit. `live` has the names of the used ones. With
    `counts_live`, the used ones count against the limit too."""
    if limit is None or limit < 0:
        return []
    idle = [one for one in ordered if one.metadata.name not in live]
    return idle[: max(0, len(ordered if counts_live else idle) - limit)]


class History:
    """The ControllerRevisions of one kind of owner. Their label `label` has the hash. `releases` is
    whether the controller of this kind releases revisions that its selector does not match: pkg/controller/daemon does;
    pkg/controller/statefulset ignores them."""

    def __init__(self, caches: Caches, owners: Resource, label: str = HASH_LABEL, *, releases: bool = False) -> None:
        self._label = label
        self._releases = releases
        self._client = caches.client
        self._revisions = caches.revisions
        self._owners = owners

    async def of(self, owner: Owner) -> list[ControllerRevision]:
        """The revisions of `owner` in order. Adopts matching orphans first."""
        claimed = await ownership.claim(
            self._client,
            self._owners,
            owner.metadata,
            owner.spec.selector,
            self._revisions,
            releases=self._releases,
        )
        return in_order(claimed)

    async def current(
        self, owner: Owner, ordered: Sequence[ControllerRevision], collisions: int | None, annotations: dict[str, str]
    ) -> tuple[ControllerRevision, int]:
        """The revision of the owner's current template, and the collision count. Creates the revision if it is missing,
        or gives it the next number if it is not the latest."""
        data = snapshot(owner.spec.template)
        number = next_number(ordered)
        found = find_equal(ordered, data)
        if found is None:
            return await self._create(owner, data, number, collisions or 0, annotations)
        if found is not ordered[-1]:
            patch = {"metadata": {"uid": found.metadata.uid}, "revision": number}
            found = await self._revisions.patch(patch, found.metadata.name, found.metadata.namespace)
        return found, collisions or 0

    async def prune(
        self,
        ordered: Sequence[ControllerRevision],
        live: Collection[str],
        limit: int | None,
        *,
        counts_live: bool = False,
    ) -> None:
        """Delete the revisions that are `expendable`."""
        for revision in expendable(ordered, live, limit, counts_live=counts_live):
            with contextlib.suppress(NotFoundError):
                metadata = revision.metadata
                await self._client.delete(CONTROLLER_REVISIONS, metadata.name, metadata.namespace, uid=metadata.uid)

    async def _create(
        self, owner: Owner, data: Object, number: int, collisions: int, annotations: dict[str, str]
    ) -> tuple[ControllerRevision, int]:
        """Create a revision. If its name belongs to other data, try the next hash."""
        namespace = owner.metadata.namespace
        while True:
            hash_ = data_hash(data, collisions)
            labels = {**_labels(owner), self._label: hash_}
            name = name_of(owner.metadata.name, hash_)
            body = {
                "apiVersion": CONTROLLER_REVISIONS.api_version,
                "kind": CONTROLLER_REVISIONS.kind,
                "metadata": {
                    "name": name,
                    "labels": labels,
                    "annotations": annotations,
                    "ownerReferences": [ownership.controller_reference(self._owners, owner.metadata)],
                },
                "data": data,
                "revision": number,
            }
            try:
                made = await self._revisions.create(body, namespace)
            except AlreadyExistsError:
                made = await self._revisions.fetch(name, namespace)
                if not (find_equal([made], data) and _belongs(made, owner.metadata)):
                    collisions += 1
                    continue
            return made, collisions


def _labels(owner: Owner) -> dict[str, str]:
    return dict((owner.spec.template.get("metadata") or {}).get("labels") or {})


def _belongs(revision: ControllerRevision, owner: Meta) -> bool:
    controller = revision.metadata.controller
    return controller is not None and controller.uid == owner.uid
