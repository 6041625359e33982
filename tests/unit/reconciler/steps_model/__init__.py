"""A random test of releases in steps. A workload of any kind has the sandbox's controller; gatekeeper and reconciler
carry out the product's decisions, in simulated time."""
