"""The annotations of workloads: users set some of them, and AlterShield stores its changes in the others."""

START_TIMEOUT = "altershield.defense.antgroup.com/start-timeout-seconds"
"""On a workload, set by the user: the seconds that a pod of its releases may take to come up."""

MAX_START_TIMEOUT = 86_400
"""The maximum of this annotation, in seconds."""

GENERATE = "policy.kruise.io/generate-"
"""The prefix of the annotations `generate-pub` and `generate-pdb`, followed by `-maxUnavailable` or `-minAvailable`.
The user sets them on a workload, or on a Namespace as the default of its workloads. AlterShield makes such a budget for
the workload. The names are those of OpenKruise's proposal."""

ROLLOUT = "altershield.defense.antgroup.com/rollout"
"""On a workload, set by AlterShield while it holds the rollout. The value is JSON: the version, why and since when it
is held, and the values that the changed fields had before (`altershield/workloads/hold.py`)."""

PROBE = "altershield.defense.antgroup.com/probe"
"""The annotation of a pod template by which a dry run asks whether a workload may be released. It is never stored."""

PAUSED = "altershield.defense.antgroup.com/paused"
"""The annotation of a pause by an older release of AlterShield, which is still read and removed."""
