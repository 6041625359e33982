"""Texts that several handlers of releases use."""

from altershield.api import labels
from altershield.images import images_in, named
from altershield.releases.release import FailedPod
from altershield.releases.texts import why_failed
from altershield.workloads.workload import fingerprint_of
from gatekeeper.handlers.releases.workload import Change, Workload
from gatekeeper.texts import clean, warning

_MAX_IMAGES = 64  # bytes: a warning has 256


def version_text(version: str, has_it: Workload, before: Workload | None = None) -> str:
    """The version, with the images of the workload `has_it`, whose template has this version; those that differ from
    the ones of `before` first."""
    earlier = images_in(before.spec.template.spec) if before is not None else ()
    images = named(images_in(has_it.spec.template.spec), earlier)
    return f"{version} ({clean(images, _MAX_IMAGES)})" if images else version


def stored_version_text(version: str, old: Workload, other_fingerprint: str = "") -> str:
    """The version of the stored workload as in `version_text`. The label may be that of an earlier template: then
    without images. `other_fingerprint`: of the same template, by an API server with other defaults."""
    is_its_own = fingerprint_of(old.spec.template) in (version, other_fingerprint)
    return version_text(version, old) if version and is_its_own else version


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
