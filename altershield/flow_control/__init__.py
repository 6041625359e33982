"""Decisions about PodDeletionFlowControls: which deletions of pods are counted, which are refused, and when the breaker
opens and closes. Pure functions of a policy, deletions and the time.

Gatekeepers and the leading reconciler write the status of a policy with its resourceVersion. If two of them decide at
the same time, the API server refuses the second write, and its writer decides again. Each process reads its own clock,
corrected by the clock of the API server. The limits also hold if two of these clocks differ by `windows.CLOCK_ERROR`.
"""
