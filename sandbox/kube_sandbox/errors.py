"""Errors of the sandbox itself. Each message is a sentence for the person who started it."""


class SandboxError(Exception):
    """The sandbox cannot start, or it stopped."""


class SettingError(SandboxError):
    """An option or an environment variable has a value that cannot be used."""
