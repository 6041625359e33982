"""Errors of the sandbox itself. A setting that cannot be used is a UsageError."""

from kube_base.errors import ReportedError


class SandboxError(ReportedError):
    """The sandbox cannot start, or it failed while it ran."""
