"""What releases wrote to the fields that FieldGuards with `Reverted` name. A release keeps it when it begins."""

from collections.abc import Mapping, Sequence

import orjson

from altershield.api.change_workload import Written, releaser
from altershield.api.fingerprint import canonical
from altershield.api.released_by import ReleasedBy
from altershield.gates.fields.paths import Path
from altershield.gates.fields.written import followed, written
from altershield.releases.release import version_of
from altershield.workloads.adapter import Object, template_of
from altershield.workloads.workload import Workload
from kube_base.access.errors import ConflictError
from reconciler.cluster.caches import Caches
from reconciler.cluster.release import Release
from reconciler.field_guards import kept_paths
from reconciler.releases.reads.live import LiveReader


class WrittenReader:
    """Sends requests only where a FieldGuard needs the answer. All methods raise the errors of the client."""

    def __init__(self, caches: Caches, live: LiveReader) -> None:
        self._caches = caches
        self._live = live

    async def read(
        self, workload: Workload, version: str, by: ReleasedBy | None, releases: Sequence[Release]
    ) -> tuple[Written, ...]:
        """What the release of this version and those before it wrote, the newest first. `by`: who made it. Empty after
        a release that no gatekeeper reviewed: it is not known whose last release it is."""
        paths = kept_paths(self._caches, workload.metadata.namespace)
        if not paths or by is None:
            return ()
        before = await self._before(workload, paths, releases)
        live = await self._live.workload(workload)
        is_released = live.workload.version == live.workload.template_version == version
        new = _written(paths, live.template, by) if is_released else None
        return followed(before, releaser(by.user, by.manager), new)

    async def _before(
        self, workload: Workload, paths: Mapping[str, Path], releases: Sequence[Release]
    ) -> tuple[Written, ...]:
        """What the releases before wrote. The values of the last one are read from its template, if it began when there
        was no such guard."""
        if not releases:
            return ()
        latest = max(releases, key=lambda each: (each.spec.workload_generation, each.spec.create_time_unix))
        known, spec, source = await self._live.written(latest), latest.spec, latest.status.source
        last = ReleasedBy(spec.released_by, spec.release_time, version_of(latest), spec.field_manager)
        own = releaser(last.user, last.manager)
        if not last.user or not source.uid or any(each.releaser == own and {*each.paths} >= {*paths} for each in known):
            return known
        try:
            template = await self._live.template(workload, source)
        except ConflictError:  # its template is gone
            return known
        return followed(known, own, _written(paths, template, last))


def _written(paths: Mapping[str, Path], template: Object, by: ReleasedBy) -> Written:
    return written(paths, orjson.loads(canonical(template_of(template))), by)
