"""The annotations of workloads that users set, or that AlterShield uses to remember what it changed."""

START_TIMEOUT = "altershield.defense.antgroup.com/start-timeout-seconds"
"""On a workload, set by the user: the seconds that a pod of its releases may take to come up."""

MAX_START_TIMEOUT = 86_400
"""Seconds."""

GENERATE = "policy.kruise.io/generate-"
"""On a workload, or on a Namespace as the default of its workloads, set by the user: the beginning of the annotations
`generate-pub` and `generate-pdb`, with `-maxUnavailable` or `-minAvailable`. AlterShield makes such a budget for the
workload. The names are those of OpenKruise's proposal."""

PAUSED = "altershield.defense.antgroup.com/paused"
"""On a workload, set by AlterShield: it paused the rollout. The value is JSON: when, why, and the changed fields."""
