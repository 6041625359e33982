"""Reads the state of releases from ChangeWorkloads, for denials, metrics, Events and the `status` command."""

from altershield.releases.belonging import belongs, release_index_key, workload_index_key
from altershield.releases.outcome import Outcome, outcome
from altershield.releases.release import (
    Release,
    failed_by,
    failures,
    is_current,
    is_of_present_template,
    is_of_template,
    passed,
    rolled_back,
    since,
    stalled,
    state,
    ungated,
    unsettled,
    version_of,
    wants_attention,
)
from altershield.releases.texts import named, why

__all__ = [
    "Outcome",
    "Release",
    "belongs",
    "failed_by",
    "failures",
    "is_current",
    "is_of_present_template",
    "is_of_template",
    "named",
    "outcome",
    "passed",
    "release_index_key",
    "rolled_back",
    "since",
    "stalled",
    "state",
    "ungated",
    "unsettled",
    "version_of",
    "wants_attention",
    "why",
    "workload_index_key",
]
