"""Measures failed and delayed releases while AlterShield's processes are replaced, killed or disconnected.

    python -m bench.availability

`admissions` and `hung` put three gatekeepers under constant load. `releases` kills leading reconcilers. `outage`
disconnects the API server. `disruptions` replaces API servers, loses a zone and evicts pods. `budgets` disrupts all
pods of budgets while processes are killed. The tests in tests/availability do the same in less time.
"""
