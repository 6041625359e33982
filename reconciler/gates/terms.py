"""What the parts of a ReleaseWindow's times have in common."""

from altershield.api.gates.windows import Calendar

DAY = 86_400

Span = tuple[int, int]
"""A time from a Unix second to another one, which is not included."""


def calendar_key(calendar: Calendar) -> str:
    """Identifies the file of a calendar in its namespace."""
    return f"{calendar.config_map}/{calendar.key}"  # the name of a ConfigMap has no slash
