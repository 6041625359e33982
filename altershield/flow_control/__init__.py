"""Decisions about PodDeletionFlowControls: which deletions of pods are counted, which are refused, and when the breaker
opens and closes. Pure functions of a policy, deletions and the time.

Gatekeepers and the leading reconciler write the status of a policy with its resourceVersion, so one of two writers
that decided at the same time decides again. Each of them reads its own clock, corrected by that of the API server. The
limits hold although two of these clocks differ by `windows.CLOCK_ERROR`.
"""
