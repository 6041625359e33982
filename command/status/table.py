"""The table of releases: one line per release, in the layout of kubectl."""

from typing import NamedTuple

from altershield import releases
from altershield.api.change_workload import WorkloadState
from altershield.api.policy import AppliedPolicy
from altershield.views.durations import age
from altershield.views.names import printable, short_version, workload_name
from altershield.views.releases.attention import attention
from altershield.views.releases.model import Release, waits
from kube_base.times import rfc3339

_UNKNOWN = "<unknown>"
_NONE = "<none>"

_STYLES = {
    WorkloadState.SUCCESS: "green",
    WorkloadState.SUSPEND: "bold red",
    WorkloadState.FAILED: "red",
    WorkloadState.ROLLBACK: "yellow",
}

_WAITS = "yellow"  # of a release under way that needs somebody


class Layout(NamedTuple):
    """The columns of the table."""

    namespaces: bool = False
    wide: bool = False

    @property
    def header(self) -> tuple[str, ...]:
        return (
            *(("NAMESPACE",) if self.namespaces else ()),
            *("NAME", "VERSION", "IMAGES", "STATE", "PASSED", "FAILED", "WAITING", "AGE"),
            *(("SINCE", "POLICY") if self.wide else ()),
            "MESSAGE",
        )


class Row(NamedTuple):
    key: tuple[str, str, str]
    """The namespace, the workload and the version of the release."""
    cells: tuple[str, ...]
    constant: tuple[str, ...]
    """The cells without the age, which changes without a change of the release."""
    style: str


def row(release: Release, layout: Layout, now: float) -> Row:
    workload, stored = release.workload, release.stored
    namespace, name = workload.metadata.namespace, workload_name(workload.group_kind, workload.metadata.name)
    if stored is None or release.pending:
        state = WorkloadState.INIT
        began = since = 0
        policy = _UNKNOWN
        message = waits(release)
    else:
        change = stored.release
        state = releases.state(change)
        began, since = change.spec.create_time_unix, releases.since(change)
        policy = _policy(change.spec.policy, namespace)
        message = release.message
    digits = release.version if layout.wide else short_version(release.version)
    before = (
        *((namespace,) if layout.namespaces else ()),
        *(name, digits + ("*" if release.present else ""), printable(release.images) or _UNKNOWN, state.value),
        *map(str, release.counts),
    )
    after = (
        *((rfc3339(since) if since else _UNKNOWN, policy) if layout.wide else ()),
        printable(message),
    )
    cells = (*before, age(now - began) if began else _UNKNOWN, *after)
    style = _STYLES.get(state) or (_WAITS if attention([release]).needs_somebody else "")
    return Row((namespace, name, release.version), cells, (*before, *after), style)


def _policy(policy: AppliedPolicy, namespace: str) -> str:
    """The name of the policy of a release, with its namespace if that is not the workload's."""
    if not policy.name:
        return _NONE
    return policy.name if policy.namespace == namespace else f"{policy.namespace}/{policy.name}"


def progress(release: Release) -> str:
    """The line that --wait prints for a release."""
    name, _, _, state, *_, message = row(release, Layout(), 0).cells
    return f"Waiting for the release of {name}: {state}" + (f", {message}" if message else "")
