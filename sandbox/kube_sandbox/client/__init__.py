"""A small client of the Kubernetes API, for the simulated cluster and for tests."""
