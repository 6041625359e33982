"""The exit code, which tells scripts the outcome of the releases."""

from collections.abc import Iterable

from altershield.releases import Outcome

EXIT_SUSPENDED = 3
EXIT_UNDER_WAY = 4
EXIT_ROLLED_BACK = 5

_CODES = (
    (Outcome.SUSPENDED, EXIT_SUSPENDED),
    (Outcome.UNDER_WAY, EXIT_UNDER_WAY),
    (Outcome.ROLLED_BACK, EXIT_ROLLED_BACK),
)


def exit_code(outcomes: Iterable[Outcome]) -> int:
    """3 if a release is suspended, else 4 if one is under way, else 5 if one was rolled back, else 0."""
    found = set(outcomes)
    return next((code for outcome, code in _CODES if outcome in found), 0)
