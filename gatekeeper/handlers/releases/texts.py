"""Texts that several handlers of releases use."""

from altershield.api import labels
from altershield.releases.release import FailedPod
from altershield.releases.texts import why_failed
from gatekeeper.handlers.releases.workload import Change
from gatekeeper.texts import warning


def failed_pod(pod: FailedPod) -> str:
    """The warning about a failed pod."""
    return warning(f"pod {pod.pod} failed: {why_failed(pod)}")


def namespace_option(change: Change) -> str:
    """The option of kubectl for the namespace of the workload; empty if the request has no namespace."""
    return f" -n {change.namespace}" if change.namespace else ""


def repair_command(change: Change) -> str:
    """The command that lets one release of the workload pass."""
    option = namespace_option(change)
    return f"kubectl label --overwrite {change.kind}{option} {change.name} {labels.IGNORED_SUSPEND}=true"


def rollback_command(change: Change) -> str:
    """The command that releases the last version that passed."""
    return f"altershield rollback{namespace_option(change)} {change.kind}/{change.name}"


def why_command(change: Change) -> str:
    """The command that explains the state of the workload."""
    return f"altershield why{namespace_option(change)} {change.kind}/{change.name}"
