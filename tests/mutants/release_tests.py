"""The test files for the mutants of the decisions about a release."""

DIRECTORY = "tests/unit/reconciler/releases"
RELEASE_TESTS = tuple(
    f"{DIRECTORY}/{file}.py"
    for file in (
        "pods/test_health",
        "test_pods_up",
        "test_settling",
        "findings/test_restarts",
        "test_deadlines",
        "test_suspension",
        "test_waiting",
        "test_clocks",
        "test_rollback_target",
        "test_rollback",
        "test_nothing_serves",
        "test_stuck_pods",
        "test_verification",
        "test_reach",
        "test_batching",
        "test_status",
        "test_dropped_pod_groups",
        "test_unstable_pods",
        "pods/test_start_budget",
        "pods/test_blame",
    )
)
ONE_KIND = "partition or on_delete or not (StatefulSet or DaemonSet or CloneSet)"
