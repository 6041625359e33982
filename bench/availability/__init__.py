"""What users notice when parts of AlterShield are rolled, killed or cut off, measured with its real processes.

    python -m bench.availability

`admissions` and `hung` keep three gatekeepers under constant load, `releases` kills leading reconcilers, `outage` takes
the API server away. The tests in tests/availability measure the same, for shorter.
"""
