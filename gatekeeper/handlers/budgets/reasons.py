"""The reasons that logs and metrics give for the outcome of a disruption."""

from enum import StrEnum

from gatekeeper.response import Decision, Outcome


class Reason(StrEnum):
    EXCEEDED = "budget-exceeded"
    """A budget allows no further disruption."""
    BLOCKED_BY_PDB = "budget-blocked-by-pdb"
    """A PodDisruptionBudget would refuse the eviction, so nothing is recorded."""
    BUSY = "budget-busy"
    """There was no decision in time."""
    ADMITTED = "budget-admitted"
    WARNED = "budget-warned"
    """A budget with the mode Warn would refuse the disruption."""
    BREAK_GLASS = "budget-break-glass"
    """A budget would refuse the disruption, but the user is in the group for emergencies."""


OUTCOMES = (
    Outcome(Decision.DENIED, Reason.EXCEEDED),
    Outcome(Decision.DENIED, Reason.BLOCKED_BY_PDB),
    Outcome(Decision.DENIED, Reason.BUSY),
    Outcome(Decision.ALLOWED, Reason.ADMITTED),
    Outcome(Decision.ALLOWED, Reason.WARNED),
    Outcome(Decision.ALLOWED, Reason.BREAK_GLASS),
)
