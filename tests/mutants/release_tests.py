"""The test files for the mutants of the decisions about a release."""

DIRECTORY = "tests/unit/reconciler"
RELEASE_TESTS = tuple(
    f"{DIRECTORY}/test_{subject}.py"
    for subject in (
        "health",
        "pods_up",
        "settling",
        "restarts",
        "deadlines",
        "suspension",
        "waiting",
        "clocks",
        "rollback_target",
        "rollback",
        "nothing_serves",
        "stuck_pods",
        "verification",
        "reach",
        "batching",
        "status",
        "dropped_pod_groups",
        "unstable_pods",
        "start_budget",
        "blame",
    )
)
ONE_KIND = "partition or on_delete or not (StatefulSet or DaemonSet or CloneSet)"
