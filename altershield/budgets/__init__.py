"""Decisions about PodUnavailableBudgets: which pods a budget covers, its numbers, its records, and whether a disruption
is admitted. The functions are pure. The gatekeeper and the reconciler share them.
"""
