"""The simulated nodes, and the node lifecycle controller."""
