"""The CloneSet controller (OpenKruise)."""
