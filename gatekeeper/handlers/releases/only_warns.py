"""The warnings of DefensePolicies with the mode `warn`."""

from altershield import releases
from altershield.api import labels
from altershield.api.change_workload import WorkloadState
from altershield.api.policy import Mode
from altershield.releases.enforcement import Would, would
from gatekeeper.handler import handler
from gatekeeper.handlers.releases.texts import failed_pod, stored_version_text
from gatekeeper.handlers.releases.version import released_version
from gatekeeper.handlers.releases.workload import Change, Workload, workload_ref
from gatekeeper.listers import Listers
from gatekeeper.response import NOTHING, Response
from gatekeeper.texts import time_text, warning

_MAX_PODS = 3


@handler(reads=Workload)
def warn(change: Change, listers: Listers) -> Response:
    """Warn about a changed template if the stored version failed verification under a policy that only warns. The text
    says what the mode `enforce` would have done."""
    old = change.old_object
    if old is None or change.user == listers.reconciler or old.label(labels.SUSPEND) is not None:
        return NOTHING
    version = old.label(labels.VERSION)
    release = listers.release(change.namespace, workload_ref(change), version) if version else None
    if release is None or release.spec.policy.mode != Mode.WARN or releases.state(release) != WorkloadState.SUSPEND:
        return NOTHING
    if not released_version(change):
        return NOTHING
    policy, pods = release.spec.policy, releases.failures(release)
    back = would(policy, release.status) is Would.ROLLBACK
    named = stored_version_text(releases.version_of(release), old, release.status.source.fingerprint)
    text = (
        f"AlterShield: version {named} of {change.kind} {change.name} failed verification"
        f"{time_text('at', releases.since(release))}; with mode enforce, "
        + ("it would have been rolled back" if back else "this change is denied")
    )
    return Response(
        warnings=(
            warning(text),
            *map(failed_pod, pods[:_MAX_PODS]),
            warning(f"the DefensePolicy {policy.namespace}/{policy.name} has mode warn, so the change is admitted"),
        )
    )
