"""The client of the simulated controllers."""
