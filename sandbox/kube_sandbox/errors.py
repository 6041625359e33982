"""Errors of the sandbox itself. Each message is one sentence that a command can print."""


class SandboxError(Exception):
    """The sandbox cannot start, or it failed while it ran."""


class SettingError(SandboxError):
    """An option or an environment variable has a value that cannot be used."""
