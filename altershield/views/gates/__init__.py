"""Release gates as people see them: which are closed, and whether a workload may be released now."""
