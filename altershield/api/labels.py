"""The labels of AlterShield. Each key is defined only here."""

GOVERNED = "admission-webhook-altershield"
"""On a Namespace, with the value `enabled`: AlterShield governs its workloads."""
GOVERNED_VALUE = "enabled"
GOVERNED_SELECTOR = f"{GOVERNED}={GOVERNED_VALUE}"  # `kubectl label` has the same form

VERSION = "admission-webhook-altershield.antgroup.com/version"
"""On a workload, its pod template (so on its revisions and pods), ChangeWorkloads and ChangePods:
the fingerprint of the pod template, 32 hex digits."""

DEFENSE_STATUS = "altershield.defense.antgroup.com/defense-status"
"""On a workload: `processed` once this version has its ChangeWorkload."""
PROCESSED = "processed"

OPERATE_FINISHED = "altershield.defense.antgroup.com/operate-finished"
"""On a pod: the Unix second at which it came up."""

SUSPEND = "altershield.defense.antgroup.com/suspend"
"""On a workload: the Unix second since which its releases are suspended."""

IGNORED_SUSPEND = "altershield.defense.antgroup.com/ignored-suspend"
"""On a workload, set by the user with value `true`: this release repairs the workload, so it is allowed once."""

WORKLOAD_NAME = "app.kubernetes.io/deployment-name"
"""On ChangeWorkloads and ChangePods: the workload's name, cut and hashed past 63 characters."""

CREDENTIALS = "altershield.defense.antgroup.com/credentials"
"""On a Secret, set by the user with value `true`: checks of policies in its namespace may use it."""
CREDENTIALS_VALUE = "true"

CALENDAR = "altershield.defense.antgroup.com/calendar"
"""On a ConfigMap in the system namespace, set by the user with any value: ReleaseWindows may use its calendars."""

CHECK = "altershield.defense.antgroup.com/check"
"""On the Job of a check and its pods: the name of the check."""
CHECK_ID = "altershield.defense.antgroup.com/check-id"
"""An annotation of the Job of a check: the uid of the ChangePod, the name of the check and the phase."""

HISTORY = "altershield.defense.antgroup.com/history"
"""On the ControllerRevisions of a workload's history: the workload's name, cut and hashed past 63 characters."""

ORDER = "altershield.defense.antgroup.com/order"
"""On a ConfigMap in the system namespace, with the value `open`: the record of an order that is open on an AlterShield
server."""
ORDER_OPEN = "open"

MANAGED_BY = "app.kubernetes.io/managed-by"
"""On the budgets that annotations ask for, with the value `altershield`: AlterShield made them."""
MANAGED_BY_VALUE = "altershield"

OWNED = (VERSION, DEFENSE_STATUS, SUSPEND)
"""Labels of a workload that only AlterShield writes."""

NOT_IN_TEMPLATES = (DEFENSE_STATUS, OPERATE_FINISHED, SUSPEND)
"""Labels of workloads and pods that the gatekeeper removes from pod templates. The fingerprint ignores them."""

CONTROLLER_REVISION_HASH = "controller-revision-hash"
"""A label of Kubernetes, on pods that the workload itself controls: the name or hash of their revision."""
