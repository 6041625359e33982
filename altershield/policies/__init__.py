"""Which DefensePolicy applies to a workload, as gatekeeper and reconciler agree on it. Pure functions."""
