"""A small client of the Kubernetes API, for the simulated controllers and for tests."""
