"""Remembers admitted releases until the status of ReleaseLimits counts them."""

import dataclasses

from altershield.api.gates.rules import Judged
from gatekeeper.handler import handler
from gatekeeper.handlers.releases.gates import judgeable
from gatekeeper.handlers.releases.version import released_version
from gatekeeper.handlers.releases.workload import Change, Workload
from gatekeeper.listers import Listers
from gatekeeper.response import NOTHING, Response


@handler(reads=Workload)
def count_admitted(change: Change, listers: Listers) -> Response:
    """Remember a release that no handler before this one denied. A dry run counts nothing.

    A restart counts as an update, because a ChangeWorkload does not say whether it was one.
    """
    version = "" if change.dry_run or not listers.gates.exist else released_version(change)
    if version:
        release = judgeable(change, version, listers)
        if release.judged is Judged.RESTART:
            release = dataclasses.replace(release, judged=Judged.UPDATE)
        listers.admissions.add(release, change.received)
    return NOTHING
