"""Mutants of metrics that are bounded by a number of namespaces or releases, and of the cgroup's memory."""

from tests.mutants.mutant import Source

SOURCES = (
    Source(
        "altershield/process/metrics.py",
        ("tests/unit/gatekeeper/test_metrics.py",),
        (
            ("if len(self._known) >= MAX_NAMESPACES or not trusted(namespace):", "if not trusted(namespace):"),
            (
                "if len(self._known) >= MAX_NAMESPACES or not trusted(namespace):",
                "if len(self._known) >= MAX_NAMESPACES:",
            ),
            ("                return OTHER_NAMESPACES\n", "                pass\n"),
        ),
    ),
    Source(
        "gatekeeper/metrics.py",
        ("tests/unit/gatekeeper/test_metrics.py",),
        (("self._denials.get((value, reason), 0) + 1", "1"),),
    ),
    Source(
        "reconciler/releases/gauges.py",
        ("tests/unit/reconciler/releases/test_metrics.py", "tests/unit/test_metrics.py"),
        (
            (" + heapq.nlargest(_MAX_RELEASES, found, key=since)", ""),
            ("heapq.nsmallest(_MAX_RELEASES, found, key=since) + ", ""),
            ("len(found) <= 2 * _MAX_RELEASES", "len(found) <= 3 * _MAX_RELEASES"),
            ("(ROLLBACK, settings.rollback)", "(ROLLBACK, settings.blocking)"),
            ("policies.add_metric([mode], modes.count(mode))", "policies.add_metric([mode], len(modes))"),
        ),
    ),
    Source(
        "altershield/process/cgroup.py",
        ("tests/unit/altershield/process/test_cgroup.py",),
        (
            ("max(0, total - free)", "total - free"),
            ("max(0, total - free)", "total"),
            ("if 0 < most < _UNLIMITED else", "if 0 < most else"),
            ("if 0 < most < _UNLIMITED else", "if most < _UNLIMITED else"),
            ('line.startswith(f"{name} ")', "name in line"),
            ("except (OSError, ValueError):\n", "except OSError:\n"),
        ),
    ),
)
