"""The base of all errors that a command reports to its user.

Each message is one sentence: it says what happened to which object, and what to do.
"""


class ReportedError(Exception):
    """The base class. `exit_code` is the exit code of a command that ends with the error."""

    exit_code = 1


class UsageError(ReportedError):
    """An option, an environment variable or a file is invalid. The user can correct it."""

    exit_code = 2
