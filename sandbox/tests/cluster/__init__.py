"""The simulated nodes and controllers."""
