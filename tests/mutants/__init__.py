"""Small mistakes in the code, each of which a test must notice. `make mutants` tries all of them.

A mutant is a text of a source file and the text that replaces it. The modules here hold the mutants of one area each.
A change of such a text in the source needs the same change here.
"""

from tests.mutants import (
    batches,
    budgets,
    certgen,
    endpoints,
    flow_control,
    handlers,
    informer,
    lease,
    metrics,
    names,
    notifications,
    outbound,
    policies,
    promql_checks,
    protections,
    release_decisions,
    release_health,
    release_status,
    routes,
    workloads,
    writer,
)

_AREAS = (
    batches,
    budgets,
    certgen,
    endpoints,
    flow_control,
    handlers,
    informer,
    lease,
    metrics,
    names,
    notifications,
    outbound,
    policies,
    promql_checks,
    protections,
    release_decisions,
    release_health,
    release_status,
    routes,
    workloads,
    writer,
)
SOURCES = tuple(source for area in _AREAS for source in area.SOURCES)
