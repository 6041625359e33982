"""Decisions about PodUnavailableBudgets: which pods a budget covers, its numbers, its records, and whether a disruption
is admitted. Pure functions, for the gatekeeper and the reconciler.
"""
