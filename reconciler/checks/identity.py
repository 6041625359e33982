"""What identifies the check of one batch in one phase."""

from reconciler.checks.check import Subject


def check_id(subject: Subject) -> str:
    """The uid of the ChangePod, the name of the check, and the phase."""
    return f"{subject.change_pod.metadata.uid}/{subject.check.name}/{subject.phase.lower()}"
