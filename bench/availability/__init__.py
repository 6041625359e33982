"""Measures failed and delayed releases while AlterShield's processes are replaced, killed or disconnected.

    python -m bench.availability

`admissions` and `hung` put three gatekeepers under constant load. `releases` kills leading reconcilers. `outage`
disconnects the API server. The tests in tests/availability do the same in less time.
"""
